//go:build unix

package instance

import (
	"errors"
	"fmt"
	"os"
	"syscall"

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

// ring sends one datagram from a socket of its own.
func ring(path string) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	unix.CloseOnExec(fd)
	post(uintptr(fd), path)
}

// mark names the file itself, so that a copy of it can be told from the original: a lock on a copy is free however alive the holder is.
func mark(f *os.File) string {
	st, err := f.Stat()
	if err != nil {
		return "-"
	}
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
	}
	return "-"
}
