// Package worktree looks at the user's work tree without touching what the user has there: not the index, not HEAD, not the stash, and
// it writes no object into the user's repository.
//
// A snapshot is a git tree in a private bare repository in the state directory, one for each working directory. Without git there is none,
// and the digests and contents that file edits keep have to do.
//
// Invariants:
//
//	I1: the user's repository is only read; not one byte of it is written. (Git renews the time of an object that it finds there.)
//	I2: what is recorded is what is on disk: no attribute, filter or conversion of line ends has a part in it.
//	I3: a path is changed only while it holds what is expected, by one rename or one removal.
//	I4: files that git ignores are neither recorded nor touched, unless the agent wrote them itself.
//
// It imports session.
package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"holdfast/session"
)

// Tree implements session.Workspace. StateDir is where the private repositories live.
type Tree struct {
	StateDir string

	mu       sync.Mutex
	gitPath  *string              // "" without git
	prepared map[string]bool      // private repositories that are up to date in this process
	slow     map[string]time.Time // private repositories that are left alone until then
}

// New returns the work trees of one state directory.
func New(stateDir string) *Tree {
	return &Tree{StateDir: stateDir, prepared: map[string]bool{}, slow: map[string]time.Time{}}
}

var _ session.Workspace = (*Tree)(nil)

const (
	statusLimit = 5 * time.Second
	statusBytes = 6000
)

// Status describes the work tree now, and what changed since tree, for a model to read, and returns what it recorded for that.
func (t *Tree) Status(ctx context.Context, cwd, tree string) (string, session.Checkpoint) {
	r, ok := t.locate(cwd)
	if !ok {
		return "The work tree is not under git: read the files you wrote before you go on.\n", session.Checkpoint{}
	}
	limited, cancel := context.WithTimeout(ctx, statusLimit)
	defer cancel()
	status, err := t.plain(limited, cwd, "status", "--short", "--", ".")
	if err != nil {
		return "The state of the work tree could not be read (" + err.Error() + ").\n", session.Checkpoint{}
	}
	text := "git status --short:\n" + orNone(status)
	if tree == "" || tree == session.NoTree {
		return cut(text), session.Checkpoint{}
	}
	now, err := t.Snapshot(ctx, cwd)
	if err != nil {
		return cut(text), session.Checkpoint{}
	}
	diff, err := r.git(limited, nil, nil, nil, "diff", "--stat", tree, now.Tree)
	if err != nil {
		return cut(text), now
	}
	return cut(text + "Changed since the interrupted turn began:\n" + orNone(diff)), now
}

func orNone(s string) string {
	if strings.TrimSpace(s) == "" {
		return "(nothing)\n"
	}
	return s
}

// cut keeps a text short enough for a request, at a line's end.
func cut(s string) string {
	if len(s) <= statusBytes {
		return s
	}
	s = s[:statusBytes]
	return s[:strings.LastIndexByte(s, '\n')+1] + "[cut]\n"
}

// Identity names the directory itself: the file system's own number for it, and what HEAD names.
func (t *Tree) Identity(cwd string) (string, error) {
	st, err := os.Stat(cwd)
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", cwd, err)
	}
	if !st.IsDir() {
		return "", fmt.Errorf("look at %s: %w", cwd, errNotDir)
	}
	return fileID(st) + " " + head(cwd), nil
}

// Root names what the directory belongs to: the top of its git work tree, or the directory itself.
func (t *Tree) Root(cwd string) string {
	if real, err := filepath.EvalSymlinks(cwd); err == nil {
		cwd = real
	}
	for d := cwd; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d
		}
		if d == filepath.Dir(d) {
			return cwd
		}
	}
}

// Head is what HEAD names in the repository that holds a directory: the name of a branch with "refs/heads/" before it, "detached", or "no git".
func (t *Tree) Head(cwd string) string { return head(cwd) }

var errNotDir = errors.New("not a directory")

// head is what HEAD names in the repository that holds dir: a branch, or "detached". A detached commit changes with each checkout
// the agent makes, so its hash says nothing about whose directory it is.
func head(dir string) string {
	for d := dir; ; d = filepath.Dir(d) {
		git := filepath.Join(d, ".git")
		if b, err := os.ReadFile(git); err == nil { // a linked work tree
			if p, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: "); ok {
				git = p
				if !filepath.IsAbs(git) {
					git = filepath.Join(d, git)
				}
			}
		}
		if b, err := os.ReadFile(filepath.Join(git, "HEAD")); err == nil {
			if ref, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "ref: "); ok {
				return ref
			}
			return "detached"
		}
		if d == filepath.Dir(d) {
			return "no git"
		}
	}
}
