package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"holdfast/internal/ident"
	"holdfast/internal/instance"
	"holdfast/internal/store"
	"holdfast/session"
)

// Taking a session from a live process is a person's act. A generation fences rows, not actions, so the process is ended first.
const (
	takeoverGrace = 3 * time.Second // between TERM and KILL
	takeoverLimit = 5 * time.Second // for the kernel to let go after KILL
)

func takeoverCommand(id session.SessionID) string { return "holdfast sessions takeover " + string(id) }

func goOn(pid int, id session.SessionID) string {
	return fmt.Sprintf("Continue it (kill -CONT %d), or end it and go on elsewhere: %s", pid, takeoverCommand(id))
}

func moveHere(id session.SessionID) string {
	return "When it does not run there any more: " + takeoverCommand(id) + " --from-other-host"
}

// takeoverOf is what a person can do about the owner of a session.
func takeoverOf(s session.SessionView) string {
	if s.ReasonCode == session.CodeOtherHost {
		return moveHere(s.SessionID)
	}
	return goOn(s.OwnerPID, s.SessionID)
}

// takeover is what a person asked for, looked at before anything is done.
type takeover struct {
	home     string
	row      session.InstanceRow
	now      session.Condition
	holdings []session.Holding
}

// planTakeover finds who has a session and what ending that process means.
func planTakeover(ctx context.Context, home string, st session.Store, id session.SessionID, self session.InstanceID) (t takeover, err error) {
	t.home = home
	err = st.Read(ctx, func(tx session.Tx) error {
		if t.row, err = session.OwnerOf(tx, id, self); err != nil {
			return err
		}
		t.holdings, err = session.HoldingsOf(tx, t.row.ID)
		return err
	})
	if err == nil {
		t.now = asked(home, []session.InstanceRow{t.row})[0]
	}
	return t, err
}

// mayEnd refuses what cannot or need not be ended.
func (t takeover) mayEnd() error {
	switch t.now.Life {
	case session.LifeDead:
		return session.ErrOwnerDead
	case session.LifeElsewhere:
		return fmt.Errorf("%w; when it does not run there any more, say --from-other-host", session.ErrOwnerElse)
	case session.LifeUnclear:
		return fmt.Errorf("whether process %d has this store open cannot be told: its lock file is missing here or was copied here; "+
			"end it yourself if it works in these directories, and the work goes on by itself", t.row.PID)
	}
	if running, err := identity(t.row).Running(); err != nil || !running {
		return fmt.Errorf("process %d is not the one that is recorded any more, and nothing is signalled: %w", t.row.PID, errors.Join(err, ident.ErrGone))
	}
	return nil
}

// says names what will be ended, a line each.
func (t takeover) says() []string {
	head := fmt.Sprintf("process %d (%s, since %s)", t.row.PID, t.row.Kind, clock(t.row.StartedAt))
	switch {
	case t.now.Suspended:
		head += ", suspended since about " + clock(t.now.Since)
	case t.now.Life == session.LifeSilent:
		head += ", not responding since " + clock(t.now.Since)
	case t.now.Life == session.LifeElsewhere:
		head += " on another machine (" + t.now.Host + ")"
	}
	lines := []string{head}
	for _, h := range t.holdings {
		what := "nothing unfinished"
		var kinds []string
		for _, r := range h.Runs {
			kinds = append(kinds, string(r.Kind)+" "+string(r.Phase))
		}
		if len(kinds) > 0 {
			what = strings.Join(kinds, ", ")
		}
		lines = append(lines, fmt.Sprintf("  session %s %q in %s: %s, open in %s", h.Session, line(h.Title, 40), line(h.Cwd, 100), what, plural(h.Attached, "window")))
	}
	return lines
}

// many tells whether more ends than the one session that was named.
func (t takeover) many(id session.SessionID) bool {
	for _, h := range t.holdings {
		if h.Session != id {
			return true
		}
	}
	return false
}

// end ends the process and returns when its lock is provably free. Every signal checks the identity again behind a handle.
func (t takeover) end(ctx context.Context) error {
	p := identity(t.row)
	// A stopped process acts on TERM once it is continued: it lets go in order, and frees the store if it holds it.
	for _, sig := range politely {
		if err := ident.Signal(p, sig); err != nil && !errors.Is(err, ident.ErrGone) {
			return fmt.Errorf("end process %d: %w", p.PID, err)
		}
	}
	if ok, err := t.gone(ctx, takeoverGrace); ok || err != nil {
		return err
	}
	if err := ident.Signal(p, syscall.SIGKILL); err != nil && !errors.Is(err, ident.ErrGone) {
		return fmt.Errorf("end process %d: %w", p.PID, err)
	}
	ok, err := t.gone(ctx, takeoverLimit)
	if err == nil && !ok {
		err = fmt.Errorf("process %d did not end; nothing was taken over", p.PID)
	}
	return err
}

// gone waits until the process has ended and its lock is free.
func (t takeover) gone(ctx context.Context, within time.Duration) (bool, error) {
	for deadline := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		running, err := identity(t.row).Running()
		if err != nil {
			return false, err
		}
		state, claim, err := instance.Probe(t.home, string(t.row.ID))
		if claim != nil {
			claim.Release()
		}
		switch {
		case err != nil:
			return false, err
		case !running && state != instance.Alive:
			return true, nil
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case time.Now().After(deadline):
			return false, nil
		}
	}
}

// adopt goes on with what an ended process had, in a process that executes; one that does not frees it for those that do.
func (n *node) adopt(ctx context.Context, ended session.InstanceID) error {
	if !n.engine.Passive {
		n.bury(ctx, n.home, []string{string(ended)})
		n.buryUnlocked(ctx)
		_, err := n.engine.TakeUnowned(ctx)
		return err
	}
	err := (store.Store{DB: n.db}).Read(ctx, func(tx session.Tx) error { _, err := tx.Instance(ended); return err })
	if session.IsNotFound(err) {
		return nil // it let go in order, or another has taken it
	}
	if err != nil {
		return err
	}
	return n.engine.Disown(ctx, ended)
}

// takeFrom is the takeover of a window: it ends the process that has the session, and goes on with it here.
func (n *node) takeFrom(ctx context.Context, id session.SessionID, sure bool) (string, error) {
	t, err := planTakeover(ctx, n.home, store.Store{DB: n.db}, id, n.engine.Self.ID)
	if err == nil {
		err = t.mayEnd()
	}
	if why := refusedTakeover(err); why != "" {
		return why, nil
	}
	if err != nil {
		return "", err
	}
	if t.many(id) && !sure {
		return "That ends more than this session:\n" + strings.Join(t.says(), "\n") + "\nSay /takeover yes to end it all the same.", nil
	}
	if err := t.end(ctx); err != nil {
		return "", err
	}
	if err := n.adopt(ctx, t.row.ID); err != nil {
		return "", err
	}
	if err := n.engine.Adopt(ctx, id); err != nil {
		return "", err
	}
	return fmt.Sprintf("Process %d was ended. This window goes on with the session.", t.row.PID), nil
}

// refusedTakeover is what a person reads when there is nothing to take over.
func refusedTakeover(err error) string {
	for _, e := range []error{session.ErrNoOwner, session.ErrOwnerDead, session.ErrOwnerHere, session.ErrOwnerElse, ident.ErrGone} {
		if errors.Is(err, e) {
			s := err.Error()
			return strings.ToUpper(s[:1]) + s[1:] + "."
		}
	}
	return ""
}
