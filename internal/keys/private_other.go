//go:build !unix

package keys

import "os"

// openPrivate opens a file; who may read it is a matter of the folder here.
func openPrivate(path string) (*os.File, error) { return os.Open(path) }
