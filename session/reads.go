package session

import (
	"context"
	"time"
)

// Readers of one answer share commits. A death before the commit loses results that can be read again, and nothing else; a slow reader is
// stored at once, so that the user sees it end.
const (
	readsTogether = 32
	readsFor      = 50 * time.Millisecond
)

// finishedRead is a call of a trusted reader whose result is not stored yet.
type finishedRead struct {
	call *call
	out  Output
}

// keepRead keeps a result for the next commit, which comes when there are enough of them or the first has waited.
func (t *turn) keepRead(ctx context.Context, r finishedRead) error {
	t.reads = append(t.reads, r)
	if len(t.reads) < readsTogether && time.Since(t.readSince) < readsFor {
		return nil
	}
	return t.storeReads(ctx)
}

// storeReads commits what readers have returned. It comes before whatever else is done in their turn.
func (t *turn) storeReads(ctx context.Context) error {
	done := t.reads
	if t.reads = nil; len(done) == 0 {
		return nil
	}
	return t.commit(ctx, "effect.settled", func(tx Tx) error {
		now := t.e.Now()
		for _, r := range done {
			if err := r.call.settleIn(tx, Finding{Fact: FactCompleted, By: SettledByResult, Output: &r.out}, now); err != nil {
				return err
			}
			if err := r.call.hear(tx, r.out.Heard, now); err != nil {
				return err
			}
		}
		return t.progressed(tx, int64(len(done)), now)
	})
}
