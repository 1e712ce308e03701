package worktree

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"holdfast/session"
)

// Changed lists the files that differ between two recorded trees.
func (t *Tree) Changed(ctx context.Context, cwd, before, after string) ([]session.PathChange, error) {
	r, ok := t.locate(cwd)
	if !ok || before == after {
		return nil, nil
	}
	out, err := r.git(ctx, nil, nil, nil, "diff-tree", "-r", "-z", "--no-renames", before, after)
	if err != nil {
		return nil, fmt.Errorf("compare two recorded work trees: %w", err)
	}
	var changes []session.PathChange
	fields := strings.Split(out, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		var m [2]string
		var id [2]string
		var status string
		if _, err := fmt.Sscanf(fields[i], ":%6s %6s %40s %40s %s", &m[0], &m[1], &id[0], &id[1], &status); err != nil {
			return nil, fmt.Errorf("read what git says of two trees: %w", err)
		}
		changes = append(changes, session.PathChange{Path: filepath.Join(r.top, filepath.FromSlash(fields[i+1])), Before: stateOf(m[0], id[0]), After: stateOf(m[1], id[1])})
	}
	return changes, nil
}

// stateOf is what git's mode and id say of a path.
func stateOf(mode, id string) session.PathState {
	switch mode {
	case "000000":
		return session.PathState{Kind: session.PathAbsent}
	case "100644":
		return session.PathState{Kind: session.PathFile, Blob: id, Exec: "no"}
	case "100755":
		return session.PathState{Kind: session.PathFile, Blob: id, Exec: "yes"}
	case "120000":
		return session.PathState{Kind: session.PathLink, Blob: id}
	}
	return session.PathState{Kind: session.PathOther, Blob: id}
}

// Content returns what a recorded file or link held.
func (t *Tree) Content(ctx context.Context, cwd, blob string) ([]byte, error) {
	r, ok := t.locate(cwd)
	if !ok {
		return nil, fs.ErrNotExist
	}
	out, err := r.git(ctx, nil, nil, nil, "cat-file", "blob", blob)
	if err != nil {
		return nil, fmt.Errorf("read a recorded file: %w", errors.Join(fs.ErrNotExist, err))
	}
	return []byte(out), nil
}

// At says what a path holds now. What cannot be looked at is an error.
func (t *Tree) At(path string) (session.PathState, error) {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), isNotDir(err):
		return session.PathState{Kind: session.PathAbsent}, nil
	case err != nil:
		return session.PathState{}, fmt.Errorf("look at %s: %w", path, err)
	case st.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(path)
		if err != nil {
			return session.PathState{}, fmt.Errorf("look at %s: %w", path, err)
		}
		return session.PathState{Kind: session.PathLink, Blob: session.BlobID([]byte(to))}, nil
	case !st.Mode().IsRegular():
		return session.PathState{Kind: session.PathOther}, nil
	}
	id, err := hashFile(path)
	if err != nil {
		return session.PathState{}, fmt.Errorf("look at %s: %w", path, err)
	}
	return session.PathState{Kind: session.PathFile, Blob: id, Exec: executable(st.Mode())}, nil
}

func executable(m fs.FileMode) string {
	if m&0o100 != 0 {
		return "yes"
	}
	return "no"
}

// hashFile is git's id of a file's bytes.
func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", st.Size())
	n, err := io.Copy(h, f)
	if err == nil && n != st.Size() {
		err = errors.New("it changes while it is read")
	}
	return hex.EncodeToString(h.Sum(nil)), err
}
