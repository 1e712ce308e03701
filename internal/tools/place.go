package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"holdfast/session"
)

// place is a path with its links resolved.
type place struct {
	root string // the root it lies in, links resolved; outside of every root the deepest folder that is there
	rel  string // below root; "." for the root itself
	abs  string // root and rel joined
	kind session.Place

	inside bool // root is one of the workspace's
}

// maxLinks is where the kernel gives up too.
const maxLinks = 40

// locate is reach for a tool that stays inside the roots (I1).
func (o Options) locate(env session.ToolEnv, path string) (place, error) {
	p, err := o.reach(env, path)
	if err != nil {
		return p, err
	}
	if !p.inside {
		return place{}, failf("outside the workspace: %s. Use a path inside %s.", path, strings.Join(realRoots(env), " or "))
	}
	return p, nil
}

// reach finds the place that a path names, wherever it is but in the state directory (I1, I2). The last parts of it need not exist yet. The
// plan of a call takes over its kind, which is what the policy asks about.
func (o Options) reach(env session.ToolEnv, path string) (place, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return place{}, failf("The path is empty or holds a NUL character. Give the path of a file or folder.")
	}
	full := path
	if !filepath.IsAbs(path) {
		full = env.Cwd + string(filepath.Separator) + path // not cleaned: "link/.." means what it means to a command
	}
	real, err := resolveLinks(full)
	if err != nil {
		return place{}, failf("%s cannot be used: %v.", path, plainError(err))
	}
	if o.ownRecord(real) {
		return place{}, failf("%s belongs to the agent's own records and settings. Leave it alone.", path)
	}
	for _, root := range realRoots(env) {
		if rel, in := below(root, real); in {
			return place{root: root, rel: rel, abs: filepath.Join(root, rel), kind: kindOf(real, rel, true), inside: true}, nil
		}
	}
	top := filepath.Dir(real)
	for !isFolder(top) && top != filepath.Dir(top) {
		top = filepath.Dir(top)
	}
	rel, _ := below(top, real) // it is one of its parents
	return place{root: top, rel: rel, abs: real, kind: kindOf(real, "", false)}, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// again finds the place of a planned reading once more: it is the one that the policy was asked about, or nothing is read.
func (o Options) again(env session.ToolEnv, path string, pl session.Plan) (place, error) {
	p, err := o.reach(env, path)
	if err == nil && (len(pl.Paths) != 1 || p.abs != pl.Paths[0] || p.kind != pl.Place) {
		err = failf("%s leads somewhere else than a moment ago. Nothing was read; try again.", path)
	}
	return p, err
}

// ownRecord tells whether a resolved path lies in the state directory or another folder of ours (I2).
func (o Options) ownRecord(abs string) bool {
	for _, dir := range append([]string{o.StateDir}, o.Own...) {
		if dir == "" {
			continue
		}
		if r, err := resolveLinks(dir); err == nil {
			dir = r
		}
		if _, in := below(dir, abs); in {
			return true
		}
	}
	return false
}

// locateWrite is reach for a file that will be written.
func (o Options) locateWrite(env session.ToolEnv, path string) (place, error) {
	p, err := o.reach(env, path)
	if err != nil {
		return p, err
	}
	if gitInternal(p) {
		return p, failf("%s is inside a .git folder or another part of git's own records, which are not written directly. Use git commands.", path)
	}
	if p.rel == "." {
		return p, failf("%s is a folder. Give the path of a file.", path)
	}
	return p, nil
}

// realRoots are the roots with their links resolved. One that is not there holds nothing.
func realRoots(env session.ToolEnv) []string {
	roots := env.Roots
	if len(roots) == 0 {
		roots = []string{env.Cwd}
	}
	var out []string
	for _, r := range roots {
		if real, err := filepath.EvalSymlinks(r); err == nil && filepath.IsAbs(real) && !slices.Contains(out, real) {
			out = append(out, real)
		}
	}
	return out
}

// below tells whether path lies in dir, and where. Both are clean and absolute.
func below(dir, path string) (string, bool) {
	in, names := parts(dir), parts(path)
	if !sameName(filepath.VolumeName(dir), filepath.VolumeName(path)) || len(names) < len(in) {
		return "", false
	}
	for i := range in {
		if !sameName(in[i], names[i]) {
			return "", false
		}
	}
	return filepath.Join(append([]string{"."}, names[len(in):]...)...), true
}

// resolveLinks follows every link in an absolute path, also one whose target does not exist; parts that do not exist stay as they are.
func resolveLinks(path string) (string, error) {
	sep := string(filepath.Separator)
	top := filepath.VolumeName(path) + sep
	done, rest := top, strings.Split(path[len(filepath.VolumeName(path)):], sep)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		if name == ".." {
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, name)
		info, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			done = next
			continue
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("too many links: %w", syscall.ELOOP)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			done = top
		}
		rest = append(strings.Split(target, sep), rest...)
	}
	return done, nil
}

// plainError is an error without the system call and path in front.
func plainError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// shown is how a place is named to the model: relative to the cwd where that is shorter.
func shown(env session.ToolEnv, abs string) string {
	cwd, err := filepath.EvalSymlinks(env.Cwd)
	if err != nil {
		return abs
	}
	if rel, in := below(cwd, abs); in {
		return rel
	}
	return abs
}

// openFile opens the regular file at a place for reading, below its root (I1). A pipe or a device never blocks it.
func (p place) openFile() (*os.File, fs.FileInfo, error) {
	dir, err := p.parent()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = dir.Close() }()
	return dir.open(p.base())
}

var errNotRegular = errors.New("it is not a regular file")

func openRegular(root *os.Root, rel string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = syscall.EISDIR
	} else if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}
