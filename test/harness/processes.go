package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Children gives the processes that the plane runs now, by the names that `rooms up --json` calls them. One that was just
// killed may be missing.
func (p *Plane) Children(tb testing.TB) map[string]int {
	tb.Helper()
	if runtime.GOOS != "linux" {
		tb.Skip("children are found through /proc")
	}
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		tb.Fatal(err)
	}
	found := map[string]int{}
	for _, dir := range entries {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if parent(dir) == p.cmd.Process.Pid {
			found[p.nameOf(dir)] = pid
		}
	}
	delete(found, "")
	return found
}

// parent gives the parent of a process, 0 when it is gone or about to be.
func parent(dir string) int {
	raw, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return 0
	}
	// The second field is the name in brackets, and may hold anything.
	fields := strings.Fields(string(raw)[strings.LastIndexByte(string(raw), ')')+1:])
	if len(fields) < 2 || fields[0] == "Z" {
		return 0
	}
	id, _ := strconv.Atoi(fields[1])
	return id
}

// nameOf tells a child of the plane by its command line.
func (p *Plane) nameOf(dir string) string {
	raw, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil || len(raw) == 0 {
		return ""
	}
	args := strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")
	if len(args) < 2 || args[1] != "bridge" && args[1] != "manager" {
		return filepath.Base(args[0])
	}
	if args[1] == "manager" {
		return "manager"
	}
	for i, url := range p.Replicas {
		for _, arg := range args {
			if url == "http://"+arg+"/mcp" {
				return fmt.Sprintf("bridge-%d", i)
			}
		}
	}
	return ""
}

// KillChild kills one of the plane's processes as the kernel does when memory runs out, and gives its process id. The plane
// starts it again. It says false when there is none just now.
func (p *Plane) KillChild(tb testing.TB, name string) (int, bool) {
	tb.Helper()
	pid, ok := p.Children(tb)[name]
	if !ok {
		return 0, false
	}
	return pid, syscall.Kill(pid, syscall.SIGKILL) == nil
}
