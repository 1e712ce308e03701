package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"holdfast/internal/fault"
	"holdfast/internal/proc"
	"holdfast/internal/store"
	"holdfast/internal/worktree"
	"holdfast/session"
)

// errLeft: something of a deleted session could not be removed yet.
var errLeft = errors.New("something of a deleted session is still in use and is removed later")

// delete removes a session with everything it had. When it returns an error wrapping errLeft the session is gone, and the rest follows.
func (n *node) delete(ctx context.Context, id session.SessionID) error {
	if err := n.engine.DeleteSession(ctx, id); err != nil {
		return err
	}
	if err := n.erase(ctx); err != nil {
		return errors.Join(errLeft, err)
	}
	return nil
}

// deleteLater is delete where nobody has to hear of what goes later.
func (n *node) deleteLater(ctx context.Context, id session.SessionID) error {
	err := n.delete(ctx, id)
	if errors.Is(err, errLeft) {
		n.log.Warn().Err(err).Msg("something of a deleted session is left for now")
		return nil
	}
	return err
}

// erase removes what deleted sessions had beside the store, then what their rows left in its files. It begins anew wherever it was cut off.
func (n *node) erase(ctx context.Context) error {
	st := store.Store{DB: n.db}
	var all []session.Erasure
	if err := st.Read(ctx, func(tx session.Tx) (err error) { all, err = tx.Erasures(); return err }); err != nil || len(all) == 0 {
		return err
	}
	var done []session.SessionID
	var errs []error
	for _, x := range all {
		if err := n.eraseBeside(ctx, x); err != nil {
			errs = append(errs, fmt.Errorf("erase what session %s left: %w", x.Session, err))
			continue
		}
		done = append(done, x.Session)
	}
	fault.Point("erasure.files_removed")
	if err := n.db.Scrub(ctx); err != nil {
		return errors.Join(append(errs, err)...)
	}
	if len(done) == 0 {
		return errors.Join(errs...)
	}
	err := st.Commit(ctx, "session.erased", func(tx session.Tx) error {
		for _, id := range done {
			if err := tx.Erased(id); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = n.db.Fold(ctx) // else the record of what was erased stays in the file until the log is folded in
	}
	return errors.Join(append(errs, err)...)
}

// eraseBeside removes the folders of calls, the long answers and the recorded work trees of one session.
func (n *node) eraseBeside(ctx context.Context, x session.Erasure) error {
	for _, id := range x.LeftOver.Calls {
		for _, name := range []string{string(id), gone + string(id)} {
			dir := filepath.Join(n.home, "calls", name)
			if st, err := proc.Open(dir).State(); err == nil && (st.Verdict == proc.Live || st.Verdict == proc.Orphaned) {
				return fmt.Errorf("the command of call %s still runs: %w", id, errLeft)
			}
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	for _, digest := range x.LeftOver.Answers {
		name := strings.TrimPrefix(digest, "sha256:")
		for _, name := range []string{name, gone + name} {
			if err := os.Remove(filepath.Join(n.home, "answers", name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	busy, err := n.working(ctx)
	if err != nil {
		return err
	}
	left, err := worktree.New(n.home).Forget(ctx, x.LeftOver.Trees, x.At, busy, func() (map[string]bool, error) { return n.keptTrees(ctx) })
	if err == nil && left > 0 {
		err = errLeft
	}
	return err
}

// working tells whether any session holds work that is wanted: what it records may not be named yet.
func (n *node) working(ctx context.Context) (yes bool, err error) {
	err = store.Store{DB: n.db}.Read(ctx, func(tx session.Tx) error {
		ids, err := tx.Busy()
		yes = len(ids) > 0
		return err
	})
	return yes, err
}

// keptTrees are the recorded work trees that records name.
func (n *node) keptTrees(ctx context.Context) (map[string]bool, error) {
	var names []string
	err := store.Store{DB: n.db}.Read(ctx, func(tx session.Tx) (err error) { names, err = tx.Trees(); return err })
	kept := map[string]bool{}
	for _, name := range names {
		kept[name] = true
	}
	return kept, err
}
