// Package worktree looks at the user's work tree without touching what the user has there: not the index, not HEAD, not the stash, and
// it writes no object into the user's repository.
//
// A snapshot is a git tree made through a private index and a private object folder in the state directory. Without git there is none,
// and the file digests that edits keep have to do.
//
// It imports session.
package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"holdfast/session"
)

// Tree implements session.Workspace. StateDir is where private indexes and objects live.
type Tree struct{ StateDir string }

var _ session.Workspace = Tree{}

const (
	snapshotLimit = 20 * time.Second
	statusLimit   = 5 * time.Second
	statusBytes   = 6000
)

// git runs one git command in the work tree with a private environment; nothing in it asks or pages.
func (t Tree) git(ctx context.Context, id session.SessionID, cwd string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.fsmonitor=false", "-c", "gc.auto=0", "--no-optional-locks"}, args...)...)
	cmd.Dir = cwd
	cmd.WaitDelay = time.Second
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GIT_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	if id != "" {
		private, err := t.private(ctx, id, cwd)
		if err != nil {
			return "", err
		}
		cmd.Env = append(cmd.Env, private...)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// private is the environment that keeps git away from the user's index and objects.
func (t Tree) private(ctx context.Context, id session.SessionID, cwd string) ([]string, error) {
	common, err := t.git(ctx, "", cwd, "rev-parse", "--path-format=absolute", "--git-path", "objects")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(t.StateDir, "trees", string(id))
	objects := filepath.Join(dir, "objects")
	if err := os.MkdirAll(objects, 0o700); err != nil {
		return nil, fmt.Errorf("make a private object folder: %w", err)
	}
	return []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index"), "GIT_OBJECT_DIRECTORY=" + objects,
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + strings.TrimSpace(common)}, nil
}

func inGit(cwd string) bool {
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// Snapshot records the work tree below cwd as a git tree, "" without git.
func (t Tree) Snapshot(ctx context.Context, id session.SessionID, cwd string) (string, error) {
	if _, err := exec.LookPath("git"); err != nil || !inGit(cwd) {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotLimit)
	defer cancel()
	if _, err := t.git(ctx, id, cwd, "add", "-A", "--ignore-errors", "."); err != nil {
		return "", fmt.Errorf("record the work tree: %w", err)
	}
	tree, err := t.git(ctx, id, cwd, "write-tree")
	if err != nil {
		return "", fmt.Errorf("record the work tree: %w", err)
	}
	return strings.TrimSpace(tree), nil
}

// Status describes the work tree now, and what changed since tree, for a model to read.
func (t Tree) Status(ctx context.Context, id session.SessionID, cwd, tree string) string {
	if _, err := exec.LookPath("git"); err != nil || !inGit(cwd) {
		return "The work tree is not under git: read the files you wrote before you go on.\n"
	}
	limited, cancel := context.WithTimeout(ctx, statusLimit)
	defer cancel()
	status, err := t.git(limited, "", cwd, "status", "--short", "--", ".")
	if err != nil {
		return "The state of the work tree could not be read (" + err.Error() + ").\n"
	}
	text := "git status --short:\n" + orNone(status)
	if tree == "" || tree == "none" {
		return cut(text)
	}
	now, err := t.Snapshot(ctx, id, cwd)
	if err != nil {
		return cut(text)
	}
	diff, err := t.git(limited, id, cwd, "diff", "--stat", tree, now)
	if err != nil {
		return cut(text)
	}
	return cut(text + "Changed since the interrupted turn began:\n" + orNone(diff))
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
func (t Tree) Identity(cwd string) (string, error) {
	st, err := os.Stat(cwd)
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", cwd, err)
	}
	if !st.IsDir() {
		return "", fmt.Errorf("look at %s: %w", cwd, errNotDir)
	}
	return fileID(st) + " " + head(cwd), nil
}

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
