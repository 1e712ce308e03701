package worktree

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// repo is the private bare repository of one working directory. The user's own repository is only read: hooks, filters, attributes and the
// garbage collection of his have no part in it, and nothing is added there.
type repo struct {
	dir  string // the bare repository
	top  string // the user's work tree, which may begin above cwd
	cwd  string // what is recorded
	user string // the user's git directory
}

// attributes switch off everything that would make a recorded file differ from the bytes on disk.
const attributes = "* -text -eol -filter -ident -working-tree-encoding !diff -merge\n"

// settings of every git command here.
var settings = []string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.autocrlf=false", "-c", "core.fileMode=true",
	"-c", "core.symlinks=true", "-c", "core.quotePath=false", "-c", "gc.auto=0", "-c", "core.logAllRefUpdates=false", "-c", "advice.addEmbeddedRepo=false",
	"--no-optional-locks"}

// keyOf names the private repository of a directory.
func keyOf(cwd string) string {
	sum := sha256.Sum256([]byte(cwd))
	return hex.EncodeToString(sum[:12]) + ".git"
}

// locate finds the work tree that holds cwd. ok is false without git.
func (t *Tree) locate(cwd string) (r repo, ok bool) {
	if !t.hasGit() {
		return r, false
	}
	cwd, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		return r, false
	}
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return repo{dir: filepath.Join(t.StateDir, "trees", keyOf(cwd)), top: dir, cwd: cwd, user: gitDir(dir)}, true
		}
		if dir == filepath.Dir(dir) {
			return r, false
		}
	}
}

// gitDir is where the repository of a work tree is: a folder, or what a linked work tree or a submodule names.
func gitDir(top string) string {
	git := filepath.Join(top, ".git")
	if b, err := os.ReadFile(git); err == nil {
		if p, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: "); ok {
			if !filepath.IsAbs(p) {
				p = filepath.Join(top, p)
			}
			return filepath.Clean(p)
		}
	}
	return git
}

// common is the folder that the linked work trees of one repository share.
func common(git string) string {
	b, err := os.ReadFile(filepath.Join(git, "commondir"))
	if err != nil {
		return git
	}
	p := strings.TrimSpace(string(b))
	if !filepath.IsAbs(p) {
		p = filepath.Join(git, p)
	}
	return filepath.Clean(p)
}

func (t *Tree) hasGit() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gitPath == nil {
		p, err := exec.LookPath("git")
		if err != nil {
			p = ""
		}
		t.gitPath = &p
	}
	return *t.gitPath != ""
}

// plain runs git in the user's repository, to read.
func (t *Tree) plain(ctx context.Context, dir string, args ...string) (string, error) {
	out, _, err := run(ctx, dir, environ("GIT_OPTIONAL_LOCKS=0"), nil, nil, append([]string{"-c", "core.fsmonitor=false", "--no-optional-locks"}, args...)...)
	return out, err
}

// git runs git on the private repository. The lock, when given, is held until the last process of it has ended, whatever becomes of us.
func (r repo) git(ctx context.Context, lock *os.File, more []string, in []byte, args ...string) (string, error) {
	out, _, err := r.both(ctx, lock, more, in, args...)
	return out, err
}

// both also returns what git said on its standard error.
func (r repo) both(ctx context.Context, lock *os.File, more []string, in []byte, args ...string) (out, said string, err error) {
	env := environ(append([]string{"GIT_DIR=" + r.dir, "GIT_WORK_TREE=" + r.top, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1"}, more...)...)
	return run(ctx, r.cwd, env, in, lock, append(append([]string{}, settings...), args...)...)
}

func environ(more ...string) (env []string) {
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GIT_") {
			env = append(env, kv)
		}
	}
	return append(env, append([]string{"GIT_TERMINAL_PROMPT=0", "LC_ALL=C"}, more...)...)
}

// failure is a git command that ended with an error.
type failure struct {
	command, text string
	err           error
}

func (e *failure) Error() string { return fmt.Sprintf("git %s: %v: %s", e.command, e.err, e.text) }
func (e *failure) Unwrap() error { return e.err }

func run(ctx context.Context, dir string, env []string, in []byte, lock *os.File, args ...string) (stdout, stderr string, err error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, time.Second
	if lock != nil {
		cmd.ExtraFiles = []*os.File{lock}
	}
	if in != nil {
		cmd.Stdin = bytes.NewReader(in)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), errs.String(), &failure{command(args), strings.TrimSpace(errs.String()), err}
	}
	return out.String(), errs.String(), nil
}

