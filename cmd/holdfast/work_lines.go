package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast/goals"
	"holdfast/internal/proc"
	"holdfast/session"
)

// place is where a session stands, without what was said in it.
type place struct {
	view    session.SessionView
	goal    string
	retryAt time.Time        // with a model that is asked again
	seq     int64            // of the session, when it was looked at
	calls   []session.Effect // that are new, oldest first
}

// maxCalls is how many new calls of a session one look takes in.
const maxCalls = 100

func (w *worker) placeOf(tx session.Tx, id session.SessionID) (p place, err error) {
	s, err := tx.Session(id)
	if err != nil {
		return p, err
	}
	if p.view, err = session.ViewSession(tx, s); err != nil {
		return p, err
	}
	if p.view.ReasonCode == session.CodeModelRetry {
		runs, err := tx.OpenRuns(id)
		if err != nil {
			return p, err
		}
		for _, r := range runs {
			if r.ReasonCode == session.CodeModelRetry && r.RetryAt.After(p.retryAt) {
				p.retryAt = r.RetryAt
			}
		}
	}
	if p.seq = s.LastSeq; p.seq != w.seen[id].seq {
		complete := false
		if p.calls, complete, err = w.newCalls(tx, id); err != nil {
			return p, err
		}
		if !complete {
			p.seq = 0 // look again
		}
	}
	gtx, ok := tx.(goals.Tx)
	if !ok {
		return p, nil
	}
	all, err := gtx.Goals(id)
	if n := len(all); n > 0 {
		p.goal = string(all[n-1].Status)
	}
	return p, err
}

// newCalls lists the calls of a session that were planned since the last look, and since this process began. It is not complete when one of them
// cannot be told yet.
func (w *worker) newCalls(tx session.Tx, id session.SessionID) (out []session.Effect, complete bool, err error) {
	all, err := tx.Effects(session.EffectFilter{Session: id}, time.Time{}, "", maxCalls)
	for _, e := range all {
		if e.ID == w.seen[id].call || e.PlannedAt.Before(w.began) {
			break
		}
		out = append(out, e)
	}
	slices.Reverse(out)
	for i, e := range out {
		if e.Plan.Title == "" && e.State == session.EffectPlanned { // its arguments were not looked at yet
			return out[:i], false, err
		}
	}
	return out, true, err
}

// mark is what was last said about a session.
type mark struct {
	state string
	seq   int64
	call  session.EffectID
}

// event is one line about work that goes on.
type event struct {
	Event      string            `json:"event"` // state
	At         time.Time         `json:"at"`
	SessionID  session.SessionID `json:"sessionId"`
	Cwd        string            `json:"cwd"`
	State      string            `json:"state"`
	ReasonCode session.Code      `json:"reasonCode"`
	Reason     string            `json:"reason"` // what the model's endpoint said, else ""
	RetryAt    *time.Time        `json:"retryAt"`
	GoalStatus string            `json:"goalStatus"`
}

// callEvent is one line about a tool call that was planned.
type callEvent struct {
	Event     string            `json:"event"` // call
	At        time.Time         `json:"at"`
	SessionID session.SessionID `json:"sessionId"`
	EffectID  session.EffectID  `json:"effectId"`
	Tool      string            `json:"tool"`
	Title     string            `json:"title"`
}

const lineClock = "15:04:05"

// say prints the new calls of a session, and where it stands when that has changed.
func (w *worker) say(p place) {
	id := p.view.SessionID
	m := w.seen[id]
	for _, e := range p.calls {
		m.call = e.ID
		c := callEvent{"call", e.PlannedAt, id, e.ID, e.Tool, or(e.Plan.Title, e.Tool)}
		if w.json {
			w.encode(c)
		} else {
			_, _ = fmt.Fprintf(w.out, "%s session %s calls %s: %s\n", c.At.Local().Format(lineClock), id, c.Tool, line(c.Title, 120))
		}
	}
	e := event{Event: "state", At: time.Now().UTC(), SessionID: id, Cwd: p.view.Cwd, State: p.view.State, ReasonCode: p.view.ReasonCode,
		Reason: ofModel(p.view.ReasonCode, p.view.Reason), GoalStatus: p.goal}
	if !p.retryAt.IsZero() {
		e.RetryAt = &p.retryAt
	}
	key := fmt.Sprint(e.State, e.ReasonCode, e.Reason, e.GoalStatus, p.retryAt)
	changed := m.state != key
	m.state, m.seq = key, p.seq
	w.seen[id] = m
	switch {
	case !changed:
	case w.json:
		w.encode(e)
	default:
		_, _ = fmt.Fprintf(w.out, "%s, in %s\n", e, line(e.Cwd, 200))
	}
}

func (e event) String() string {
	s := fmt.Sprintf("%s session %s %s", e.At.Local().Format(lineClock), e.SessionID, e.State)
	if e.ReasonCode != "" {
		s += " (" + string(e.ReasonCode) + ")"
	}
	if e.Reason != "" {
		s += ": " + line(e.Reason, 200)
	}
	if e.RetryAt != nil {
		s += "; next try at " + e.RetryAt.Local().Format(lineClock)
	}
	if e.GoalStatus != "" {
		s += ", goal " + e.GoalStatus
	}
	return s
}

// ofModel is the reason where it is what the model's endpoint said. Other reasons may tell what was asked for, which no line does.
func ofModel(code session.Code, reason string) string {
	switch code {
	case session.CodeModelRetry, session.CodeModelFailed, session.CodeModelUnavailable:
		if reason != session.Diagnostics[code].Sentence {
			return reason
		}
	}
	return ""
}

// leaving says what a signal leaves behind: it is no stop. It looks before the sessions are let go of.
func (w *worker) leaving(ctx context.Context) string {
	var mine []session.SessionID
	moving := 0
	err := w.st.Read(ctx, func(tx session.Tx) (err error) {
		moving = 0
		if mine, err = tx.OwnedBy(w.node.engine.Self.ID); err != nil {
			return err
		}
		for _, id := range mine {
			moves, err := session.Moves(tx, id)
			if err != nil {
				return err
			}
			if moves {
				moving++
			}
		}
		return nil
	})
	if err != nil {
		return ""
	}
	commands := 0
	effects, _ := (&cli{st: w.st}).supervised(ctx, "") // only a remark
	for _, e := range effects {
		st, err := proc.Open(e.Dir).State()
		if err == nil && slices.Contains(mine, e.Session) && (st.Verdict == proc.Live || st.Verdict == proc.Orphaned) {
			commands++
		}
	}
	const rest = "; holdfast work takes it up, holdfast stop --all ends it"
	switch {
	case commands == 1:
		return "left; 1 command goes on (holdfast ps)" + rest
	case commands > 1:
		return fmt.Sprintf("left; %d commands go on (holdfast ps)%s", commands, rest)
	case moving > 0:
		return fmt.Sprintf("left; the work of %s stays wanted%s", plural(moving, "session"), rest)
	}
	return ""
}
