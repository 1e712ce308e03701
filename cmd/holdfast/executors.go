package main

import (
	"context"
	"fmt"
	"io"

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
	Now   session.Condition
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
	rows := make([]session.InstanceRow, len(out))
	for i := range out {
		rows[i] = out[i].InstanceRow
	}
	for i, c := range asked(home, rows) {
		out[i].Now = c
		switch c.Life {
		case session.LifeAlive, session.LifeSilent:
			out[i].State = lives
		case session.LifeDead:
			out[i].State = isDead
		default:
			out[i].State = unclear
		}
	}
	return out, nil
}

// executors lists the live processes that execute work.
func executors(ctx context.Context, home string, db *store.DB) ([]process, error) {
	all, err := processes(ctx, home, db)
	var out []process
	for _, p := range all {
		if executes(p.Kind) && p.Now.Life == session.LifeAlive { // one that is suspended executes nothing
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
