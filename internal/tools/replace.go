package tools

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"holdfast/session"
)

// tempMark is in the name of every temporary file, so that leftovers can be found.
const tempMark = ".holdfast-tmp-"

// replace makes the one change of a plan.
func (o Options) replace(env session.ToolEnv, pl session.Plan) (session.Output, error) {
	if len(pl.Files) != 1 {
		return session.Output{}, fmt.Errorf("a plan with %d changes: %w", len(pl.Files), errors.ErrUnsupported)
	}
	change := pl.Files[0]
	p, err := o.locateWrite(env, change.Path)
	if err != nil {
		return session.Output{}, err
	}
	if err := p.swap(change); err != nil {
		return session.Output{}, err
	}
	what := "Replaced"
	if change.Before == absent {
		what = "Created"
	}
	return session.Output{Text: fmt.Sprintf("%s %s, version %s.", what, shown(env, p.abs), versionOf(change.After)), Digest: change.After}, nil
}

// swap puts new content in place by rename. The old content is looked at once more right before it.
func (p place) swap(change session.FileChange) error {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return failf("%s cannot be written: %v.", p.rel, plainError(err))
	}
	defer func() { _ = root.Close() }()
	mode, err := p.prepare(root)
	if err != nil {
		return err
	}
	tmp, err := writeTemp(root, p.rel, change.NewText, mode)
	if err != nil {
		return failf("%s cannot be written: %v.", p.rel, plainError(err))
	}
	now, err := p.digest()
	if err == nil && now != change.Before {
		err = failf("%s was changed by somebody else meanwhile. Nothing was written; read it again.", p.rel)
	}
	if err == nil {
		err = p.publish(root, tmp, change.Before == absent)
	}
	if err != nil {
		_ = root.Remove(tmp) // a leftover at most
		var te *session.ToolError
		if errors.As(err, &te) {
			return err
		}
		return failf("%s cannot be written: %v.", p.rel, plainError(err))
	}
	return nil
}

// prepare makes the folders of a new file and returns the permissions to write with.
func (p place) prepare(root *os.Root) (fs.FileMode, error) {
	info, err := root.Stat(p.rel)
	if err == nil {
		if !info.Mode().IsRegular() {
			return 0, failf("%s is not a regular file.", p.rel)
		}
		return info.Mode().Perm(), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, failf("%s cannot be written: %v.", p.rel, plainError(err))
	}
	if dir := filepath.Dir(p.rel); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return 0, failf("The folder of %s cannot be made: %v.", p.rel, plainError(err))
		}
	}
	return 0o644, nil
}

func writeTemp(root *os.Root, rel, text string, mode fs.FileMode) (string, error) {
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return "", err
	}
	name := filepath.Join(filepath.Dir(rel), tempMark+hex.EncodeToString(id[:]))
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return name, err
	}
	_, err = f.WriteString(text)
	if err == nil && mode != 0o644 {
		err = f.Chmod(mode) // against the umask
	}
	if err == nil {
		err = f.Sync()
	}
	return name, errors.Join(err, f.Close())
}

// publish renames the temporary file into place. A new file never replaces one that appeared meanwhile.
func (p place) publish(root *os.Root, tmp string, fresh bool) error {
	if fresh {
		if err := root.Link(tmp, p.rel); err != nil {
			if errors.Is(err, fs.ErrExist) {
				return failf("%s was created by somebody else meanwhile. Nothing was written; read it first.", p.rel)
			}
			if !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ENOTSUP) {
				return err
			}
			return errors.Join(root.Rename(tmp, p.rel), syncFolder(root, p.rel)) // no hard links here
		}
		return errors.Join(root.Remove(tmp), syncFolder(root, p.rel))
	}
	return errors.Join(root.Rename(tmp, p.rel), syncFolder(root, p.rel))
}

func syncFolder(root *os.Root, rel string) error {
	d, err := root.Open(filepath.Dir(rel))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// probe tells from digests whether a write happened, and removes what a killed process left beside it.
func (o Options) probe(env session.ToolEnv, pl session.Plan) (session.Finding, error) {
	if len(pl.Files) != 1 {
		return session.Finding{Fact: session.FactUnknown, Note: "The stored plan names no file."}, nil
	}
	change := pl.Files[0]
	p, err := o.locateWrite(env, change.Path)
	if err != nil {
		return session.Finding{Fact: session.FactUnknown, Note: "The file cannot be looked at: " + err.Error()}, nil
	}
	p.sweep()
	now, err := p.digest()
	switch {
	case err != nil:
		return session.Finding{Fact: session.FactUnknown, Note: "The file cannot be looked at: " + err.Error()}, nil
	case now == change.After:
		text := fmt.Sprintf("Written, version %s (proven by its digest after a restart).", versionOf(change.After))
		return session.Finding{Fact: session.FactCompleted, By: session.SettledByProbe, Output: &session.Output{Text: text, Digest: change.After}}, nil
	case now == change.Before:
		return session.Finding{Fact: session.FactNotStarted, By: session.SettledByProbe, Note: "The file is as it was before the call."}, nil
	}
	return session.Finding{Fact: session.FactUnknown, Note: "The file is neither as before nor as intended."}, nil
}

// sweep removes temporary files of ours in the folder of a place.
func (p place) sweep() {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	dir, err := root.Open(filepath.Dir(p.rel))
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1) // what cannot be listed stays
	for _, name := range names {
		if strings.HasPrefix(name, tempMark) {
			_ = root.Remove(filepath.Join(filepath.Dir(p.rel), name))
		}
	}
}
