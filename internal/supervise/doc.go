// Package supervise runs child processes: it starts again what dies, ends all of them in order, and sees to it that no
// child outlives its parent, however the parent dies.
//
// On Linux the last point rests on the parent-death signal. It has a trap: the kernel sends it when the *thread* that
// forked the child ends, not when the process does. Go is free to end a thread, and then a healthy parent would lose its
// children. So every fork is made by one goroutine that is locked to its thread and stays until all children are gone.
package supervise