// command is the first argument that is no setting.
func command(args []string) string {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-c":
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		}
	}
	return ""
}

// prepare makes the private repository, and brings what it ignores up to date. Once per process and directory.
func (t *Tree) prepare(ctx context.Context, r repo) error {
	t.mu.Lock()
	done := t.prepared[r.dir]
	t.mu.Unlock()
	_, err := os.Stat(filepath.Join(r.dir, "HEAD"))
	if done && err == nil { // another process may have removed it, with the last session that it was for
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(r.dir), 0o700); err != nil {
			return fmt.Errorf("make a private repository: %w", err)
		}
		if _, _, err := run(ctx, filepath.Dir(r.dir), environ("GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1"), nil, nil,
			"init", "-q", "--bare", "--template=", "--object-format=sha1", r.dir); err != nil {
			return fmt.Errorf("make a private repository: %w", err)
		}
	}
	if err := os.Chmod(r.dir, 0o700); err != nil {
		return fmt.Errorf("make a private repository: %w", err)
	}
	info := filepath.Join(r.dir, "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return fmt.Errorf("make a private repository: %w", err)
	}
	for name, text := range map[string]string{"attributes": attributes, "exclude": t.excludes(ctx, r), "cwd": r.cwd + "\n"} {
		if err := replaceFile(filepath.Join(info, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("make a private repository: %w", err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prepared[r.dir] = true
	return nil
}

// excludes is what the user's own git ignores beside the .gitignore files of the tree, and our state if it lies in it. Files that are too
// large follow at the end.
func (t *Tree) excludes(ctx context.Context, r repo) string {
	var b strings.Builder
	global, err := t.plain(ctx, r.cwd, "config", "--path", "--get", "core.excludesFile")
	if global = strings.TrimSpace(global); err != nil || global == "" {
		base := os.Getenv("XDG_CONFIG_HOME")
		if base == "" {
			base = filepath.Join(os.Getenv("HOME"), ".config")
		}
		global = filepath.Join(base, "git", "ignore")
	}
	for _, path := range []string{global, filepath.Join(common(r.user), "info", "exclude")} {
		if text, err := os.ReadFile(path); err == nil {
			b.Write(append(bytes.TrimRight(text, "\n"), '\n'))
		}
	}
	if state, err := filepath.EvalSymlinks(t.StateDir); err == nil {
		if rel, err := filepath.Rel(r.top, state); err == nil && filepath.IsLocal(rel) && rel != "." {
			b.WriteString(pattern(rel))
		}
	}
	old, _ := os.ReadFile(filepath.Join(r.dir, "info", "exclude")) // not there the first time
	if _, large, ok := strings.Cut(string(old), tooLarge); ok {
		b.WriteString(tooLarge + large)
	}
	return b.String()
}

// pattern ignores exactly one path.
func pattern(rel string) string {
	rel = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(filepath.ToSlash(rel))
	if strings.HasSuffix(rel, " ") {
		rel = rel[:len(rel)-1] + `\ `
	}
	return "/" + rel + "\n"
}

// replaceFile writes a file whole, or not at all.
func replaceFile(path string, b []byte, mode fs.FileMode) error {
	tmp := path + "." + rand.Text() + ".new"
	if err := os.WriteFile(tmp, b, mode); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
