//go:build linux

package proc

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"holdfast/internal/ident"
)

// small is a file system with little room.
func small(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=1m"); errors.Is(err, syscall.EPERM) {
		t.Skip("mounting a small file system needs root: sudo go test -run TestFull ./internal/proc")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A command that fills the disk still gets its receipt.
func TestFull_ReceiptIsWritten(t *testing.T) {
	dir := filepath.Join(small(t), "call")
	h := start(t, counting(dir, "cat /dev/zero; exit 8"))
	if r := finished(t, h); !exited(r, 8) || r.OutputBytes < 500_000 {
		t.Errorf("receipt %v", r)
	}
	if err := os.WriteFile(filepath.Join(dir, "more"), make([]byte, 8192), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the disk was not full: %v", err)
	}
}

// Nor does a full disk keep a command from being stopped.
func TestFull_StopWorks(t *testing.T) {
	disk := small(t)
	dir := filepath.Join(disk, "call")
	h := start(t, counting(dir, "cat /dev/zero; echo full > ../full; sleep 60"))
	eventually(t, "the command has met the full disk", func() bool { _, err := os.Stat(filepath.Join(disk, "full")); return err == nil })
	fill(t, disk)
	if r, err := h.Stop(within(t), CauseUser); err != nil || r.Stopped != CauseUser {
		t.Errorf("receipt %v, %v", r, err)
	}
}

// fill takes all the room there is.
func fill(t *testing.T, disk string) {
	t.Helper()
	f, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// When there is no room from the start, nothing runs.
func TestFull_NoRoomNoStart(t *testing.T) {
	disk := small(t)
	fill(t, disk)
	dir := filepath.Join(disk, "call")
	if _, err := Start(counting(dir, "exit 0")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("starting says %v", err)
	}
	if s := verdict(t, Open(dir)); s.Verdict != NotStarted || s.Supervisor != (ident.Process{}) {
		t.Errorf("state %+v", s)
	}
}

// When the room goes just after the start, the command is not forgotten.
func TestFull_NoRoomForTheIdentity(t *testing.T) {
	log, resume := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "resume")
	t.Setenv("HOLDFAST_SUPERVISOR_CRASH", "supervisor.started/pause")
	t.Setenv("HOLDFAST_SUPERVISOR_CRASH_LOG", log)
	t.Setenv("HOLDFAST_SUPERVISOR_CRASH_RESUME", resume)
	disk := small(t)
	dir := filepath.Join(disk, "call")
	h := start(t, Spec{Dir: dir, Argv: []string{"/bin/sh", "-c", "exit 8"}, Cwd: "/"})
	paused(t, log)
	fill(t, disk)
	if err := os.WriteFile(resume, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := finished(t, h); !exited(r, 8) {
		t.Errorf("receipt %v", r)
	}
	if _, err := os.Stat(path(dir, "running")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there was room: %v", err)
	}
}
