package session

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The controls of a user. Each is one transaction that any process may make: it changes what is wanted, appends the command, and only
// then is it acknowledged. The owner acts on it; if there is none, the next owner will.

// Draft fills in what a new session begins with. A passive instance leaves it without an owner and without a profile: whoever executes
// it first gives it one.
func (e *Engine) Draft(s Session) (Session, error) {
	now := e.Now()
	s.ID, s.CreatedAt, s.UpdatedAt = SessionID(e.NewID()), now, now
	if s.Mode == "" {
		s.Mode = ModeAsk
	}
	var err error
	if s.Identity, err = e.Workspace.Identity(s.Cwd); err != nil {
		return s, fmt.Errorf("look at the working directory: %w", err)
	}
	s.Profile, s.WorkTree = e.HereFor(s.Choice), e.Workspace.Root(s.Cwd)
	return s, nil
}

// NewSession creates a session that this instance owns and has open.
func (e *Engine) NewSession(ctx context.Context, s Session) (Session, error) {
	s, err := e.Draft(s)
	if err != nil {
		return s, err
	}
	now := s.CreatedAt
	s.Owner, s.Generation = e.Self.ID, 1
	err = e.Store.Commit(ctx, "session.created", func(tx Tx) error {
		var err error
		if s.Profile, err = e.Bring(tx, s.Choice, now); err != nil {
			return err
		}
		if err := tx.InsertSession(s); err != nil {
			return err
		}
		return tx.Attach(e.Window(s.ID, now))
	})
	if err != nil {
		return s, fmt.Errorf("create a session: %w", err)
	}
	e.Own(s.ID, 1)
	return s, nil
}

// For says who this process works for.
func (e *Engine) For(c Client) { e.client.Store(&c) }

// Window is the client of this process on a session.
func (e *Engine) Window(id SessionID, now time.Time) Attachment {
	w := Attachment{Instance: e.Self.ID, Session: id, Profile: e.Here(), At: now}
	if c := e.client.Load(); c != nil {
		w.Client = *c
	}
	return w
}

// Open attaches a client of this instance to a session and takes the session over if nobody owns it, unless its work waits for a process
// that has something else.
func (e *Engine) Open(ctx context.Context, id SessionID, roots []string) (Session, error) {
	var s Session
	var gen int64
	err := e.Store.Commit(ctx, "session.opened", func(tx Tx) (err error) {
		if s, err = tx.Session(id); err != nil {
			return err
		}
		if err := tx.Attach(e.Window(id, e.Now())); err != nil {
			return err
		}
		gen = 0
		takes, waiting, err := e.goesOn(tx, id)
		if err != nil {
			return err
		}
		if s.Owner == "" && !takes {
			if err := e.setAside(tx, waiting, e.Now()); err != nil {
				return err
			}
		}
		if s.Owner == "" && takes {
			if gen, err = tx.Own(id, e.Self.ID); err != nil {
				return err
			}
			s.Owner = e.Self.ID
		}
		if s.Closed || len(roots) > 0 {
			s.Closed, s.UpdatedAt = false, e.Now()
			if len(roots) > 0 {
				s.Roots = roots
			}
			return tx.UpdateSession(s)
		}
		return nil
	})
	if err != nil {
		return s, fmt.Errorf("open session %s: %w", id, err)
	}
	if gen > 0 {
		e.Own(id, gen)
	}
	e.recheck(id)
	e.changed(id)
	return s, nil
}

// recheck makes the owner here look again at work that waits for a resource.
func (e *Engine) recheck(id SessionID) {
	e.mu.Lock()
	a := e.actors[id]
	e.mu.Unlock()
	if a != nil {
		a.askRecheck()
		e.wake(id)
	}
}

// CloseSession detaches the client. Work is interrupted and waits until the session is opened again: it is not a stop.
func (e *Engine) CloseSession(ctx context.Context, id SessionID) error {
	last := false
	err := e.Store.Commit(ctx, "session.closed", func(tx Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		if err := tx.Detach(e.Self.ID, id); err != nil {
			return err
		}
		at, err := tx.Attached(id)
		if err != nil {
			return err
		}
		if last = len(at) == 0; !last {
			return nil // another window has it open: the work is theirs as well
		}
		if err := tx.InsertCommand(Command{ID: e.NewID(), Session: id, Kind: CommandClose, Instance: e.Self.ID, At: e.Now()}); err != nil {
			return err
		}
		s.Closed, s.UpdatedAt = true, e.Now()
		return tx.UpdateSession(s)
	})
	if err != nil {
		return fmt.Errorf("close session %s: %w", id, err)
	}
	if !last || !e.Owns(id) {
		e.changed(id)
		return nil
	}
	e.release(id, ErrDetach)
	err = e.Store.Commit(ctx, "owner.released", func(tx Tx) error {
		s, err := tx.Session(id)
		if err != nil || s.Owner != e.Self.ID {
			return err
		}
		_, err = tx.Own(id, "")
		return err
	})
	e.changed(id)
	return err
}

