//go:build unix

package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Suspend stops every thread of a process with its state directory in home, and waits until that is so. A process that was met in the middle
// of a write is let go on and stopped again: what is to be looked at is one that holds nobody else up. It is continued when the test ends.
func Suspend(t *testing.T, home string, pid int) {
	t.Helper()
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // whatever fails: a suspended process does not end
	Eventually(t, "the process is suspended outside of a write", func() bool {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		Eventually(t, "every thread stops", func() bool { return stopped(pid) })
		if !writing(home) {
			return true
		}
		_ = syscall.Kill(pid, syscall.SIGCONT)
		return false
	})
}

// stopped tells whether every thread of a process is stopped; where that cannot be seen it is taken to be.
func stopped(pid int) bool {
	if _, err := os.Stat("/proc/self/task"); err != nil {
		return true
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, task := range tasks {
		b, readErr := os.ReadFile(task)
		_, state, _ := strings.Cut(string(b), ") ")
		err = errors.Join(err, readErr)
		if !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return err == nil && len(tasks) > 0
}

// writing tells whether some process holds the store for writing: its lock cannot be had at once.
func writing(home string) bool {
	f, err := os.Open(filepath.Join(home, "run", "gate.lock"))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
