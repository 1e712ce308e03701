package goals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/session"
)

// Service is the one implementation behind every door.
type Service struct {
	Engine *session.Engine
}

// ErrKeyReused: the idempotency key belongs to another request.
var ErrKeyReused = errors.New("the idempotency key was used with another body; use a new key")

// ParamError names the member that is wrong and what to do.
type ParamError struct{ Member, Message string }

func (e *ParamError) Error() string { return e.Member + ": " + e.Message }

// UpdateParams is what update_goal takes.
type UpdateParams struct {
	Goal          string
	Session       session.SessionID
	Action        string
	Expected      int64 // control version the caller saw; 0 means any
	Objective     string
	Requirements  []Requirement
	RequirementID string
	Reason        string
	Budget        *Budget // for budget: the new limits in place of all old ones
	// Client: a program asks, not the user. SparesStops: it may not take back what the user has stopped, nor
	// revise what the user has set.
	Client, SparesStops bool
}

// ErrStoppedByUser: the user stopped or paused the goal, and only the user lets it go on.
var ErrStoppedByUser = errors.New("the user stopped the goal")

// ErrUsersGoal: the user's words are not a program's to revise.
var ErrUsersGoal = errors.New("the user set the goal")

// stoppedByUser tells whether a Goal rests on the user's own word.
func stoppedByUser(g Goal) bool {
	return g.Status == Paused && (g.ReasonCode == session.CodeUserPaused || g.ReasonCode == session.CodeUserCancelled)
}

// Update is a control of the user: compare-and-set, stored before it is acknowledged.
func (s *Service) Update(ctx context.Context, p UpdateParams) (View, error) {
	g, err := s.find(ctx, p.Goal, p.Session)
	if err != nil {
		return View{}, err
	}
	e := s.Engine
	identity := e.IdentityOf(ctx, g.Session)
	err = e.Commit(ctx, "goal.controlled", g.Session, func(stx session.Tx) error {
		tx := in(stx)
		if g, err = tx.Goal(g.ID); err != nil {
			return err
		}
		if p.Expected != 0 && p.Expected != g.ControlVersion {
			return fmt.Errorf("%w: it is at %d", ErrVersion, g.ControlVersion)
		}
		if err := apply(tx, g, p, e.Now(), e.NewID); err != nil {
			return err
		}
		if p.Action == "resume" || p.Action == "retry" || p.Action == "redo" || p.Action == "budget" && g.Status == Exhausted {
			if err := session.Rebase(tx, g.Session, identity, e.Now()); err != nil {
				return err
			}
			if err := e.GoOnHere(stx, g.Run, e.Now()); err != nil {
				return err
			}
		}
		return tx.InsertCommand(session.Command{ID: e.NewID(), Session: g.Session, Kind: session.CommandGoal, Ref: g.ID,
			Instance: e.Self.ID, At: e.Now()})
	})
	if err != nil {
		return View{}, fmt.Errorf("update goal %s: %w", g.ID, err)
	}
	if err := e.Adopt(ctx, g.Session); err != nil {
		return View{}, err
	}
	return s.Get(ctx, g.ID, "")
}

// userAsked stands in the place of a candidate when the user asks for a review.
const userAsked = "The user asked for a review."

var actions = []string{"pause", "resume", "end", "verify", "retry", "redo", "revise", "waive", "confirm", "add", "budget"}

