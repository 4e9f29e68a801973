//go:build !linux

package supervise

import "syscall"

// childAttr keeps a Ctrl-C at the terminal from reaching the child. There is no parent-death signal here: children of a
// parent that was killed outright have to be ended by hand.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
