package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// BackgroundState is how far a background command came.
type BackgroundState string

const (
	BackgroundRunning    BackgroundState = "running"     // no end is recorded; its folder says whether it lives
	BackgroundEnded      BackgroundState = "ended"       // there is a receipt; final
	BackgroundLost       BackgroundState = "lost"        // nothing will ever tell how it ended; final
	BackgroundNotStarted BackgroundState = "not_started" // provably never began; final
)

// Background is a command that runs without a call waiting for it. It belongs to its session and lives over turns, the end of the client
// and the death of every Holdfast process.
type Background struct {
	Effect  EffectID // of the call that started it
	Session SessionID
	Number  int // in its session; "bg1" is the first
	Command string
	Dir     string
	// Desired is DesiredRun, or "stopped" once somebody wants it to end; that is never taken back.
	Desired     Desired
	State       BackgroundState
	ExitCode    *int
	Signal      string
	Stopped     string // why it was ended, "" when it ended by itself
	Note        string // why it is lost
	ReadTo      int64  // how much of its output the model has been given
	StartedAt   time.Time
	EndedAt     time.Time
	DeliveredAt time.Time // when the model was told of its end
}

// DesiredStopped is the wish that a background command ends.
const DesiredStopped Desired = "stopped"

// Handle is how the model and the user name the command inside its session.
func (b Background) Handle() string { return fmt.Sprintf("bg%d", b.Number) }

// BackgroundRef ties a call to the background command that it starts, reads or ends.
type BackgroundRef struct {
	Handle string   `json:"handle"`
	Effect EffectID `json:"effect"`
	Dir    string   `json:"dir,omitempty"`
	Starts bool     `json:"starts,omitempty"` // the call starts it
}

// BackgroundLook is what a command's folder says. Ended means that there is nothing left to wait for.
type BackgroundLook struct {
	Ended    bool
	State    BackgroundState // with Ended
	ExitCode *int
	Signal   string
	Stopped  string
	Note     string
	At       time.Time // of the end, when the receipt says so
}

// Backgrounder looks after background commands.
type Backgrounder interface {
	Look(dir string) (BackgroundLook, error)
	// End ends a command with everything it started. It returns once that is so or the context ends.
	End(ctx context.Context, dir string) error
	// Peek returns what a command has printed so far; false when there is none.
	Peek(dir string) (Output, bool)
}

// Ending is one line about how a command ended.
func (b Background) Ending() string {
	var parts []string
	switch {
	case b.State == BackgroundNotStarted:
		parts = append(parts, "never started")
	case b.State == BackgroundLost:
		parts = append(parts, "its end was never recorded and its outcome is unknown; look at the real state and do not repeat it blindly")
	case b.Stopped == "user":
		parts = append(parts, "stopped on request")
	case b.Stopped == "deadline":
		parts = append(parts, "stopped at its time limit")
	case b.Stopped == "output_cap":
		parts = append(parts, "stopped because it printed too much")
	case b.Stopped != "":
		parts = append(parts, "stopped: "+b.Stopped)
	}
	if b.ExitCode != nil {
		parts = append(parts, fmt.Sprintf("exit code %d", *b.ExitCode))
	}
	if b.Signal != "" {
		parts = append(parts, "ended by "+b.Signal)
	}
	if b.Note != "" {
		parts = append(parts, b.Note)
	}
	return strings.Join(parts, "; ")
}

// startBackground gives the command of a call its number and its row, in the transaction that dispatches the call.
func (c *call) startBackground(tx Tx, now time.Time) error {
	ref := c.effect.Plan.Background
	if ref == nil || !ref.Starts {
		return nil
	}
	all, err := tx.Backgrounds(c.t.a.id)
	if err != nil {
		return err
	}
	b := Background{Effect: c.effect.ID, Session: c.t.a.id, Number: len(all) + 1, Command: c.effect.Plan.Command, Dir: c.env.RunDir, StartedAt: now}
	c.t.e.backgrounds.Store(true)
	c.effect.Plan.Background = &BackgroundRef{Handle: b.Handle(), Effect: b.Effect, Dir: b.Dir, Starts: true}
	return tx.InsertBackground(b)
}

