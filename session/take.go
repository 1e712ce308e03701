package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// TakeDead takes over what a provably dead instance owned. The caller holds the dead one's lock.
func (e *Engine) TakeDead(ctx context.Context, dead InstanceID) error {
	var got []gained
	var left []SessionID
	err := e.Store.Commit(ctx, "owner.takeover", func(tx Tx) error {
		got, left = nil, nil
		row, err := tx.Instance(dead)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if row.Host != e.Self.Host {
			return fmt.Errorf("instance %s: %w", dead, errOtherHost)
		}
		ids, err := tx.OwnedBy(dead)
		if err != nil {
			return err
		}
		if err := tx.MarkDied(dead); err != nil {
			return err
		}
		if err := tx.DeleteInstance(dead); err != nil {
			return err
		}
		for _, id := range ids {
			runs, err := tx.OpenRuns(id)
			if err == nil && len(runs) == 0 {
				continue // nothing to do: whoever opens it next becomes its owner
			}
			if !e.spoilt(id, err) && err != nil {
				return err
			}
			if err := e.take(tx, id, &got, &left); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("take over from %s: %w", dead, err)
	}
	for _, t := range got {
		e.Log.Info().Str("session_id", string(t.id)).Int64("generation", t.gen).Str("from", string(dead)).Msg("took over")
	}
	e.own(got)
	for _, id := range left {
		e.changed(id)
	}
	return nil
}

// take makes this instance the owner of a session whose work can go on here. Any other is left free for one that can go on with it, and
// one with a record that cannot be used is left as it is.
func (e *Engine) take(tx Tx, id SessionID, got *[]gained, left *[]SessionID) error {
	ok, waiting, err := e.goesOn(tx, id)
	if err == nil && !ok {
		*left = append(*left, id)
		return e.setAside(tx, waiting, e.Now())
	}
	var g gained
	if err == nil {
		g, err = e.gain(tx, id)
	}
	if e.spoilt(id, err) {
		if g.gen > 0 {
			_, err = tx.Own(id, "")
			return err
		}
		return nil
	}
	if err == nil {
		*got = append(*got, g)
	}
	return err
}

// spoilt tells whether an error is about a record of one session: that keeps no other from being taken.
func (e *Engine) spoilt(id SessionID, err error) bool {
	var broken *RecordError
	if !errors.As(err, &broken) {
		return false
	}
	e.Log.Error().Err(err).Str("session_id", string(id)).Msg("a session cannot be taken over")
	return true
}

var errOtherHost = errors.New("it belongs to another machine")

// TakeUnowned takes sessions nobody owns that hold wanted work: their owner let go of them, or a passive instance stored it. Work that
// cannot go on here stays free, and is shown as waiting. It returns how many were taken.
func (e *Engine) TakeUnowned(ctx context.Context) (taken int, err error) {
	if e.Passive {
		return 0, nil
	}
	var ids []SessionID
	err = e.Store.Read(ctx, func(tx Tx) error {
		ids = nil
		free, err := tx.Unowned()
		if err != nil {
			return err
		}
		for _, id := range free {
			ok, waiting, err := e.goesOn(tx, id)
			if e.spoilt(id, err) {
				continue
			}
			if err != nil {
				return err
			}
			if ok || slices.ContainsFunc(waiting, func(r Run) bool { return !r.shown() }) {
				ids = append(ids, id)
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("find unowned work: %w", err)
	}
	for len(ids) > 0 {
		n := min(len(ids), claimAtOnce)
		got, err := e.claimAll(ctx, ids[:n])
		if err != nil {
			return taken, err
		}
		taken += len(got)
		ids = ids[n:]
	}
	return taken, nil
}

// claimAll makes this instance the owner of those of the sessions that nobody has and whose work can go on here.
func (e *Engine) claimAll(ctx context.Context, ids []SessionID) (got []gained, err error) {
	var aside []SessionID
	err = e.Store.Commit(ctx, "owner.claim", func(tx Tx) error {
		got, aside = nil, nil
		for _, id := range ids {
			s, err := tx.Session(id)
			if err == nil && s.Owner != "" {
				continue
			}
			if !e.spoilt(id, err) && err != nil {
				return err
			}
			if err := e.take(tx, id, &got, &aside); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim sessions: %w", err)
	}
	e.own(got)
	for _, id := range aside {
		e.bus.publish(id, Live{Wake: true})
	}
	return got, nil
}

// claimAtOnce is how many sessions one transaction claims: others write in between.
const claimAtOnce = 250

// Adopt makes this instance the owner of a session that nobody owns, so that accepted work starts at once.
func (e *Engine) Adopt(ctx context.Context, id SessionID) error {
	if e.Passive {
		return nil
	}
	var s Session
	if err := e.Store.Read(ctx, func(tx Tx) (err error) { s, err = tx.Session(id); return err }); err != nil {
		return fmt.Errorf("load session %s: %w", id, err)
	}
	if s.Owner != "" {
		return nil
	}
	_, err := e.claim(ctx, id)
	return err
}

// claim makes this instance the owner unless somebody is, or the work cannot go on here. It returns the owner.
func (e *Engine) claim(ctx context.Context, id SessionID) (InstanceID, error) {
	var owner InstanceID
	var gen int64
	parked := false
	err := e.Store.Commit(ctx, "owner.claim", func(tx Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		owner, gen, parked = s.Owner, s.Generation, false
		if owner != "" {
			return nil
		}
		ok, waiting, err := e.goesOn(tx, id)
		if err != nil {
			return err
		}
		if !ok {
			parked = true
			return e.setAside(tx, waiting, e.Now())
		}
		owner = e.Self.ID
		gen, err = tx.Own(id, e.Self.ID)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("claim session %s: %w", id, err)
	}
	if owner == e.Self.ID {
		e.Own(id, gen)
	}
	if parked {
		e.bus.publish(id, Live{Wake: true})
	}
	return owner, nil
}
