package main

import (
	"context"
	"fmt"
	"io"

	"holdfast/internal/ident"
	"holdfast/internal/instance"
	"holdfast/internal/store"
	"holdfast/session"
)

// Liveness of a Holdfast process that has a row in the store.
const (
	lives   = "alive"
	isDead  = "dead"    // its lock is free: whoever executes takes its work over
	unclear = "unknown" // no lock file, or another machine: proves nothing
)

// process is a Holdfast process with what its lock says.
type process struct {
	session.InstanceRow
	State string
	Owns  []session.SessionID
}

// startHint is what to run when stored work has nobody to execute it.
const startHint = "holdfast work"

// processes lists the rows of the store and asks each lock. It buries nobody: a lock that turns out to be free is let go at once.
func processes(ctx context.Context, home string, db *store.DB) ([]process, error) {
	var out []process
	err := store.Store{DB: db}.Read(ctx, func(tx session.Tx) error {
		out = nil
		rows, err := tx.Instances()
		if err != nil {
			return err
		}
		for _, r := range rows {
			owns, err := tx.OwnedBy(r.ID)
			if err != nil {
				return err
			}
			out = append(out, process{InstanceRow: r, Owns: owns})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	for i := range out {
		out[i].State = liveness(home, out[i].InstanceRow)
	}
	return out, nil
}

func liveness(home string, row session.InstanceRow) string {
	if row.Host != ident.Host() {
		return unclear
	}
	state, claim, err := instance.Probe(home, string(row.ID))
	switch {
	case err != nil || state == instance.Missing:
		return unclear
	case state == instance.Dead:
		claim.Release()
		return isDead
	}
	return lives
}

// executors lists the live processes that execute work.
func executors(ctx context.Context, home string, db *store.DB) ([]process, error) {
	all, err := processes(ctx, home, db)
	var out []process
	for _, p := range all {
		if executes(p.Kind) && p.State == lives {
			out = append(out, p)
		}
	}
	return out, err
}

// warnIdle tells a person when nobody is there to execute what was just stored.
func warnIdle(ctx context.Context, w io.Writer, home string, db *store.DB) {
	if alive, err := executors(ctx, home, db); err == nil && len(alive) == 0 {
		_, _ = fmt.Fprintf(w, "holdfast: stored; no Holdfast process that executes is running. Start one: %s\n", startHint)
	}
}
