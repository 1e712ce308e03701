package toolbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"holdfast/mcp/client"
	"holdfast/session"
)

// inRow is how large an answer may be to be kept in its row; a larger one has a file of its own.
const inRow = 1 << 20

// keep returns what the row holds of an answer. A large answer is on disk, named by its digest, before the row can say so.
func (b *Box) keep(a client.Answer) (string, error) {
	if len(a.Raw) <= inRow {
		return string(a.Raw), nil
	}
	dir := filepath.Join(b.StateDir, "answers")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("keep a large answer: %w", err)
	}
	path := filepath.Join(dir, strings.TrimPrefix(a.Digest, "sha256:"))
	f, err := os.CreateTemp(dir, ".part-*")
	if err != nil {
		return "", fmt.Errorf("keep a large answer: %w", err)
	}
	_, err = f.Write(a.Raw)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("keep a large answer: %w", err), os.Remove(f.Name()))
	}
	return "", nil
}

// Times of storing a late answer: the unknown outcome it replaces is being stored at the same moment.
const (
	lateTries = 100
	latePause = 50 * time.Millisecond
)

// late stores an answer whose call was given as unknown.
func (b *Box) late(ticket string, a client.Answer) {
	b.wg.Go(func() {
		row, err := b.keep(a)
		for i := 0; err == nil && i < lateTries; i++ {
			err = b.Resolve(b.ctx, session.Send{ID: ticket, Kind: a.Kind, Answer: row, AnswerDigest: a.Digest}, output(a))
			if err == nil || !errors.Is(err, session.ErrStale) {
				break
			}
			select {
			case <-time.After(latePause):
				err = nil
			case <-b.ctx.Done():
			}
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			b.Log.Error().Err(err).Str("send_id", ticket).Msg("storing a late answer failed")
		}
	})
}
