//go:build !linux

package tools

import (
	"errors"
)

// exchange is not used here: the file is looked at right before the rename.
func (d folder) exchange(_, _ string) error { return errors.ErrUnsupported }

// linkTo is for one folder here; a move between two writes the file anew.
func (d folder) linkTo(name string, to folder, as string) error {
	if d.path == to.path {
		return d.Link(name, as)
	}
	return errors.ErrUnsupported
}
