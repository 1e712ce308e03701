//go:build !linux && !darwin

package store

import "os"

// remoteFS is not known here; the documentation asks for a local disk.
func remoteFS(string) (string, error) { return "", nil }

// freeBytes is not known here, so a used reserve comes back only when the store is opened again.
func freeBytes(string) uint64 { return 0 }

// allocate gives f real blocks, so that they are there when the disk is full.
func allocate(f *os.File, size int64) error { return fill(f, size) }

// lockHolders cannot be asked for here.
func lockHolders(*os.File) []int { return nil }
