package goals

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/session"
)

// Work drives the turns of a Goal.
type Work struct {
	System func(session.Session) string
	Tools  []session.Tool
}

var _ session.Driver = Work{}

// Observe looks at nothing: a turn judges nothing.
func (Work) Observe(context.Context, session.Session, session.Run) (any, error) { return nil, nil }

// Begin tells the model why this turn happens.
func (Work) Begin(stx session.Tx, b *session.Begin) error {
	g, err := in(stx).Goal(b.Run.Goal)
	if err != nil {
		return err
	}
	text := "[Goal] Begin. Work towards the objective with your tools. When you believe every requirement is met, call update_goal with " +
		"action \"candidate\"; an independent review follows."
	if b.Attempt.Mode != session.ModeFirst {
		text = "[Goal] Continue with the next step towards the objective. Call update_goal with action \"candidate\" once every requirement is met."
		if g.Feedback != "" {
			text += "\nWhat is missing so far:\n" + g.Feedback
		}
	}
	return b.Add(&session.Item{Kind: session.ItemNote, State: session.ItemComplete, Body: session.ItemBody{Text: text}})
}

// Setup puts the objective, in the user's words, into every request.
func (w Work) Setup(stx session.Tx, s session.Session, r session.Run) (session.Setup, error) {
	g, reqs, err := load(in(stx), r.Goal)
	if err != nil {
		return session.Setup{}, err
	}
	before, err := question(in(stx), s, r, &g)
	return session.Setup{System: w.System(s) + "\n\n" + contract(g, reqs), Tools: w.Tools, Before: before}, err
}

func load(tx Tx, id string) (Goal, []Requirement, error) {
	g, err := tx.Goal(id)
	if err != nil {
		return g, nil, err
	}
	reqs, err := tx.Requirements(id, g.Revision)
	return g, reqs, err
}

