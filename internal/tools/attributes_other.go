//go:build !linux && !darwin

package tools

import (
	"os"
	"runtime"
)

// foldsModes: files have no permission to run them here.
const foldsModes = runtime.GOOS == "windows"

func (folder) keepAttributes(string, *os.File) string { return "" }
