package main

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// unusedFor is how long nothing in a temporary file of a confined command may have changed before it is removed.
const unusedFor = 3 * 24 * time.Hour

// pruneConfined removes what confined commands left among their temporary files. They may have put links anywhere in there: nothing is
// reached through one that leads out.
func pruneConfined(home string, now time.Time) (removed int, err error) {
	root, err := os.OpenRoot(filepath.Join(home, "confined"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	info, err := root.Lstat("tmp")
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	entries, err := fs.ReadDir(root.FS(), "tmp")
	if err != nil {
		return 0, err
	}
	for i, e := range entries {
		if i >= looks || removed >= removals {
			break
		}
		name := path.Join("tmp", e.Name())
		if unused(root.FS(), name, now) && root.RemoveAll(name) == nil {
			removed++
		}
	}
	return removed, nil
}

// unused tells whether nothing in a tree has changed for long. In doubt it has, and so it has in a tree too large to be looked through.
func unused(fsys fs.FS, name string, now time.Time) bool {
	left := looks
	return fs.WalkDir(fsys, name, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if left--; err != nil || left < 0 || now.Sub(info.ModTime()) < unusedFor {
			return errors.Join(err, errInUse)
		}
		return nil
	}) == nil
}

var errInUse = errors.New("in use")
