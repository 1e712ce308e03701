package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

const (
	reserveSize  = 1 << 20
	reserveRoom  = 16 << 20         // free space that must be there before the reserve is taken back
	reserveRetry = 30 * time.Second // how soon after its use
)

// reserve is space set aside for the commits that say that the disk is full. Its fields are guarded by the local turn of the gate.
type reserve struct {
	path string
	used time.Time // zero while the file is there as far as we know
}

// ensure creates the file when it is missing. A failure is no reason to refuse the store.
func (r *reserve) ensure() error {
	if info, err := os.Stat(r.path); err == nil && info.Size() == reserveSize {
		return nil
	}
	f, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("create the reserve: %w", err)
	}
	err = errors.Join(allocate(f, reserveSize), f.Close())
	if err != nil {
		_ = os.Remove(r.path) // a partial reserve would only take the last space away
		return fmt.Errorf("create the reserve: %w", err)
	}
	return nil
}

// release gives the space back to the disk. Another process may have been first.
func (r *reserve) release() error {
	r.used = time.Now()
	if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the reserve: %w", err)
	}
	return nil
}

// restore sets the space aside again once the disk has room.
func (r *reserve) restore(dir string) error {
	if r.used.IsZero() || time.Since(r.used) < reserveRetry {
		return nil
	}
	r.used = time.Now()
	if freeBytes(dir) < reserveRoom {
		return nil
	}
	if err := r.ensure(); err != nil {
		return err
	}
	r.used = time.Time{}
	return nil
}

// fill writes real bytes where the file system cannot allocate without them.
func fill(f *os.File, size int64) error {
	block := bytes.Repeat([]byte("holdfast"), 8192)
	for off := int64(0); off < size; off += int64(len(block)) {
		if _, err := f.WriteAt(block[:min(int64(len(block)), size-off)], off); err != nil {
			return fmt.Errorf("fill: %w", err)
		}
	}
	return nil
}
