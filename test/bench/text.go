package main

const reportHead = `# Benchmarks

What an operation through MCP costs against the bare API calls that it rests on. Written by ` + "`make bench`" + `; do not edit.

**How.** ` + "`rooms up --rate-limits=off --bridges 2`" + ` runs etcd (with fsync), the API server, the controllers and two replicas of the
bridge on one machine with two cores and 24 GiB, and the client shares the cores with them. Each client calls again as soon as
its last call was answered. All operations take turns within a round (%d rounds, %s for each operation; every other round goes
backwards), and what is shown is the median of the rounds. Rates drift with the machine; the ratios, taken within a
round, are what counts. The bare calls go through client-go as an admin, without its rate limit, on the same server with the same
watchers; the bare compare-and-swap writes to tasks that the controllers have nothing to do about. The bare Lease update is that of a
Lease that nobody watches, beside it stands that of a task's Lease, which bridges and controllers watch.
A bare write of a file is a put through gocloud.dev/blob and the create of a File, a bare read a GET by the signed URL that
` + "`fetch_file`" + ` gives. Both sides read the same file again and again: ` + "`read_file`" + ` has such in its memory.

While this was measured, programs that have nothing to do with it had %.2f of the two cores. The more they have, the longer each
hand-over from one process to the next waits, and a call through MCP has two more of them than a bare one. "By CPU time" is
the ratio of the CPU time that a call takes all processes together, which others disturb less.

## Ratios

`

const reportRates = `A ratio below its target stands here as it was measured.

## Rates

The client's CPU time is part of what the two cores do, on both sides of a ratio: MCP calls go through net/http with bodies
encoded before, bare ones through client-go. "All CPU" is that of the client, the bridges, the manager, the API server, etcd and
kube-controller-manager together, so on two cores 2,000 ms by it is the rate that can be reached at most.

`

const reportTail = `## Again

` + "```sh" + `
make bench                                       # all of it, about ten minutes
make bench BENCH_ROUNDS=2                        # quick
make bench BENCH_ONLY='claim|bare: Task'         # some operations
make bench BENCH_ARGS='-cost -report='           # what each process spends; no report
` + "```" + `

Nothing else should run meanwhile.
`
