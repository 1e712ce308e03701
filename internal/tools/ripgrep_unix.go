//go:build unix && !linux

package tools

import (
	"os"

	"golang.org/x/sys/unix"
)

// ownGroup starts a program in a group of its own.
func ownGroup() *unix.SysProcAttr { return &unix.SysProcAttr{Setpgid: true} }

func endGroup(p *os.Process) error { return unix.Kill(-p.Pid, unix.SIGKILL) }
