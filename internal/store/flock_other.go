//go:build !unix

package store

import (
	"errors"
	"io/fs"
	"os"
)

var errNoLocks = errors.New("the store's locks are not available on this system")

func flockTry(*os.File, bool) (bool, error) { return false, errNoLocks }

func flockWait(*os.File) error { return errNoLocks }

func funlock(*os.File) error { return errNoLocks }

func fileID(fs.FileInfo) identity { return identity{} }
