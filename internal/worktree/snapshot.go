package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"holdfast/session"
)

const (
	snapshotLimit = 20 * time.Second
	quickLimit    = 5 * time.Second  // after it, large files are looked for and left out
	slowRest      = 10 * time.Minute // between two that take too long
	largest       = 32 << 20         // bytes of a file that is recorded
	tooLarge      = "# Too large to be recorded.\n"
	planted       = ".git-holdfast" // stands for a nested repository until its files are in the index
	nestedLimit   = 50
)

// Snapshot records the work tree below cwd as a git tree in a private repository; the zero Checkpoint without git. Files that git ignores are
// left alone.
func (t *Tree) Snapshot(ctx context.Context, cwd string) (session.Checkpoint, error) {
	r, ok := t.locate(cwd)
	if !ok {
		return session.Checkpoint{}, nil
	}
	if t.resting(r) {
		return session.Checkpoint{}, errTooSlow
	}
	limited, cancel := context.WithTimeout(ctx, snapshotLimit)
	defer cancel()
	tree, err := t.record(limited, r)
	if limited.Err() != nil && ctx.Err() == nil {
		t.rest(r)
	}
	if err != nil {
		return session.Checkpoint{}, fmt.Errorf("record the work tree: %w", err)
	}
	return session.Checkpoint{Tree: tree, Fingerprint: fingerprint(r, tree)}, nil
}

// errTooSlow: recording took too long a while ago, and nobody waits for it again so soon.
var errTooSlow = errors.New("recording the work tree took too long; it is tried again later")

func (t *Tree) resting(r repo) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	until, ok := t.slow[r.dir]
	return ok && time.Now().Before(until)
}

func (t *Tree) rest(r repo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slow[r.dir] = time.Now().Add(slowRest)
}