// contract is the objective and its requirements as text.
func contract(g Goal, reqs []Requirement) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The user has set a goal (revision %d). The objective, verbatim:\n%s\n\nRequirements:\n", g.Revision, g.Objective)
	for _, r := range reqs {
		fmt.Fprintf(&b, "- %s (%s)", r.ID, r.Kind)
		switch {
		case r.ID == objectiveID:
			b.WriteString(": the objective itself holds")
		case r.Kind == KindCommand:
			fmt.Fprintf(&b, ": this command exits with 0: %s", r.Command)
		case r.Kind == KindFile && r.Pattern != "":
			fmt.Fprintf(&b, ": the file %s matches /%s/", r.Path, r.Pattern)
		case r.Kind == KindFile:
			fmt.Fprintf(&b, ": the file %s exists", r.Path)
		default:
			b.WriteString(": " + r.Text)
		}
		if r.Result == Waived {
			b.WriteString(" [waived by the user]")
		} else if r.Origin == FromModel && !r.Confirmed {
			b.WriteString(" [read out of the objective, not confirmed by the user: the objective itself decides]")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// End settles the turn and lets Next decide.
func (Work) End(stx session.Tx, e *session.End) error {
	tx := in(stx)
	g, err := tx.Goal(e.Run.Goal)
	if err != nil {
		return err
	}
	effects, err := tx.EffectsOf(e.Run.ID)
	if err != nil {
		return err
	}
	unknown, err := session.UnknownOf(tx, g.Session)
	if err != nil {
		return err
	}
	f, err := facts(tx, &g, e, effects)
	if err != nil {
		return err
	}
	f.Unknown = len(unknown) > 0
	d := Next(f)
	g.UpdatedAt = e.Now
	switch d.Act {
	case Continue:
		e.Run.Phase = session.PhaseQueued
		err = g.refuse(tx, f)
		if err != nil {
			return err
		}
	case Verify:
		return startReview(tx, g, e.Run, e.Now, e.NewID)
	case Wait:
		e.Run.Phase, e.Run.ReasonCode, e.Run.Reason = session.PhaseWaiting, d.Code, ""
		e.Run.RetryAt, e.Run.RetryWait = e.Now.Add(liveWait), liveWait
	case Block:
		g.Status, g.ReasonCode, g.Reason = Blocked, d.Code, g.Blocker
		g.ControlVersion++
		e.Run.Desired, e.Run.Phase, e.Run.ReasonCode = session.DesiredPaused, session.PhaseQueued, d.Code
	case Rest:
		e.Run.Phase = session.PhaseQueued
	}
	return tx.UpdateGoal(g, e.Now)
}

// liveWait is how long a Goal waits for a command before the model looks again: one that serves something never ends.
const liveWait = 30 * time.Minute

// facts gathers what Next looks at, and counts turns.
func facts(tx Tx, g *Goal, e *session.End, effects []session.Effect) (Facts, error) {
	t, err := todoOf(tx, g.ID)
	if err != nil {
		return Facts{}, err
	}
	live, err := session.LiveCommands(tx, g.Session, e.Run.ID)
	if err != nil {
		return Facts{}, err
	}
	progress := progressOf(effects)
	f := Facts{Status: g.Status, Asked: g.Candidate == userAsked, Candidate: g.Candidate != "", TodoOpen: len(t.open) > 0,
		TodoDone: t.done && t.digest != g.TodoSeen, Workable: t.workable, Live: len(live) > 0, Progress: progress != g.Progress}
	f.Reviewed = g.Reviewed == progress && g.Reviews >= maxReviews
	switch g.Progress = progress; {
	case f.Progress:
		g.IdleTurns = 0
	case !f.Live: // who waits is not idle
		g.IdleTurns++
	}
	key := blockerOf(effects, e.Attempt.ID)
	switch {
	case key == "":
		g.Blocker, g.BlockerTurns = "", 0
	case sameWords(key, g.Blocker):
		g.BlockerTurns++
	default:
		g.Blocker, g.BlockerTurns = key, 1
	}
	f.Blocker, f.SameBlocker, f.IdleTurns = key != "", g.BlockerTurns >= blockerTurns, g.IdleTurns
	return f, nil
}

// sameWords compares what a worker says without regard to spaces and capitals.
func sameWords(a, b string) bool {
	return strings.EqualFold(strings.Join(strings.Fields(a), " "), strings.Join(strings.Fields(b), " "))
}

// refuse says why what was offered is not reviewed, to the worker and to the user. The offer stands until that is settled, unless it is the
// result itself that has to change.
func (g *Goal) refuse(tx Tx, f Facts) error {
	if !f.Candidate && !f.TodoDone {
		return nil
	}
	var why []string
	if f.TodoOpen {
		t, err := todoOf(tx, g.ID)
		if err != nil {
			return err
		}
		why = append(why, t.refusal())
		g.ReasonCode = session.CodeTodoOpen
	}
	if f.Unknown {
		why = append(why, "- the outcome of an operation is unknown and not settled")
		g.ReasonCode = session.CodeOutcomeUnknown
	}
	if f.Reviewed {
		why = append(why, "- nothing has changed since the last review refused the result; change it before it is offered again")
		g.Candidate, g.ReasonCode = "", session.CodeUnmet
		for line := range strings.SplitSeq(g.Feedback, "\n") { // what that review said stays
			if line != "" && !slices.Contains(why, line) {
				why = append(why, line)
			}
		}
	}
	if len(why) > 0 {
		g.Feedback = strings.Join(why, "\n")
	}
	return nil
}

// startReview makes the goal's run wait for an independent review.
func startReview(tx Tx, g Goal, run *session.Run, now time.Time, newID func() string) error {
	t, err := todoOf(tx, g.ID)
	if err != nil {
		return err
	}
	g.TodoSeen, g.ReasonCode = t.digest, session.CodeNone
	run.Phase, run.ReasonCode = session.PhaseWaiting, session.CodeVerifying
	review := session.Run{ID: session.RunID(newID()), Session: g.Session, Kind: session.RunVerification, Desired: session.DesiredRun,
		Phase: session.PhaseQueued, ControlVersion: g.ControlVersion, Goal: g.ID, Revision: g.Revision, CreatedAt: now, Profile: run.Profile, Client: run.Client}
	if err := tx.InsertRun(review); err != nil {
		return err
	}
	review.PastLimit = run.PastLimit
	if !run.LimitedUntil(now).IsZero() {
		review.Await(*run)
		run.AskNow() // it is the review that waits
	}
	if err := tx.UpdateRun(review, now); err != nil {
		return err
	}
	return tx.UpdateGoal(g, now)
}

// progressOf is a digest of what the calls of a run have brought so far; repeating a call that returns the same adds nothing, and neither does
// looking for something else with the same answer.
func progressOf(effects []session.Effect) string {
	var seen []string
	for _, ef := range effects {
		switch {
		case ef.Fact != session.FactCompleted || session.Bookkeeping[ef.Tool]:
		case ef.Class == session.ReadOnly:
			seen = append(seen, ef.Tool+ef.ResultDigest)
		default:
			seen = append(seen, ef.Tool+ef.ArgsDigest+ef.ResultDigest)
		}
	}
	slices.Sort(seen)
	return session.Digest(slices.Compact(seen)...)
}

// blockerOf is the obstacle that the worker named in an attempt.
func blockerOf(effects []session.Effect, a session.AttemptID) string {
	key := ""
	for _, ef := range effects {
		var in updateArgs
		if ef.Attempt == a && ef.Tool == "update_goal" && ef.Fact == session.FactCompleted && json.Unmarshal(ef.Plan.Args, &in) == nil &&
			in.Action == "blocker" {
			key = in.Text
		}
	}
	return key
}

// Failed blocks the Goal: the endpoint refuses, and only a person can change that.
func (Work) Failed(stx session.Tx, e *session.End, code session.Code, reason string) error {
	tx := in(stx)
	g, err := tx.Goal(e.Run.Goal)
	if err != nil {
		return err
	}
	return block(tx, g, e.Run, code, reason, e)
}

func block(tx Tx, g Goal, run *session.Run, code session.Code, reason string, e *session.End) error {
	g.Status, g.ReasonCode, g.Reason, g.UpdatedAt = Blocked, code, reason, e.Now
	g.ControlVersion++
	run.Desired, run.Phase, run.ReasonCode, run.Reason = session.DesiredPaused, session.PhaseQueued, code, reason
	return tx.UpdateGoal(g, e.Now)
}
