// Command bench measures what Agent Rooms costs against the bare API calls that it rests on.
//
// It starts the real thing (`rooms up --rate-limits=off --bridges 2`), drives it in closed loop, and compares each operation
// through MCP with its bare counterpart through client-go on the same API server. All operations take turns within a round,
// so that a machine that gets slower slows both sides of a ratio; what is reported are medians over the rounds. It prints a
// table and writes it to docs/benchmarks.md. A ratio below its target is printed as such and is no failure of the program.
package main
