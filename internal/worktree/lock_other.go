//go:build !unix

package worktree

import (
	"context"
	"errors"
	"os"
)

// held is the lock of one private repository.
type held struct{ file *os.File }

// lock is not available here, and without it nothing is recorded.
func (t *Tree) lock(context.Context, repo) (held, error) { return held{}, errors.ErrUnsupported }

func (h held) release() {}
