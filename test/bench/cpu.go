package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of /proc/<pid>/stat on Linux.
const tick = 10 * time.Millisecond

// own is how this program is called among the processes.
const own = "client"

// cpu gives how much CPU time each process has used: the client's from rusage, the others' from /proc where there is one.
func (p *plane) cpu() map[string]time.Duration {
	used := map[string]time.Duration{}
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil {
		used[own] = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	for name, pid := range p.PIDs {
		if strings.HasPrefix(name, "bridge") {
			name = "bridge"
		}
		used[name] += processCPU(pid)
	}
	return used
}

// busyCPU gives how much CPU time everything on the machine has used, 0 where that is not to be had.
func busyCPU() time.Duration {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	var total time.Duration
	for i, f := range bytes.Fields(line) { // cpu user nice system idle iowait irq softirq steal guest…
		if i == 0 || i == 4 || i == 5 || i > 8 {
			continue
		}
		n, _ := strconv.ParseInt(string(f), 10, 64)
		total += time.Duration(n) * tick
	}
	return total
}

func processCPU(pid int) time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name of the program stands in parentheses and may hold anything.
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	var total time.Duration
	for _, f := range fields[11:13] {
		n, _ := strconv.ParseInt(string(f), 10, 64)
		total += time.Duration(n) * tick
	}
	return total
}