// apply is one action on a Goal.
func apply(tx Tx, g Goal, p UpdateParams, now time.Time, newID func() string) error {
	if !slices.Contains(actions, p.Action) {
		return &ParamError{"action", `want "pause", "resume", "end", "verify", "retry", "redo", "revise", "waive", "confirm", "add" or "budget"`}
	}
	if g.Status.Ended() {
		return &NotAllowedError{p.Action, g.Status, "create a new goal instead"}
	}
	if p.Action == "end" {
		return finish(tx, g, Cancelled, session.CodeUserEnded, p.Reason, now, newID)
	}
	cancelled := g.CancelCommand != ""
	g.ControlVersion++
	g.UpdatedAt, g.CancelCommand = now, ""
	if g.Status == Exhausted && (p.Action == "resume" || p.Action == "verify" || p.Action == "redo" || p.Action == "retry" && g.ReasonCode != session.CodeBudgetUnpriced) {
		return &NotAllowedError{p.Action, g.Status, "raise its budget first, with the action budget"}
	}
	g.Reviewed, g.Reviews, g.TodoSeen = "", 0, "" // the user's word may make the same result another one
	switch p.Action {
	case "budget":
		if err := setBudget(tx, &g, p.Budget); err != nil {
			return err
		}
		if g.Status != Exhausted {
			if err := tx.UpdateGoal(g, now); err != nil {
				return err
			}
			return reviewAgain(tx, g, now, newID)
		}
	case "pause":
		if g.Status == Paused && cancelled { // a prompt right behind the cancel would have taken that back, and takes back no pause
			if !p.Client {
				g.ReasonCode, g.Reason = session.CodeUserPaused, p.Reason
			}
			return tx.UpdateGoal(g, now)
		}
		if g.Status != Active && g.Status != Paused {
			return &NotAllowedError{p.Action, g.Status, "nothing of it is running"}
		}
		code := session.CodeUserPaused
		if p.Client {
			code = session.CodeClientPaused
		}
		return pause(tx, g, code, p.Reason, now)
	case "resume":
		if p.SparesStops && stoppedByUser(g) {
			return ErrStoppedByUser
		}
		run, err := tx.Run(g.Run)
		if err != nil {
			return err
		}
		if g.Status != Paused && g.Status != Blocked && !leftBehind(run) {
			return &NotAllowedError{p.Action, g.Status, "it is running"}
		}
	case "retry":
		run, err := tx.Run(g.Run)
		if err != nil {
			return err
		}
		if g.Status == Paused || g.Status == Active && run.Phase != session.PhaseWaiting {
			return &NotAllowedError{p.Action, g.Status, "there is nothing to retry; resume a paused goal"}
		}
		if err := askNow(tx, g, now); err != nil {
			return err
		}
	case "redo":
		run, err := tx.Run(g.Run)
		if err != nil {
			return err
		}
		if g.Status != Active || run.ReasonCode != session.CodeStalled && run.ReasonCode != session.CodeCrashLoop {
			return &NotAllowedError{p.Action, g.Status, "it has neither stalled nor died in a circle"}
		}
	case "verify":
		if g.Status != Active {
			return &NotAllowedError{p.Action, g.Status, "resume it first"}
		}
		if again, err := reviewed(tx, g); err != nil || again {
			return err // the same click twice: a review of this very state runs
		}
		g.Candidate = userAsked
	case "revise":
		if p.SparesStops && !g.Program {
			return ErrUsersGoal
		}
		g.Program = g.Program && p.Client
		reqs, err := revise(tx, &g, p)
		if err != nil {
			return err
		}
		if err := tx.PutRequirements(g.ID, g.Revision, reqs); err != nil {
			return err
		}
		if err := voidRun(tx, g.Session, g.Run, now); err != nil { // what was allowed was allowed for another contract
			return err
		}
		if g.Status == Paused || g.Status == Exhausted {
			return want(tx, g, session.DesiredPaused, now) // a revision revives nothing
		}
	case "waive":
		if err := waive(tx, g, p, now); err != nil {
			return err
		}
		return reviewAgain(tx, g, now, newID)
	case "confirm", "add":
		change := confirm
		if p.Action == "add" {
			change = add
		}
		if err := change(tx, g, p, now); err != nil {
			return err
		}
		return reviewAgain(tx, g, now, newID)
	}
	g.Status, g.ReasonCode, g.Reason, g.BlockerTurns, g.IdleTurns = Active, session.CodeNone, "", 0, 0
	if err := want(tx, g, session.DesiredRun, now); err != nil || p.Action != "verify" && p.Action != "redo" {
		return err
	}
	run, err := tx.Run(g.Run)
	if err == nil && p.Action == "redo" {
		run.Redo = session.RedoEntry
		return tx.UpdateRun(run, now)
	}
	if err != nil || run.Phase == session.PhaseWorking {
		return err // the turn that runs ends first; the review follows it
	}
	if err := startReview(tx, g, &run, now, newID); err != nil {
		return err
	}
	return tx.UpdateRun(run, now)
}

