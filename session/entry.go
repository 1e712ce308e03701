package session

import (
	"context"
	"time"
)

// afterLimit bounds what the end of a call waits for the work tree to be recorded.
const afterLimit = 10 * time.Second

// checkpoint records the work tree before a call: once for the attempt, and for each call that may change anything. It returns the tree of
// such a call. When recording fails the work goes on without.
func (c *call) checkpoint(ctx context.Context) (string, error) {
	t := c.t
	opaque := c.effect.Class == Unknown
	if t.e.Workspace == nil || t.att.EntryTree != "" && !opaque {
		return "", nil
	}
	now, err := t.e.Workspace.Snapshot(ctx, t.sess.Cwd)
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	if err != nil {
		t.a.log(err, "recording the work tree failed; going on without")
	}
	t.recorded(now)
	if !opaque {
		return "", nil
	}
	return now.Tree, nil
}

// recorded keeps a checkpoint on the attempt; the next commit that writes the attempt stores it.
func (t *turn) recorded(c Checkpoint) {
	if t.att.EntryTree == "" {
		if t.att.EntryTree = c.Tree; c.Tree == "" {
			t.att.EntryTree = NoTree
		}
	}
	if c.Fingerprint != "" {
		t.att.Fingerprint = c.Fingerprint
	}
}

// after records the work tree at the end of a call that may have changed anything, and returns what stores it.
func (c *call) after(ctx context.Context) func(Tx) error {
	t := c.t
	nothing := func(Tx) error { return nil }
	if t.e.Workspace == nil || c.effect.Class != Unknown {
		return nothing
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterLimit)
	defer cancel()
	now, err := t.e.Workspace.Snapshot(ctx, t.sess.Cwd)
	if err != nil {
		t.a.log(err, "recording the work tree failed; going on without")
	}
	if now.Tree == "" {
		return nothing
	}
	t.recorded(now)
	return func(tx Tx) error {
		all, err := tx.TreesOf(c.effect.Run)
		if err != nil {
			return err
		}
		for _, trees := range all {
			if trees.Effect != c.effect.ID || trees.Before == "" {
				continue
			}
			trees.After = now.Tree
			if err := tx.PutTrees(trees); err != nil {
				return err
			}
			return tx.UpdateAttempt(t.att)
		}
		return nil
	}
}
