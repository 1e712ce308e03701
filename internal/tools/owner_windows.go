package tools

import (
	"io/fs"
	"os"
)

func keepOwner(*os.File, fs.FileInfo) {}

// namesOf is not known here.
func namesOf(fs.FileInfo) uint64 { return 0 }