func (t *Tree) record(ctx context.Context, r repo) (string, error) {
	if err := t.prepare(ctx, r); err != nil {
		return "", err
	}
	lock, err := t.lock(ctx, r)
	if err != nil {
		return "", err
	}
	defer lock.release()
	// Whoever holds the lock is alone here, the git commands of a dead holder included: what they left is in nobody's hand.
	index, first := filepath.Join(r.dir, "index"), filepath.Join(r.dir, "index.first")
	for _, left := range []string{index + ".lock", first, first + ".lock"} {
		if err := os.Remove(left); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	var tree string
	if _, err := os.Stat(index); errors.Is(err, fs.ErrNotExist) {
		tree, err = r.first(ctx, lock.file, first, index)
		if err != nil {
			return "", err
		}
	} else {
		env := []string{"GIT_INDEX_FILE=" + index}
		if err := r.add(ctx, lock.file, env, true); err != nil {
			return "", err
		}
		if tree, err = r.git(ctx, lock.file, env, nil, "write-tree"); err != nil {
			return "", err
		}
	}
	tree = strings.TrimSpace(tree)
	return tree, r.ref("tree/"+tree, tree)
}

// first records a directory for the first time. What the user's repository has already is not compressed again: it is borrowed while the
// index is made, and then copied, so that a garbage collection of the user's takes nothing away from here. The index gets its name last.
func (r repo) first(ctx context.Context, lock *os.File, tmp, index string) (string, error) {
	env := []string{"GIT_INDEX_FILE=" + tmp, "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(common(r.user), "objects")}
	if err := r.skipLarge(ctx, lock, env); err != nil {
		return "", err
	}
	if err := r.add(ctx, lock, env, false); err != nil {
		return "", err
	}
	tree, err := r.git(ctx, lock, env, nil, "write-tree")
	if err != nil {
		return "", err
	}
	tree = strings.TrimSpace(tree)
	pack := filepath.Join(r.dir, "objects", "pack")
	if err := os.MkdirAll(pack, 0o700); err != nil {
		return "", err
	}
	if _, err := r.git(ctx, lock, env, []byte(tree+"\n"), "pack-objects", "--revs", "--window=0", "-q", filepath.Join(pack, "pack")); err != nil {
		return "", err
	}
	return tree, os.Rename(tmp, index)
}

// embedded are git's words for a repository inside the work tree: it records no file of it by itself.
var embedded = regexp.MustCompile(`(?m)^(?:warning: adding embedded git repository: (.+)|error: '(.+)/' does not have a commit checked out)$`)

// add brings the private index up to date with the work tree, files of nested repositories included. With quick set it does not go on for
// long before it looks for large files.
func (r repo) add(ctx context.Context, lock *os.File, env []string, quick bool) error {
	said, err := r.addOnce(ctx, lock, env, quick)
	if quick && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		if err := r.unlock(env); err != nil {
			return err
		}
		if err := r.skipLarge(ctx, lock, env); err != nil {
			return err
		}
		said, err = r.addOnce(ctx, lock, env, false)
	}
	for range 5 { // a nested repository may hold another one
		nested := r.nested(said)
		if len(nested) == 0 {
			break
		}
		if err := r.plant(ctx, lock, env, nested); err != nil {
			return err
		}
		said, err = r.addOnce(ctx, lock, env, false)
	}
	var f *failure
	if errors.As(err, &f) && ctx.Err() == nil && !strings.Contains(f.text, "fatal:") {
		return nil // single files could not be read; they are left out
	}
	return err
}

// unlock removes what a git command that was ended by us has left.
func (r repo) unlock(env []string) error {
	err := os.Remove(strings.TrimPrefix(env[0], "GIT_INDEX_FILE=") + ".lock")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// addOnce returns what git complained about.
func (r repo) addOnce(ctx context.Context, lock *os.File, env []string, quick bool) (string, error) {
	if quick {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, quickLimit)
		defer cancel()
	}
	_, said, err := r.both(ctx, lock, env, nil, "add", "-A", "--ignore-errors", "--", ".")
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return said, err
}

// nested lists the repositories that git named, apart from linked work trees, which are somebody's own place.
func (r repo) nested(text string) (paths []string) {
	for _, m := range embedded.FindAllStringSubmatch(text, nestedLimit) {
		path := strings.TrimSuffix(m[1]+m[2], "/")
		git := gitDir(filepath.Join(r.top, path))
		if filepath.Base(filepath.Dir(git)) != "worktrees" {
			paths = append(paths, path)
		}
	}
	return paths
}

// plant makes git look into nested repositories: it does so where it has an entry below them.
func (r repo) plant(ctx context.Context, lock *os.File, env []string, nested []string) error {
	blob, err := r.git(ctx, lock, env, []byte{}, "hash-object", "-w", "--stdin")
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, path := range nested {
		fmt.Fprintf(&b, "0 %s\t%s\n100644 %s\t%s\n", strings.Repeat("0", 40), path, strings.TrimSpace(blob), path+"/"+planted)
	}
	_, err = r.git(ctx, lock, env, []byte(b.String()), "update-index", "--index-info")
	return err
}

// skipLarge leaves files out that would take long, and writes down which.
func (r repo) skipLarge(ctx context.Context, lock *os.File, env []string) error {
	list, err := r.git(ctx, lock, env, nil, "ls-files", "-z", "--others", "--modified", "--exclude-standard", "--full-name", "--", ".")
	if err != nil {
		return err
	}
	path := filepath.Join(r.dir, "info", "exclude")
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	more := ""
	for name := range strings.SplitSeq(list, "\x00") {
		st, err := os.Lstat(filepath.Join(r.top, name))
		if err == nil && st.Mode().IsRegular() && st.Size() > largest && !strings.Contains(string(old)+more, pattern(name)) {
			more += pattern(name)
		}
	}
	if more == "" {
		return nil
	}
	if !strings.Contains(string(old), tooLarge) {
		more = tooLarge + more
	}
	return replaceFile(path, append(old, more...), 0o600)
}

// ref keeps a tree from being pruned. A loose ref is a file with the id in it.
func (r repo) ref(name, tree string) error {
	path := filepath.Join(r.dir, "refs", "holdfast", filepath.FromSlash(name))
	if _, err := os.Stat(path); err == nil {
		now := time.Now()
		return os.Chtimes(path, now, now) // it is young again
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return replaceFile(path, []byte(tree+"\n"), 0o600)
}

// Keep gives a recorded tree a name of its own.
func (t *Tree) Keep(_ context.Context, cwd, name, tree string) error {
	r, ok := t.locate(cwd)
	if !ok || tree == "" {
		return nil
	}
	return r.ref(name, tree)
}

// fingerprint says what differs from the last commit: it is the same exactly when HEAD and all recorded files are.
func fingerprint(r repo, tree string) string {
	sum := sha256.Sum256([]byte(headCommit(r.user) + "\n" + tree + "\n"))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// headCommit is the commit of HEAD, "" before the first one.
func headCommit(git string) string {
	b, err := os.ReadFile(filepath.Join(git, "HEAD"))
	if err != nil {
		return ""
	}
	ref, symbolic := strings.CutPrefix(strings.TrimSpace(string(b)), "ref: ")
	if !symbolic {
		return ref
	}
	for _, dir := range []string{git, common(git)} {
		if b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(ref))); err == nil {
			return strings.TrimSpace(string(b))
		}
	}
	packed, _ := os.ReadFile(filepath.Join(common(git), "packed-refs")) // not there without packed refs
	for line := range strings.Lines(string(packed)) {
		if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == ref {
			return id
		}
	}
	return ""
}