// reviewed tells whether a review of the Goal as it is now has begun and can end.
func reviewed(tx Tx, g Goal) (bool, error) {
	runs, err := tx.OpenRuns(g.Session)
	return slices.ContainsFunc(runs, func(r session.Run) bool {
		return r.Kind == session.RunVerification && r.Goal == g.ID && r.Desired == session.DesiredRun && r.Revision == g.Revision &&
			r.ControlVersion == g.ControlVersion-1 // this control would be the next
	}), err
}

// revise makes a new revision: new words, old usage, and no acceptance carried over.
func revise(tx Tx, g *Goal, p UpdateParams) ([]Requirement, error) {
	if p.Reason == "" {
		return nil, &ParamError{"reason", "a revision needs a reason"}
	}
	old, err := tx.Requirements(g.ID, g.Revision)
	if err != nil {
		return nil, err
	}
	changed := strings.TrimSpace(p.Objective) != "" && p.Objective != g.Objective
	if strings.TrimSpace(p.Objective) != "" {
		g.Objective = p.Objective
	}
	g.Revision++
	g.Candidate, g.Feedback, g.Blocker = "", "The user revised the goal: "+p.Reason, ""
	if p.Requirements != nil {
		g.Extraction, g.ExtractionNote = ExtractionNone, ""
		return requirements(g.Objective, p.Requirements)
	}
	return g.kept(old, changed), nil
}

// kept are the requirements that a revision leaves as they are, with no judgement carried over. What the model read out of other words and nobody
// confirmed goes with those words, and when nothing is left the new ones are read.
func (g *Goal) kept(old []Requirement, changed bool) []Requirement {
	reqs := []Requirement{itself(g.Objective)}
	for _, q := range old {
		if q.ID == objectiveID || changed && q.Origin == FromModel && !q.Confirmed {
			continue
		}
		q.Result, q.Reason, q.JudgedBy, q.Evidence, q.SentBack = Unknown, "", "", nil, false
		reqs = append(reqs, q)
	}
	if changed && g.Extraction != ExtractionNone {
		g.Extraction, g.ExtractionNote = extractionOf(reqs), ""
	}
	return reqs
}

// waive takes one requirement out of acceptance, on the user's word.
func waive(tx Tx, g Goal, p UpdateParams, now time.Time) error {
	if p.Reason == "" {
		return &ParamError{"reason", "a waiver needs a reason"}
	}
	reqs, err := tx.Requirements(g.ID, g.Revision)
	if err != nil {
		return err
	}
	for i := range reqs {
		if reqs[i].ID == p.RequirementID {
			reqs[i].Result, reqs[i].Reason, reqs[i].JudgedBy = Waived, p.Reason, "user"
			if err := tx.PutRequirements(g.ID, g.Revision, reqs); err != nil {
				return err
			}
			return tx.UpdateGoal(g, now)
		}
	}
	return &ParamError{"requirementId", fmt.Sprintf("the goal has no requirement %q", p.RequirementID)}
}

// reviewAgain replaces a review that a control made out of date: it judges another version, and nobody else would end the wait for it.
func reviewAgain(tx Tx, g Goal, now time.Time, newID func() string) error {
	run, err := tx.Run(g.Run)
	if err != nil || g.Status != Active || run.ReasonCode != session.CodeVerifying {
		return err
	}
	told, err := limit(tx, g, now)
	if err != nil {
		return err
	}
	if err := cancelReviews(tx, g, now); err != nil {
		return err
	}
	if told != nil {
		run.Remember(*told)
	}
	if err := startReview(tx, g, &run, now, newID); err != nil {
		return err
	}
	return tx.UpdateRun(run, now)
}

// pause stops a Goal without ending it.
func pause(tx Tx, g Goal, code session.Code, reason string, now time.Time) error {
	if g.Status == Paused && (code == session.CodeClientPaused || g.ReasonCode != session.CodeClientPaused) {
		return nil // the user's word outweighs a program's, and is not repeated
	}
	g.Status, g.ReasonCode, g.Reason = Paused, code, reason
	return want(tx, g, session.DesiredPaused, now)
}

