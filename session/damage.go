package session

import (
	"context"
	"errors"
	"fmt"
)

// A record that cannot be used costs its own session only: it is shown with what is wrong with it, its text as a line that says so, and
// nothing of the session is executed. It is never skipped, changed or cleared.

// RecordError: a stored record cannot be used.
type RecordError struct {
	Code    Code      // CodeUnreadable or CodeMalformed
	Session SessionID // "" when that is not known
	Record  string    // which one, for a person: its kind and id
	Err     error
}

func (e *RecordError) Error() string {
	s := fmt.Sprintf("%s: %s", e.Code, e.Record)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *RecordError) Unwrap() error { return e.Err }

// Reason is one sentence for a person; the cause is for the log.
func (e *RecordError) Reason() string {
	return fmt.Sprintf("%s (%s)", Diagnostics[e.Code].Sentence, e.Record)
}

// RecordAction is what a person can do about a record that cannot be used.
const RecordAction = "Run holdfast doctor --deep; what can be read of the session is shown, and the other sessions go on."

// BrokenText stands in the history in the place of an entry that cannot be used.
func BrokenText(code Code, record string) string {
	what := "could not be read from the disk"
	if code == CodeMalformed {
		what = "is not valid and was left as it is"
	}
	return fmt.Sprintf("[An entry of the history %s: %s, %s. holdfast doctor --deep says more.]", what, code, record)
}

// intact refuses history with an entry that cannot be used: a model must not go on from something it cannot see.
func intact(items []Item) error {
	for _, it := range items {
		if it.Broken != CodeNone {
			e := &RecordError{Code: it.Broken, Session: it.Session, Record: "item " + string(it.ID)}
			return &WaitError{Code: e.Code, Message: e.Reason()}
		}
	}
	return nil
}

// broken parks a run that cannot be decided on because of a record that cannot be used. Its lost attempt and its calls stay as they are:
// what became of them is decided when everything can be read.
func (t *turn) broken(ctx context.Context, err error) error {
	var broken *RecordError
	if !errors.As(err, &broken) {
		return err
	}
	parked := t.commit(ctx, "recovery.decided", func(tx Tx) error {
		run, err := tx.Run(t.run.ID)
		if err != nil || run.Desired != DesiredRun {
			return err
		}
		run.Phase, run.ReasonCode, run.Reason = PhaseWaiting, broken.Code, broken.Reason()
		return tx.UpdateRun(run, t.e.Now())
	})
	if parked != nil {
		return errors.Join(err, parked) // shown as it is read, and looked at again with the next ring
	}
	t.a.log(err, "a record cannot be used; the work waits")
	return nil
}

// mark shows what is wrong with a session in its view.
func (v *SessionView) mark(code Code, reason string) {
	if v.State != "idle" {
		v.State = string(PhaseWaiting)
	}
	v.ReasonCode, v.Reason, v.NextOwner, v.Allowed = code, reason, Diagnostics[code].Owner, append([]string{}, Diagnostics[code].Allowed...)
	if reason == "" {
		v.Reason = Diagnostics[code].Sentence
	}
}
