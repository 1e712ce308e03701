package session

import (
	"context"
	"fmt"
	"time"
)

// Auto is what is done by itself with work whose process is gone.
type Auto string

const (
	AutoDefault  Auto = ""         // of a session: as configured
	AutoAlways   Auto = "always"   // it goes on
	AutoAttached Auto = "attached" // it goes on once a client opens the session
	AutoOff      Auto = "off"      // it waits for a person's word
)

// Autos are the values that a person can set.
var Autos = []Auto{AutoAlways, AutoAttached, AutoOff}

// HeldBack says what holds a run back that was left behind, CodeNone for nothing. It concerns nothing else.
func (e *Engine) HeldBack(tx Tx, s Session, r Run) (Code, error) {
	auto := s.Recovery
	if auto == AutoDefault {
		auto = e.Auto
	}
	switch {
	case s.Closed:
		return CodeClosedByClient, nil
	case !r.Left || auto == AutoAlways || auto == AutoDefault:
		return CodeNone, nil
	case auto == AutoOff:
		return CodeRecoveryOff, nil
	}
	watched, err := Attended(tx, s.ID, e.Self.ID)
	if err != nil || watched {
		return CodeNone, err
	}
	return CodeNotAttached, nil
}

// heldBack tells whether a code is that of work that was left behind and waits for a word.
func heldBack(c Code) bool { return c == CodeRecoveryOff || c == CodeNotAttached }

// lift is a person's word that what was left behind in a session goes on, all of it and in order: a turn in the middle of the conversation
// is not left out because a later one is wanted.
func lift(tx Tx, id SessionID, now time.Time) (first RunID, err error) {
	runs, err := tx.OpenRuns(id)
	if err != nil {
		return "", err
	}
	for _, r := range runs {
		if r.Desired != DesiredRun || !r.Left {
			continue
		}
		if r.Left = false; heldBack(r.ReasonCode) {
			if first == "" {
				first = r.ID
			}
			r.Phase, r.ReasonCode, r.Reason = PhaseQueued, CodeNone, ""
		}
		if err := tx.UpdateRun(r, now); err != nil {
			return first, err
		}
	}
	return first, nil
}

// SetRecovery says what is done by itself with work of a session whose process is gone. What waits under the old setting and may go on
// under the new one goes on.
func (e *Engine) SetRecovery(ctx context.Context, id SessionID, auto Auto) error {
	err := e.Commit(ctx, "recovery.set", id, func(tx Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		s.Recovery, s.UpdatedAt = auto, e.Now()
		return tx.UpdateSession(s)
	})
	if err != nil {
		return fmt.Errorf("set what recovery does with session %s: %w", id, err)
	}
	return nil
}