// want stores a Goal and makes its runs follow: the work run as given, reviews only ever cancelled.
func want(tx Tx, g Goal, d session.Desired, now time.Time) error {
	if err := tx.UpdateGoal(g, now); err != nil {
		return err
	}
	told, err := limit(tx, g, now)
	if err != nil {
		return err
	}
	if err := cancelReviews(tx, g, now); err != nil {
		return err
	}
	run, err := tx.Run(g.Run)
	if err != nil {
		return err
	}
	run.Desired, run.Revision = d, g.Revision
	run.ControlVersion++
	last, err := tx.LastAttempt(run.ID)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return err
	}
	if d == session.DesiredRun && last.State == session.AttemptStalled {
		run.Redo = session.RedoKeep // the user has decided: it goes on
	}
	switch {
	case d == session.DesiredCancelled && run.Phase != session.PhaseWorking:
		run.Phase = session.PhaseQueued // the owner closes it
	case run.Phase == session.PhaseWaiting:
		run.Phase = session.PhaseQueued
	}
	run.Left = run.Left && d != session.DesiredRun // a person's word that it goes on
	run.ReasonCode, run.Reason, run.Deaths, run.Faults, run.RetryAt = session.CodeNone, "", 0, 0, time.Time{}
	switch {
	case told == nil || d == session.DesiredCancelled:
	case d == session.DesiredRun && run.Phase == session.PhaseQueued:
		run.Await(*told)
	default:
		run.Remember(*told)
	}
	if d != session.DesiredRun {
		run.ReasonCode = g.ReasonCode
		if err := voidRun(tx, g.Session, run.ID, now); err != nil {
			return err
		}
	}
	return tx.UpdateRun(run, now)
}

// leftBehind tells whether a run waits for a person's word because its process is gone.
func leftBehind(r session.Run) bool {
	return r.Phase == session.PhaseWaiting && (r.ReasonCode == session.CodeRecoveryOff || r.ReasonCode == session.CodeNotAttached)
}

// voidRun takes back what was allowed for a run and not done.
func voidRun(tx Tx, id session.SessionID, run session.RunID, now time.Time) error {
	open, err := tx.OpenApprovals(id)
	if err != nil {
		return err
	}
	for _, p := range open {
		if p.Run == run {
			p.State = session.ApprovalVoid
			if err := tx.UpdateApproval(p, now); err != nil {
				return err
			}
		}
	}
	return nil
}

func cancelReviews(tx Tx, g Goal, now time.Time) error {
	runs, err := tx.OpenRuns(g.Session)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.Kind == session.RunVerification && r.Goal == g.ID && r.Desired == session.DesiredRun {
			r.Desired, r.ReasonCode = session.DesiredCancelled, g.ReasonCode
			r.ControlVersion++
			if err := tx.UpdateRun(r, now); err != nil {
				return err
			}
			if err := voidRun(tx, g.Session, r.ID, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish ends a Goal and leaves its one record in the transcript.
func finish(tx Tx, g Goal, st Status, code session.Code, reason string, now time.Time, newID func() string) error {
	g.Status, g.ReasonCode, g.Reason, g.EndedAt, g.UpdatedAt = st, code, reason, now, now
	g.ControlVersion++
	d := session.DesiredCancelled
	if st == Achieved {
		d = session.DesiredDone
	}
	if d == session.DesiredCancelled {
		if err := want(tx, g, d, now); err != nil {
			return err
		}
	} else if err := tx.UpdateGoal(g, now); err != nil {
		return err
	}
	it := session.Item{ID: session.ItemID(newID()), Session: g.Session, Run: g.Run, Kind: session.ItemGoal, State: session.ItemComplete, CreatedAt: now,
		Body: session.ItemBody{Text: record(g)}}
	return tx.InsertItem(&it)
}

func record(g Goal) string {
	line := "Goal " + string(g.Status) + ": " + firstLine(g.Objective)
	if g.Reason != "" {
		line += " (" + g.Reason + ")"
	}
	return line
}
