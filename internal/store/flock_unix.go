//go:build unix

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The kernel's flock belongs to the open file, not to the process: closing another descriptor of the same path does not drop it,
// unlike the POSIX locks that SQLite uses.

// flockTry takes the lock if that needs no wait.
func flockTry(f *os.File, exclusive bool) (bool, error) {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	err := flock(f, how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// flockWait blocks until the lock is ours.
func flockWait(f *os.File) error { return flock(f, unix.LOCK_EX) }

func funlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	raw, err := f.SyscallConn() // keeps the descriptor from being closed and reused under a waiting call
	if err != nil {
		return fmt.Errorf("flock: %w", err)
	}
	var got error
	if err := raw.Control(func(fd uintptr) {
		for got = unix.EINTR; errors.Is(got, unix.EINTR); {
			got = unix.Flock(int(fd), how)
		}
	}); err != nil {
		return fmt.Errorf("flock: %w", err)
	}
	return got
}

func fileID(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{uint64(st.Dev), uint64(st.Ino)} //nolint:unconvert // the widths differ between systems
}
