//go:build !unix

package tools

import (
	"os"
	"syscall"
)

// ownGroup is nil: no helper is started here.
func ownGroup() *syscall.SysProcAttr { return nil }

func endGroup(p *os.Process) error { return p.Kill() }
