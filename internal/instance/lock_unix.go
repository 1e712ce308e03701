//go:build unix

package instance

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes an exclusive lock of the whole open file if it is free. Nothing here ever waits for a lock: a lock file gets its
// name only when its lock is taken, so no probe can be in the way of a start.
func lock(f *os.File) (bool, error) {
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	}
	return false, fmt.Errorf("lock %s: %w", f.Name(), err)
}

// post sends one datagram without ever waiting.
func post(fd uintptr, path string) {
	_ = unix.Sendto(int(fd), []byte{1}, unix.MSG_DONTWAIT, &unix.SockaddrUnix{Name: path})
}
