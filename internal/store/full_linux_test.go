package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func init() { roles["fill disk"] = fillDisk }

// A disk that is really full: the reserve lets the next result through, then the store says so, goes on reading, and goes on
// writing when there is room again.
func TestCommit_FullDisk(t *testing.T) {
	dir := t.TempDir()
	c := newChild(t, "fill disk", dir)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if err := c.Start(); errors.Is(err, fs.ErrPermission) {
		t.Skip("needs a mount namespace; run as root or allow user namespaces: go test ./internal/store -run FullDisk")
	} else if err != nil {
		t.Fatal(err)
	}
	if got := c.rest(t); got != "with reserve\nfull\nread\nroom again" {
		t.Errorf("the other process said %q", got)
	}
}

func fillDisk(dir string, _ []string) error {
	// The mount must not spread to where the test runner is.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	ctx := context.Background()
	d, err := Open(ctx, options(filepath.Join(dir, "home")))
	if err != nil {
		return err
	}
	ballast, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		return err
	}
	for err == nil {
		_, err = ballast.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("fill the disk: %w", err)
	}
	put := func() error {
		return d.Commit(ctx, "test", func(tx *sql.Tx) error { return fillBlob(tx, 200<<10) })
	}
	stored := 0
	for err = put(); err == nil; err = put() {
		if stored++; stored == 1 {
			say("with reserve")
		}
	}
	if !errors.Is(err, ErrFull) || CodeOf(err) != CodeFull {
		return fmt.Errorf("commit on a full disk: %w", err)
	}
	say("full")
	if n, err := blobs(d); err != nil || n != stored {
		return fmt.Errorf("%d of %d are stored: %w", n, stored, err)
	}
	say("read")
	if err := errors.Join(ballast.Truncate(0), put()); err != nil {
		return err
	}
	if n, err := blobs(d); err != nil || n != stored+1 {
		return fmt.Errorf("%d of %d are stored: %w", n, stored+1, err)
	}
	say("room again")
	return d.Close()
}

func blobs(d *DB) (n int, err error) {
	err = d.Read(context.Background(), func(tx *sql.Tx) error { return tx.QueryRow("SELECT count(*) FROM blobs").Scan(&n) })
	return n, err
}
