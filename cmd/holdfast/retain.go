package main

import (
	"context"
	"fmt"
	"time"

	"holdfast/session"
)

const (
	retainEvery = time.Hour
	retainMost  = 50 // sessions that one pass deletes
	day         = 24 * time.Hour
)

// keepFor is how long a session that lies still is kept; 0 is for ever.
func keepFor(home string) time.Duration {
	c, err := settings(home)
	if err != nil || c.Sessions.KeepDays <= 0 { // what cannot be read deletes nothing
		return 0
	}
	return time.Duration(c.Sessions.KeepDays * float64(day))
}

// retain deletes sessions that have lain still for longer than the configuration keeps them, and finishes what a deletion left, now and then.
func (n *node) retain(ctx context.Context) {
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	for {
		if keep := keepFor(n.home); keep > 0 {
			ids, err := n.engine.DeleteLying(ctx, n.engine.Now().Add(-keep), retainMost)
			if len(ids) > 0 {
				n.log.Info().Int("sessions", len(ids)).Msg("deleted sessions that had lain still for longer than they are kept")
			}
			if err != nil && ctx.Err() == nil {
				n.log.Error().Err(err).Msg("deleting old sessions failed")
			}
		}
		if err := n.erase(ctx); err != nil && ctx.Err() == nil {
			n.log.Warn().Err(err).Msg("something of a deleted session is left for now")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// listed is a session in a listing, with when it is deleted by itself.
type listed struct {
	session.SessionView
	DeletedAfter *time.Time `json:"deletedAfter"` // null when it is kept for ever, or as it stands
}

// expiring adds when each is deleted by itself if nothing changes.
func (c *cli) expiring(ctx context.Context, all []session.SessionView) ([]listed, error) {
	out := make([]listed, len(all))
	for i, s := range all {
		out[i].SessionView = s
	}
	keep := keepFor(c.home)
	if keep == 0 || c.db == nil {
		return out, nil
	}
	var lying []session.SessionID
	err := c.st.Read(ctx, func(tx session.Tx) (err error) { lying, err = tx.Lying(time.Now().Add(day), -1); return err })
	still := map[session.SessionID]bool{}
	for _, id := range lying {
		still[id] = true
	}
	for i := range out {
		if still[out[i].SessionID] {
			at := out[i].UpdatedAt.Add(keep)
			out[i].DeletedAfter = &at
		}
	}
	return out, err
}

// going says in one line what a listing's sessions are deleted by themselves.
func (c *cli) going(all []listed) {
	n, first := 0, time.Time{}
	for _, s := range all {
		if s.DeletedAfter != nil {
			if n++; first.IsZero() || s.DeletedAfter.Before(first) {
				first = *s.DeletedAfter
			}
		}
	}
	if n > 0 {
		_, _ = fmt.Fprintf(c.errs, "sessions.keep_days is set: %s of these will be deleted as they stand, the first after %s\n", plural(n, "session"), clock(first))
	}
}
