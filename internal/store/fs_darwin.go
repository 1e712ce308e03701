package store

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// remoteFS returns the name of the file system of path when it must not hold a store, else "".
func remoteFS(path string) (string, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return "", fmt.Errorf("statfs: %w", err)
	}
	if s.Flags&unix.MNT_LOCAL != 0 {
		return "", nil
	}
	return unix.ByteSliceToString(s.Fstypename[:]), nil
}

// freeBytes returns what an ordinary user may still write on the file system of path, 0 when unknown.
func freeBytes(path string) uint64 {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}

// allocate gives f real blocks, so that they are there when the disk is full.
func allocate(f *os.File, size int64) error { return fill(f, size) }

// lockHolders cannot be asked for here.
func lockHolders(*os.File) []int { return nil }
