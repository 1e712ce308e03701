package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/goals"
	"holdfast/session"
)

// wait is work that is stored and does not go on by itself: what for, whose move it is, and what to run.
type wait struct {
	SessionID  session.SessionID  `json:"sessionId"`
	GoalID     string             `json:"goalId"` // "" when it is a prompt that waits
	ApprovalID session.ApprovalID `json:"approvalId"`
	Cwd        string             `json:"cwd"`
	State      string             `json:"state"` // waiting, paused, blocked, closed
	ReasonCode session.Code       `json:"reasonCode"`
	Sentence   string             `json:"sentence"` // what the code means; what the work itself says is in 'goals show' and 'sessions show'
	Reason     string             `json:"reason"`   // what the model's endpoint said, else ""
	NextOwner  string             `json:"nextOwner"`
	Allowed    []string           `json:"allowed"`
	Command    string             `json:"command"`
	PID        int                `json:"pid"` // live process that has the session, 0 for none
}

// needsPerson tells whether a person has to act before it goes on. What the user paused rests because the user wants it so.
func (w wait) needsPerson() bool { return w.NextOwner == "user" && w.State != "paused" }

func (w wait) String() string {
	what := "session " + string(w.SessionID)
	if w.GoalID != "" {
		what = "goal " + w.GoalID
	}
	why := w.Sentence
	if w.Reason != "" {
		why = strings.TrimSuffix(why, ".") + ": " + line(w.Reason, 200)
	}
	s := fmt.Sprintf("%s: %s (%s) %s %s", what, w.State, w.ReasonCode, why, w.Command)
	if w.PID != 0 {
		s += fmt.Sprintf(" [process %d has it]", w.PID)
	}
	return s
}

// waits lists everything unfinished that does not go on by itself, in every session. alive are the live processes by id.
func waits(ctx context.Context, st session.Store, svc *goals.Service, alive map[session.InstanceID]process) ([]wait, error) {
	out := []wait{}
	seen := map[session.SessionID]session.Code{}
	all, _, err := pages(0, func(cursor string, n int) ([]goals.View, string, error) { return svc.List(ctx, "", "", cursor, n) })
	if err != nil {
		return nil, err
	}
	err = st.Read(ctx, func(tx session.Tx) error {
		out = out[:0]
		for _, g := range all {
			if g.Status.Ended() || g.Status == goals.Active && g.Phase != "waiting" {
				continue
			}
			if g.ReasonCode == session.CodeApproval || session.Timed(g.ReasonCode) {
				continue // asked about below; goes on by itself
			}
			s, err := tx.Session(g.SessionID)
			if err != nil {
				return err
			}
			w := wait{SessionID: s.ID, GoalID: g.GoalID, Cwd: s.Cwd, State: string(g.Status), ReasonCode: g.ReasonCode,
				Reason: ofModel(g.ReasonCode, g.Reason), NextOwner: g.NextAction.Owner, Allowed: g.NextAction.Allowed, PID: alive[s.Owner].PID}
			if g.Status == goals.Active {
				w.State = "waiting"
			}
			if err := w.advise(tx, s); err != nil {
				return err
			}
			seen[s.ID] = g.ReasonCode
			out = append(out, w)
		}
		more, err := sessionWaits(tx, alive, seen)
		out = append(out, more...)
		return err
	})
	return out, err
}

