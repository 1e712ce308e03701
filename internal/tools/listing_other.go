//go:build !unix

package tools

import (
	"io/fs"
	"os"
)

func listFolder(dir *os.File) ([]fs.DirEntry, error) { return dir.ReadDir(-1) }
