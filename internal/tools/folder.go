package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// folder is the open folder that a place lies in. Files are reached by their name in it and nothing else: no link that is put in the way
// later leads out of it.
type folder struct {
	*os.Root
	path string
}

// errMoved: what was opened is not what the path names now.
var errMoved = errors.New("a link or another folder was put in its way")

// parent opens the folder of a place. The place had its links resolved, so that every part of it must be a real folder now.
func (p place) parent() (folder, error) {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return folder{}, err
	}
	dir := folder{root, p.root}
	if err := sameAsNamed(dir); err != nil {
		_ = dir.Close()
		return folder{}, err
	}
	names := parts(p.rel)
	for _, name := range names[:max(0, len(names)-1)] {
		next, err := dir.enter(name)
		_ = dir.Close()
		if err != nil {
			return folder{}, err
		}
		dir = next
	}
	return dir, nil
}

// base is the name of a place in its folder.
func (p place) base() string { return filepath.Base(p.rel) }

// sameAsNamed tells whether an opened root is what its path, which has no link in it, names.
func sameAsNamed(dir folder) error {
	real, err := resolveLinks(dir.path)
	if err != nil {
		return err
	}
	opened, err := dir.Stat(".")
	if err != nil {
		return err
	}
	named, err := os.Lstat(dir.path)
	if err != nil {
		return err
	}
	if real != dir.path || !os.SameFile(opened, named) {
		return fmt.Errorf("%s: %w", dir.path, errMoved)
	}
	return nil
}

// enter opens a folder inside. Its name must be the folder's own and not a link's.
func (d folder) enter(name string) (folder, error) {
	next, err := d.OpenRoot(name)
	if err != nil {
		if info, e := d.Lstat(name); e == nil && info.Mode()&fs.ModeSymlink != 0 {
			err = errMoved
		}
		return folder{}, err
	}
	opened, err := next.Stat(".")
	if err == nil {
		var named fs.FileInfo
		if named, err = d.Lstat(name); err == nil && !os.SameFile(opened, named) {
			err = errMoved
		}
	}
	if err != nil {
		_ = next.Close()
		return folder{}, err
	}
	return folder{next, filepath.Join(d.path, name)}, nil
}

// open opens a regular file for reading. A pipe or a device never blocks it.
func (d folder) open(name string) (*os.File, fs.FileInfo, error) {
	f, info, err := openRegular(d.Root, name)
	if err != nil {
		return nil, nil, err
	}
	named, err := d.Lstat(name)
	if err == nil && !os.SameFile(info, named) {
		err = errMoved
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// made are folders that a call made, the outermost first.
type made []place

// makeParents makes the folders of a new file, one by one.
func (p place) makeParents() (made, error) {
	var out made
	names := parts(p.rel)
	for i := 1; i < len(names); i++ {
		in := p
		in.rel = filepath.Join(names[:i]...)
		in.abs = filepath.Join(p.root, in.rel)
		dir, err := in.parent()
		if err != nil {
			return out, err
		}
		err = dir.Mkdir(in.base(), 0o777)
		_ = dir.Close()
		if err == nil {
			out = append(out, in)
		} else if !errors.Is(err, fs.ErrExist) {
			return out, err
		}
	}
	return out, nil
}

// undo removes what was made, as far as it is empty.
func (m made) undo() {
	for i := len(m) - 1; i >= 0; i-- {
		if dir, err := m[i].parent(); err == nil {
			_ = dir.Remove(m[i].base())
			_ = dir.Close()
		}
	}
}

// sync makes the names in a folder last.
func (d folder) sync() error {
	f, err := d.Open(".")
	if err != nil {
		return err
	}
	err = errors.Join(f.Sync(), f.Close())
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // this file system has nothing to sync
	}
	return err
}
