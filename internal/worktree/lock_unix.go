//go:build unix

package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// held is the lock of one private repository. Git commands inherit its file, so that it is free only once the last of them has ended, even
// when the process that started them was killed.
type held struct{ file *os.File }

func (t *Tree) lock(ctx context.Context, r repo) (held, error) {
	f, err := os.OpenFile(filepath.Join(r.dir, "holdfast.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return held{}, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return held{f}, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return held{}, errors.Join(fmt.Errorf("lock the private repository: %w", err), f.Close())
		}
		select {
		case <-ctx.Done():
			return held{}, errors.Join(fmt.Errorf("wait for another checkpoint: %w", ctx.Err()), f.Close())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// release closes the file and does not unlock it: a git command that is still there keeps the lock.
func (h held) release() { _ = h.file.Close() }
