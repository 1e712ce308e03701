//go:build faultpoints

package fault

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// stop suspends this process here. The signal goes to the calling thread, which takes it before it does anything more; one for the whole
// process may be taken by another thread while this one goes on.
func stop() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGSTOP)
}
