package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast/internal/proc"
	"holdfast/internal/store"
	"holdfast/session"
)

// What stays on disk of a call that is over: the folder of its command, and its answer when that was large. The store keeps the rest.
const (
	keptFor  = 30 * 24 * time.Hour
	looks    = 2000 // folders that one launch looks at
	removals = 200  // and removes
)

// gone is in front of the name of a folder that is being removed: a death in the middle leaves it to the next launch.
const gone = ".gone-"

// prune removes the oldest files of calls that were settled long ago and whose work has ended. What is unknown, running or not yet handed
// on stays, however old it is, and so does everything that no record explains.
func (n *node) prune(ctx context.Context, home string) {
	calls, err1 := prune(filepath.Join(home, "calls"), func(dir, name string) (bool, error) { return n.callOver(ctx, dir, name) })
	answers, err2 := prune(filepath.Join(home, "answers"), func(dir, name string) (bool, error) { return n.answerOver(ctx, dir, name) })
	var temps int
	var err3 error
	if !n.engine.HasBackgrounds() { // one of them may use what it made long ago
		temps, err3 = pruneConfined(home, time.Now())
	}
	if err := errors.Join(err1, err2, err3); err != nil && ctx.Err() == nil {
		n.log.Error().Err(err).Msg("removing files of old calls failed")
	}
	if calls+answers+temps > 0 {
		n.log.Info().Int("calls", calls).Int("answers", answers).Int("temporary", temps).Msg("removed files of old calls")
	}
}

// prune removes what is over in a directory, oldest first: its names begin with the time, or do not matter.
func prune(dir string, over func(dir, name string) (bool, error)) (removed int, err error) {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return 0, err
	}
	slices.Sort(names)
	for i, name := range names {
		if i >= looks || removed >= removals {
			break
		}
		path := filepath.Join(dir, name)
		if !strings.HasPrefix(name, gone) {
			is, err := over(dir, name)
			if err != nil {
				return removed, err
			}
			if !is {
				continue
			}
			out := filepath.Join(dir, gone+name)
			if err := os.Rename(path, out); err != nil {
				continue // another process was faster, or it cannot be done
			}
			path = out
		}
		if os.RemoveAll(path) == nil {
			removed++
		}
	}
	return removed, nil
}

// callOver tells whether the folder of a command is not needed any more.
func (n *node) callOver(ctx context.Context, dir, name string) (bool, error) {
	over := false
	err := store.Store{DB: n.db}.Read(ctx, func(tx session.Tx) error {
		e, err := tx.Effect(session.EffectID(name))
		if err != nil {
			return err
		}
		r, err := tx.Run(e.Run)
		over = e.State == session.EffectSettled && time.Since(e.SettledAt) > keptFor && r.Phase == session.PhaseEnded
		if err != nil || !over {
			return err
		}
		b, err := tx.Background(e.ID)
		if session.IsNotFound(err) {
			return nil
		}
		over = b.State != session.BackgroundRunning && !b.DeliveredAt.IsZero() // its end was told
		return err
	})
	if session.IsNotFound(err) {
		return false, nil
	}
	if err != nil || !over {
		return false, err
	}
	st, err := proc.Open(filepath.Join(dir, name)).State()
	return err == nil && st.Verdict != proc.Live && st.Verdict != proc.Orphaned, nil // what cannot be read stays
}

// answerOver tells whether a large answer is not needed any more. What was never finished is over when it is old.
func (n *node) answerOver(ctx context.Context, dir, name string) (bool, error) {
	if strings.HasPrefix(name, ".part-") {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && time.Since(info.ModTime()) > keptFor, nil
	}
	return n.db.AnswerOver(ctx, name, time.Now().Add(-keptFor))
}
