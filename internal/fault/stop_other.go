//go:build faultpoints && !linux

package fault

import (
	"os"
	"syscall"
)

// stop suspends this process, soon.
func stop() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
