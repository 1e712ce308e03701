package worktree

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"holdfast/session"
)

// Put gives one path what it held before, if it holds what it is expected to hold. It is looked at again right before the change, and every
// change is one rename or one removal, so that a crash leaves either state. Folders that become empty stay.
func (t *Tree) Put(p session.PathStep, content []byte) error {
	dir := filepath.Dir(p.Path)
	if err := sameFolder(dir); err != nil {
		return err
	}
	if p.To.Kind == session.PathAbsent {
		if err := t.expect(p); err != nil {
			return err
		}
		return os.Remove(p.Path)
	}
	if p.To.Kind != session.PathFile && p.To.Kind != session.PathLink {
		return fmt.Errorf("put %s back: %w", p.Path, errors.ErrUnsupported)
	}
	if session.BlobID(content) != p.To.Blob {
		return fmt.Errorf("put %s back: the recorded content is not the one that was recorded", p.Path)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	t.Clean(p)
	tmp := temporary(p)
	defer func() { _ = os.Remove(tmp) }() // renamed by then, when all went well
	if err := fill(tmp, p, content); err != nil {
		return err
	}
	if err := t.expect(p); err != nil {
		return err
	}
	return os.Rename(tmp, p.Path)
}

// temporary is where the new content waits for its rename. The name follows from the step, so that whoever finishes it finds a leftover; one
// process carries out a step.
func temporary(p session.PathStep) string {
	sum := sha256.Sum256([]byte(p.Path + "\x00" + p.To.Blob))
	return filepath.Join(filepath.Dir(p.Path), ".holdfast-tmp-undo-"+hex.EncodeToString(sum[:12]))
}

// Clean removes what a process that died in Put left beside the path.
func (t *Tree) Clean(p session.PathStep) {
	if sameFolder(filepath.Dir(p.Path)) == nil {
		_ = os.Remove(temporary(p)) // usually there is none
	}
}

// expect is the last look before a change.
func (t *Tree) expect(p session.PathStep) error {
	now, err := t.At(p.Path)
	if err != nil {
		return err
	}
	if !now.Same(p.From) {
		return session.ErrPathChanged
	}
	return nil
}

// fill makes the temporary file with the permissions of the file it replaces, or those of a new one.
func fill(tmp string, p session.PathStep, content []byte) error {
	if p.To.Kind == session.PathLink {
		return os.Symlink(string(content), tmp)
	}
	mode := fs.FileMode(0o666)
	if p.To.Exec == "yes" {
		mode = 0o777
	}
	old, err := os.Lstat(p.Path)
	replaced := err == nil && old.Mode().IsRegular()
	if replaced {
		mode = 0o600
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && replaced {
		err = f.Chmod(asRecorded(old.Mode().Perm(), p.To.Exec))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// asRecorded keeps the permissions of a file but for the one that was recorded.
func asRecorded(m fs.FileMode, exec string) fs.FileMode {
	switch {
	case exec == "yes" && m&0o100 == 0:
		return m | m&0o444>>2 // who may read it may run it
	case exec == "no":
		return m &^ 0o111
	}
	return m
}

// sameFolder refuses a folder that is reached through a link: the path meant another place when it was recorded.
func sameFolder(dir string) error {
	for d := dir; ; d = filepath.Dir(d) {
		real, err := filepath.EvalSymlinks(d)
		if errors.Is(err, fs.ErrNotExist) && d != filepath.Dir(d) {
			continue // the folder is made again
		}
		if err != nil {
			return err
		}
		if real != d {
			return fmt.Errorf("%s leads to %s since a link was put in its way", d, real)
		}
		return nil
	}
}

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
