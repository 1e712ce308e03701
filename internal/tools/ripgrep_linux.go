package tools

import (
	"os"

	"golang.org/x/sys/unix"
)

// ownGroup starts a program in a group of its own, which ends with this process.
func ownGroup() *unix.SysProcAttr {
	return &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
}

func endGroup(p *os.Process) error { return unix.Kill(-p.Pid, unix.SIGKILL) }
