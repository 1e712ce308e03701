//go:build !unix

package tools

import (
	"io"
	"os"
)

// plainFolder opens the files of one folder for a search.
type plainFolder struct{ dir *os.Root }

func openPlainFolder(root *os.Root, path string) (plainFolder, error) {
	dir, err := root.OpenRoot(path)
	return plainFolder{dir}, err
}

func (p plainFolder) close() { _ = p.dir.Close() }

func (p plainFolder) open(base string) (io.ReadSeekCloser, error) {
	f, _, err := openRegular(p.dir, base)
	return f, err
}
