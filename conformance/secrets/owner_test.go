package secrets_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// own gives the world to a user.
func (w *world) own(t *testing.T, uid int) {
	t.Helper()
	err := filepath.WalkDir(w.dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// as runs a command line as a user, from a copy that this user may start.
func (w *world) as(uid uint32, args ...string) (string, int) {
	w.t.Helper()
	b, err := os.ReadFile(builtBinary(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	copied := filepath.Join(w.dir, "holdfast")
	if err := os.WriteFile(copied, b, 0o755); err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(copied, args...)
	cmd.Env, cmd.Dir = w.env, w.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}