// IdentityOf names the working directory of a session as it is now, for Rebase; "" when it cannot be looked at.
func (e *Engine) IdentityOf(ctx context.Context, id SessionID) string {
	var s Session
	if err := e.Store.Read(ctx, func(tx Tx) (err error) { s, err = tx.Session(id); return err }); err != nil {
		return ""
	}
	identity, err := e.Workspace.Identity(s.Cwd)
	if err != nil {
		return ""
	}
	return identity
}

// homeless tells whether the working directory of a session is gone. Nothing is begun there then, whoever asks.
func (e *Engine) homeless(s Session) bool {
	if e.Workspace == nil {
		return false
	}
	_, err := e.Workspace.Identity(s.Cwd)
	return err != nil
}

// Remark stores what the user and Holdfast said to each other beside the work: a command, and the line it was answered with. Either may be
// empty. The model never sees it.
func (e *Engine) Remark(ctx context.Context, id SessionID, said, answered Item) error {
	err := e.Commit(ctx, "remark.stored", id, func(tx Tx) error {
		for _, it := range []Item{said, answered} {
			if it.Body.Text == "" {
				continue
			}
			it.Session, it.State, it.CreatedAt = id, ItemComplete, e.Now()
			if err := tx.InsertItem(&it); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("store a remark: %w", err)
	}
	return nil
}

// Cancel stops what runs and what was queued before it, and pauses an active Goal. It returns the command to look for.
func (e *Engine) Cancel(ctx context.Context, id SessionID) (string, error) {
	return e.halt(ctx, id, CommandCancel)
}

// Stop is Cancel for everything: background commands end as well.
func (e *Engine) Stop(ctx context.Context, id SessionID) (string, error) {
	cmd, err := e.halt(ctx, id, CommandStop)
	if err != nil {
		return cmd, err
	}
	e.endSoon(id)
	if err := e.Adopt(ctx, id); err != nil { // somebody has to end what nobody executes; others look for it as well
		e.Log.Error().Err(err).Str("session_id", string(id)).Msg("taking stopped work to its end failed; it is stopped all the same")
	}
	return cmd, nil
}

func (e *Engine) halt(ctx context.Context, id SessionID, kind CommandKind) (string, error) {
	cmd := e.NewID()
	err := e.Commit(ctx, "cancel.accepted", id, func(tx Tx) error {
		now := e.Now()
		if _, err := tx.Session(id); err != nil {
			return err
		}
		runs, err := tx.OpenRuns(id)
		if err != nil {
			return err
		}
		for _, r := range runs {
			if r.Kind != RunPrompt && r.Broken == CodeNone || r.Desired != DesiredRun {
				continue
			}
			r.Desired, r.ReasonCode = DesiredCancelled, CodeUserCancelled
			r.ControlVersion++
			if err := tx.UpdateRun(r, now); err != nil {
				return err
			}
		}
		if err := VoidApprovals(tx, id, now); err != nil {
			return err
		}
		if err := tx.InsertCommand(Command{ID: cmd, Session: id, Kind: kind, Instance: e.Self.ID, At: now}); err != nil {
			return err
		}
		if err := e.Hooks.Cancelled(tx, id, cmd, now); err != nil {
			return err
		}
		if kind == CommandStop { // a cancel leaves them
			if err := stopBackgrounds(tx, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("store the cancel: %w", err)
	}
	return cmd, nil
}

// SetMode changes what the session may do without asking.
func (e *Engine) SetMode(ctx context.Context, id SessionID, m Mode) error {
	return e.Commit(ctx, "mode.set", id, func(tx Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		if s.Broken != CodeNone {
			return &RecordError{Code: s.Broken, Session: id, Record: "session " + string(id)} // it would not be written, and must not seem so
		}
		s.Mode, s.UpdatedAt = m, e.Now()
		if err := tx.UpdateSession(s); err != nil {
			return err
		}
		return tx.InsertCommand(Command{ID: e.NewID(), Session: id, Kind: CommandMode, Ref: string(m), Instance: e.Self.ID, At: s.UpdatedAt})
	})
}

// IsNotFound tells whether a record was missing.
func IsNotFound(err error) bool { return errors.Is(err, ErrNotFound) }