// sessionWaits lists open questions, and prompts that wait.
func sessionWaits(tx session.Tx, alive map[session.InstanceID]process, seen map[session.SessionID]session.Code) (out []wait, err error) {
	asked, err := tx.PendingApprovals()
	if err != nil {
		return nil, err
	}
	for _, p := range asked {
		s, err := tx.Session(p.Session)
		if err != nil {
			return nil, err
		}
		r, err := tx.Run(p.Run)
		if err != nil {
			return nil, err
		}
		if r.Desired != session.DesiredRun || s.Closed {
			continue
		}
		w := wait{SessionID: s.ID, GoalID: r.Goal, ApprovalID: p.ID, Cwd: s.Cwd, State: "waiting", ReasonCode: session.CodeApproval,
			NextOwner: "user", Allowed: session.Options(p), PID: alive[s.Owner].PID}
		if err := w.advise(tx, s); err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	unknown, err := unknownWaits(tx, alive, asked)
	if err != nil {
		return nil, err
	}
	out = append(out, unknown...)
	ids, err := tx.Busy()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		s, err := tx.Session(id)
		if err != nil {
			return nil, err
		}
		v, err := session.ViewSession(tx, s)
		if err != nil {
			return nil, err
		}
		if v.State != "closed" && v.State != "waiting" || v.PendingApprovals > 0 && !s.Closed || v.NextOwner != "user" || seen[id] == v.ReasonCode {
			continue
		}
		w := wait{SessionID: id, Cwd: s.Cwd, State: v.State, ReasonCode: v.ReasonCode, Reason: ofModel(v.ReasonCode, v.Reason), NextOwner: v.NextOwner,
			Allowed: v.Allowed, PID: alive[s.Owner].PID}
		if err := w.advise(tx, s); err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

// unknownWaits lists, for each session, the first call whose outcome is unknown, unless an open question asks about it.
func unknownWaits(tx session.Tx, alive map[session.InstanceID]process, asked []session.Approval) (out []wait, err error) {
	named := map[session.SessionID]bool{}
	for _, p := range asked {
		named[p.Session] = named[p.Session] || len(p.Unknown) > 0
	}
	open, err := tx.Effects(session.EffectFilter{Fact: session.FactUnknown, Open: true}, time.Time{}, "", -1)
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(open) { // oldest first
		if named[e.Session] {
			continue
		}
		named[e.Session] = true
		s, err := tx.Session(e.Session)
		if err != nil {
			return nil, err
		}
		w := wait{SessionID: s.ID, Cwd: s.Cwd, State: "waiting", ReasonCode: session.CodeOutcomeUnknown, NextOwner: "user",
			Allowed: session.Diagnostics[session.CodeOutcomeUnknown].Allowed, PID: alive[s.Owner].PID}
		if err := w.advise(tx, s); err != nil {
			return nil, err
		}
		w.Command = "holdfast effects settle " + string(e.ID) + " --happened|--did-not-happen"
		out = append(out, w)
	}
	return out, nil
}

// advise fills in what the code means and the command that moves the work.
func (w *wait) advise(tx session.Tx, s session.Session) error {
	d := session.Diagnostics[w.ReasonCode]
	w.Sentence = or(d.Sentence, "It waits.")
	again := "holdfast sessions send " + string(w.SessionID) + " TEXT, after holdfast stop " + string(w.SessionID)
	if w.GoalID != "" {
		again = "holdfast goals retry " + w.GoalID
	}
	end := "holdfast stop " + string(w.SessionID)
	switch {
	case w.ReasonCode == session.CodeApproval:
		w.Command = "holdfast sessions answer " + string(w.ApprovalID) + " " + strings.Join(w.Allowed, "|")
	case w.State == "paused":
		w.Command = "holdfast goals resume " + w.GoalID
	case w.ReasonCode == session.CodeClosedByClient:
		w.Command = "open the session in an editor, or give it up: " + end
	case w.ReasonCode == session.CodeEnvironment:
		runs, err := tx.OpenRuns(s.ID)
		if err != nil {
			return err
		}
		p := s.Profile
		for _, r := range runs {
			if r.ReasonCode == w.ReasonCode && r.Desired == session.DesiredRun {
				p = r.Profile.Or(p)
			}
		}
		w.Command = fmt.Sprintf("holdfast work --model %s/%s, with the endpoint and the key it began with", p.Provider, p.Name)
		if p.Chosen != "" { // every process that has the key finds it by itself
			w.Command = fmt.Sprintf("holdfast work, with the endpoint and the key with which it began at %s", p.Chosen)
		}
		if p.API != "" {
			w.Command = fmt.Sprintf("HOLDFAST_OPENAI_API=%s %s", p.API, w.Command)
		}
	case w.ReasonCode == session.CodeWorkspaceChanged, w.ReasonCode == session.CodeRecoveryOff, w.ReasonCode == session.CodeNotAttached:
		w.Command = "holdfast sessions retry " + string(w.SessionID)
		if w.GoalID != "" {
			w.Command = again
		}
		if w.ReasonCode == session.CodeNotAttached {
			w.Command = "open the session in an editor, or " + w.Command
		}
	case w.ReasonCode == session.CodeDirectoryMissing:
		w.Command = "put " + line(s.Cwd, 300) + " back, then holdfast work"
	case w.ReasonCode == session.CodeOwnerLost:
		w.Command = "holdfast work, or an editor"
	case w.ReasonCode == session.CodeServerMissing:
		w.Command = "open the session in the editor that has the server"
	case w.ReasonCode == session.CodeModelUnavailable:
		w.Command = "set up a model, then holdfast work"
	case w.ReasonCode == session.CodeStalled, w.ReasonCode == session.CodeCrashLoop && w.GoalID == "":
		w.Command = fmt.Sprintf("holdfast sessions redo %s (put back and begin again) or holdfast sessions retry %s (go on as it is)", w.SessionID, w.SessionID)
	case w.ReasonCode == session.CodeOtherHost:
		w.Command = "go on there; or, when it does not run there any more: " + takeoverCommand(s.ID) + " --from-other-host"
	case w.ReasonCode == session.CodeOwnerSilent:
		w.Command = "continue the process, or end it and go on elsewhere: " + takeoverCommand(s.ID)
	default:
		w.Command = again
	}
	return nil
}