// LiveCommands are the background commands that a run has started and that have no recorded end.
func LiveCommands(tx Tx, id SessionID, run RunID) (live []Background, err error) {
	all, err := tx.Backgrounds(id)
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		if b.State != BackgroundRunning || b.Desired == DesiredStopped {
			continue
		}
		ef, err := tx.Effect(b.Effect)
		if err != nil {
			return nil, err
		}
		if ef.Run == run {
			live = append(live, b)
		}
	}
	return live, nil
}

// settleStart records a command whose start came to nothing, or to nothing that can be known: the call's own result says so.
func settleStart(tx Tx, ef Effect, f Finding, now time.Time) error {
	ref := ef.Plan.Background
	if ref == nil || !ref.Starts || ef.State == EffectPlanned || f.Fact != FactNotStarted && f.Fact != FactUnknown {
		return nil
	}
	b, err := tx.Background(ef.ID)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil || b.State != BackgroundRunning {
		return err
	}
	b.State, b.Note, b.EndedAt, b.DeliveredAt = BackgroundNotStarted, f.Note, now, now
	if f.Fact == FactUnknown {
		b.State = BackgroundLost
	}
	return tx.UpdateBackground(b)
}

// Heard is what a call has learnt of a background command. It is stored with the call's result, so that no output is given out twice and
// an end is told once.
type Heard struct {
	Effect EffectID
	ReadTo int64
	Ended  *BackgroundLook // nil while it runs
}

// hear stores what a call has told the model.
func (c *call) hear(tx Tx, h *Heard, now time.Time) error {
	if h == nil || c.t.setup.Thread != "" {
		return nil // a review reads for itself
	}
	b, err := tx.Background(h.Effect)
	if err != nil {
		return err
	}
	b.ReadTo = h.ReadTo
	if h.Ended != nil {
		if b.State == BackgroundRunning {
			b = b.ended(*h.Ended, now)
		}
		if b.DeliveredAt.IsZero() {
			b.DeliveredAt = now
		}
	}
	return tx.UpdateBackground(b)
}

func (b Background) ended(l BackgroundLook, now time.Time) Background {
	b.State, b.ExitCode, b.Signal, b.Stopped, b.Note, b.EndedAt = l.State, l.ExitCode, l.Signal, l.Stopped, l.Note, l.At
	if b.EndedAt.IsZero() {
		b.EndedAt = now
	}
	return b
}

// tellEnds puts an entry into the history for each background command that has ended and that the model does not know about yet. The
// entry and the record that it was told are one transaction.
func (t *turn) tellEnds(tx Tx, run Run, a Attempt) error {
	if t.setup.Thread != "" {
		return nil
	}
	untold, err := tx.UntoldBackgrounds(t.a.id)
	if err != nil {
		return err
	}
	for _, b := range untold {
		short := b.Command
		if len(short) > 200 {
			short = strings.ToValidUTF8(short[:200], "") + "…"
		}
		text := fmt.Sprintf("[Background command %s has ended: %s. It was: %s\nshell_output %s has what it printed.]", b.Handle(), b.Ending(), short, b.Handle())
		if err := t.insert(tx, &Item{Kind: ItemNote, State: ItemComplete, Body: ItemBody{Text: text}}, run, a); err != nil {
			return err
		}
		b.DeliveredAt = t.e.Now()
		if err := tx.UpdateBackground(b); err != nil {
			return err
		}
	}
	return nil
}

// backgrounds lists the commands of a session.
func (t *turn) backgrounds(ctx context.Context) (out []Background, err error) {
	err = t.e.Store.Read(ctx, func(tx Tx) error { out, err = tx.Backgrounds(t.a.id); return err })
	return out, err
}

// stopBackgrounds stores that every background command of a session is to end.
func stopBackgrounds(tx Tx, id SessionID) error {
	all, err := tx.Backgrounds(id)
	if err != nil {
		return err
	}
	for _, b := range all {
		if b.State != BackgroundRunning || b.Desired == DesiredStopped {
			continue
		}
		b.Desired = DesiredStopped
		if err := tx.UpdateBackground(b); err != nil {
			return err
		}
	}
	return nil
}
