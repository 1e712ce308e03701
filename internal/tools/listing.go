package tools

import (
	"io/fs"
	"os"
	"syscall"
)

// readFolder reads the entries of a folder below a root.
func readFolder(root *os.Root, name string) ([]fs.DirEntry, error) {
	dir, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not hold it up
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	if info, err := dir.Stat(); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, syscall.ENOTDIR
	}
	return listFolder(dir)
}
