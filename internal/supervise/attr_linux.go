package supervise

import "syscall"

// childAttr lets the kernel kill the child when we die, and keeps a Ctrl-C at the terminal from reaching it: the parent
// gets the Ctrl-C and ends its children in order.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
