package goals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/session"
)

// View is a Goal as every door returns it.
type View struct {
	GoalID         string              `json:"goalId"`
	SessionID      session.SessionID   `json:"sessionId"`
	Revision       int64               `json:"revision"`
	ControlVersion int64               `json:"controlVersion"`
	Objective      string              `json:"objective"`
	Status         Status              `json:"status"`
	Phase          string              `json:"phase"`
	ReasonCode     session.Code        `json:"reasonCode"`
	Reason         string              `json:"reason"`
	NextAction     NextAction          `json:"nextAction"`
	CanPause       bool                `json:"canPause"`
	CanResume      bool                `json:"canResume"`
	CanVerify      bool                `json:"canVerify"`
	CanEnd         bool                `json:"canEnd"`
	CanRetry       bool                `json:"canRetry"`
	Feedback       string              `json:"feedback"` // what the last review found missing, or why the goal was revised
	Requirements   []Requirement       `json:"requirements"`
	Extraction     ExtractionView      `json:"extraction"`
	Grants         []Grant             `json:"grants"` // what its own work may do without asking
	Todo           []session.PlanEntry `json:"todo"`   // its plan: an open item keeps it open, and nothing in it achieves it
	Turns          int                 `json:"turns"`  // work turns that have begun, after a crash once more
	Budget         *BudgetView         `json:"budget"` // null is unlimited
	Usage          UsageView           `json:"usage"`
	ActiveSeconds  ActiveView          `json:"activeSeconds"`
	CreatedAt      time.Time           `json:"createdAt"`
	UpdatedAt      time.Time           `json:"updatedAt"`
	History        []Moment            `json:"history,omitempty"`
}

// ExtractionView says whether requirements were read out of the objective.
type ExtractionView struct {
	State string `json:"state"` // "none", or how far it is
	Note  string `json:"note,omitempty"`
}

func (g Goal) extraction() ExtractionView {
	if g.Extraction == ExtractionNone {
		return ExtractionView{State: "none"}
	}
	return ExtractionView{State: string(g.Extraction), Note: g.ExtractionNote}
}

// Line says it in words when there is something to say: that the reading is still to come, or why it came to nothing.
func (e ExtractionView) Line() string {
	switch e.State {
	case string(ExtractionPending):
		return "the objective is being read for requirements"
	case string(ExtractionFailed):
		return "reading the objective for requirements failed: " + e.Note
	}
	return ""
}

// Standing says what a requirement that was read out of the objective counts for; "" of the user's own.
func (q Requirement) Standing() string {
	switch {
	case q.Origin != FromModel:
		return ""
	case q.Confirmed:
		return " [confirmed]"
	}
	return " [not confirmed, does not bind]"
}

// NextAction says who moves it and how.
type NextAction struct {
	Owner   string   `json:"owner"`
	Allowed []string `json:"allowed"`
}

// ActiveView is the time attempts were running. Exact is false when a crash left an interval of unknown length.
type ActiveView struct {
	AtLeast int64 `json:"atLeast"`
	Exact   bool  `json:"exact"`
}

// Moment is one line of a Goal's timeline.
type Moment struct {
	At         time.Time        `json:"at"`
	What       string           `json:"what"` // "attempt", "request", "effect"
	Run        session.RunID    `json:"run"`
	Kind       string           `json:"kind"` // run kind, model or tool
	State      string           `json:"state"`
	Title      string           `json:"title,omitempty"`
	Number     int              `json:"number,omitempty"`
	Mode       string           `json:"mode,omitempty"`
	Rule       string           `json:"rule,omitempty"`
	PID        int              `json:"pid,omitempty"`
	Generation int64            `json:"generation,omitempty"`
	Effect     session.EffectID `json:"effect,omitempty"`
	Fact       session.Fact     `json:"fact,omitempty"`
	SettledBy  string           `json:"settledBy,omitempty"`
	ExitCode   *int             `json:"exitCode,omitempty"`
	Digest     string           `json:"digest,omitempty"`
	Input      int64            `json:"inputTokens,omitempty"`
	Output     int64            `json:"outputTokens,omitempty"`
	CacheRead  *int64           `json:"cacheReadTokens,omitempty"` // of a request that reported it, as the next two
	CacheWrite *int64           `json:"cacheWriteTokens,omitempty"`
	Reasoning  *int64           `json:"reasoningTokens,omitempty"`
	Cost       *MomentCost      `json:"cost,omitempty"` // of a request
}

// find resolves the goal that goalId or sessionId names: the open one of the session, else its last one.
func (s *Service) find(ctx context.Context, id string, sess session.SessionID) (g Goal, err error) {
	err = s.Engine.Store.Read(ctx, func(stx session.Tx) error {
		tx := in(stx)
		if id != "" {
			g, err = tx.Goal(id)
			return err
		}
		if _, err = tx.Session(sess); err != nil {
			return err
		}
		all, err := tx.Goals(sess)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return errNoGoal
		}
		g = all[len(all)-1]
		return nil
	})
	return g, err
}

var errNoGoal = fmt.Errorf("the session has no goal: %w", session.ErrNotFound)

// NoGoal tells whether a session simply has no Goal, which is not an error for a reader.
func NoGoal(err error) bool { return errors.Is(err, errNoGoal) }

// Get returns a Goal by id, or the one of a session.
func (s *Service) Get(ctx context.Context, id string, sess session.SessionID) (View, error) {
	g, err := s.find(ctx, id, sess)
	if err != nil {
		return View{}, err
	}
	var v View
	err = s.Engine.Store.Read(ctx, func(tx session.Tx) error { v, err = view(in(tx), g.ID, false); return err })
	return v, err
}

// Of lists every Goal of a session, oldest first.
func (s *Service) Of(ctx context.Context, id session.SessionID) ([]View, error) {
	out := []View{}
	err := s.Engine.Store.Read(ctx, func(stx session.Tx) error {
		all, err := in(stx).Goals(id)
		if err != nil {
			return err
		}
		for _, g := range all {
			v, err := view(in(stx), g.ID, false)
			if err != nil {
				return err
			}
			out = append(out, v)
		}
		return nil
	})
	return out, err
}

// History is Get with the timeline.
func (s *Service) History(ctx context.Context, id string, sess session.SessionID) (View, error) {
	g, err := s.find(ctx, id, sess)
	if err != nil {
		return View{}, err
	}
	var v View
	err = s.Engine.Store.Read(ctx, func(tx session.Tx) error { v, err = view(in(tx), g.ID, true); return err })
	return v, err
}

// List is one page of the Goals of every session, or of the one that is named, newest first, and the cursor of the next; an empty status
// lists all.
func (s *Service) List(ctx context.Context, sess session.SessionID, status Status, cursor string, limit int) ([]View, string, error) {
	c, err := session.ParseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	out, next := []View{}, ""
	err = s.Engine.Store.Read(ctx, func(stx session.Tx) error {
		if sess != "" {
			if _, err := stx.Session(sess); err != nil {
				return err
			}
		}
		all, err := in(stx).AllGoals(sess, status, c.At, c.ID, limit+1)
		if err != nil {
			return err
		}
		for i, g := range all {
			if i == limit {
				last := all[limit-1]
				next = session.Cursor{At: last.UpdatedAt, ID: last.ID}.String()
				return nil
			}
			v, err := view(in(stx), g.ID, false)
			if err != nil {
				return err
			}
			out = append(out, v)
		}
		return nil
	})
	return out, next, err
}

// view is a Goal as it is shown. One of which a record cannot be used is shown as well, and keeps no other from being listed.
func view(tx Tx, id string, history bool) (View, error) {
	g, err := tx.Goal(id)
	if err != nil {
		return View{}, err
	}
	v, err := viewGoal(tx, g, history)
	var broken *session.RecordError
	if errors.As(err, &broken) {
		return brokenView(g, broken), nil
	}
	return v, err
}

func viewGoal(tx Tx, g Goal, history bool) (View, error) {
	run, err := tx.Run(g.Run)
	if err != nil {
		return View{}, err
	}
	reqs, err := tx.Requirements(g.ID, g.Revision)
	if err != nil {
		return View{}, err
	}
	for i := range reqs {
		reqs[i].Evidence = append([]string{}, reqs[i].Evidence...)
	}
	v := View{GoalID: g.ID, SessionID: g.Session, Revision: g.Revision, ControlVersion: g.ControlVersion, Objective: g.Objective, Status: g.Status,
		ReasonCode: g.ReasonCode, Reason: g.Reason, Requirements: reqs, Grants: []Grant{}, Todo: []session.PlanEntry{}, Extraction: g.extraction(), CreatedAt: g.CreatedAt, UpdatedAt: g.UpdatedAt}
	if g.Status != Achieved {
		v.Feedback = g.Feedback
	}
	for _, grant := range g.Grants {
		grant.InForce = grant.Revision == g.Revision && !g.Status.Ended()
		v.Grants = append(v.Grants, grant)
	}
	todo, err := tx.TodoOf(g.ID)
	if err != nil {
		return View{}, err
	}
	v.Todo = append(v.Todo, todo...)
	runs := []session.Run{run}
	open, err := tx.OpenRuns(g.Session)
	if err != nil {
		return View{}, err
	}
	for _, r := range open {
		if r.Kind == session.RunVerification && r.Goal == g.ID {
			runs = append(runs, r)
		}
	}
	sess, err := tx.Session(g.Session)
	if err != nil {
		return View{}, err
	}
	approvals, err := tx.OpenApprovals(g.Session)
	if err != nil {
		return View{}, err
	}
	v.place(g, sess, runs, approvals)
	if last := runs[len(runs)-1]; v.ReasonCode == session.CodeSlot || v.ReasonCode == session.CodeWorktreeBusy {
		if v.ReasonCode, v.Reason, err = session.WhyInLine(tx, last); err != nil {
			return View{}, err
		}
	}
	if v.Phase == string(session.PhaseWorking) || v.Phase == string(session.PhaseQueued) || v.Phase == "verifying" {
		if code, why := session.OwnerWait(tx, sess.Owner); code != session.CodeNone {
			v.wait(code, why)
		}
	}
	if g.Broken != session.CodeNone {
		v.wait(g.Broken, "")
	}
	return v, v.account(tx, g, history)
}

// brokenView is what can be said of a Goal of which a record cannot be used.
func brokenView(g Goal, e *session.RecordError) View {
	v := View{GoalID: g.ID, SessionID: g.Session, Revision: g.Revision, ControlVersion: g.ControlVersion, Objective: g.Objective, Status: g.Status,
		Requirements: []Requirement{}, Grants: []Grant{}, Todo: []session.PlanEntry{}, Extraction: g.extraction(), CreatedAt: g.CreatedAt,
		UpdatedAt: g.UpdatedAt, CanEnd: !g.Status.Ended(), Usage: viewUsage(nil)}
	v.wait(e.Code, e.Reason())
	return v
}

// wait says that the Goal waits, and for what.
func (v *View) wait(code session.Code, why string) {
	d := session.Diagnostics[code]
	if why != "" {
		d.Sentence = why
	}
	v.Phase, v.ReasonCode, v.Reason = string(session.PhaseWaiting), code, d.Sentence
	v.NextAction = NextAction{Owner: d.Owner, Allowed: append([]string{}, d.Allowed...)}
}

// place says where the Goal stands and what may be done.
func (v *View) place(g Goal, sess session.Session, runs []session.Run, approvals []session.Approval) {
	run := runs[len(runs)-1]
	v.Phase = "idle"
	if g.Status == Active {
		v.Phase = string(run.Phase)
		if run.Kind == session.RunVerification {
			v.Phase = "verifying"
		}
		if (run.Phase == session.PhaseWaiting || session.InLine(run)) && run.ReasonCode != session.CodeNone {
			v.ReasonCode, v.Reason = run.ReasonCode, run.Reason
		}
		for _, p := range approvals {
			if p.State == session.ApprovalPending && p.Run == run.ID {
				v.Phase, v.ReasonCode = "waiting", session.CodeApproval
			}
		}
		if sess.Closed {
			v.Phase, v.ReasonCode = "waiting", session.CodeClosedByClient
		}
	}
	v.CanEnd = !g.Status.Ended()
	v.CanPause = g.Status == Active
	v.CanResume = g.Status == Paused || g.Status == Blocked || g.Status == Active && leftBehind(run)
	v.CanVerify = g.Status == Active && v.Phase != "verifying"
	v.CanRetry = g.Status == Blocked || g.Status == Active && run.Phase == session.PhaseWaiting && v.ReasonCode != session.CodeApproval ||
		g.Status == Exhausted && g.ReasonCode == session.CodeBudgetUnpriced
	v.NextAction = NextAction{Owner: "agent", Allowed: []string{}}
	if g.Status.Ended() {
		v.NextAction.Owner = "nobody"
		return
	}
	if d, ok := session.Diagnostics[v.ReasonCode]; ok {
		v.NextAction.Owner = d.Owner
		v.NextAction.Allowed = append(v.NextAction.Allowed, d.Allowed...)
		if v.CanResume && !slices.Contains(v.NextAction.Allowed, "resume") {
			v.NextAction.Allowed = slices.Insert(v.NextAction.Allowed, 0, "resume")
		}
		if v.Reason == "" {
			v.Reason = d.Sentence
		}
		return
	}
	v.NextAction.Allowed = append(v.NextAction.Allowed, "pause", "end", "verify", "revise")
}

// account adds usage, active time and, when asked, the timeline.
func (v *View) account(tx Tx, g Goal, history bool) error {
	reqs, err := tx.RequestsOfGoal(g.ID)
	if err != nil {
		return err
	}
	v.Usage = viewUsage(reqs)
	active, exact, err := activeTime(tx, g, reqs, "", g.UpdatedAt)
	if err != nil {
		return err
	}
	if g.Budget != (Budget{}) {
		v.Budget = &BudgetView{g.Budget, g.Budget.used(reqs, active)}
	}
	if history {
		if err := v.moments(tx, runsOf(g, reqs), reqs); err != nil {
			return err
		}
	}
	turns, err := tx.Attempts(g.Run)
	if err != nil {
		return err
	}
	v.Turns = len(turns)
	v.ActiveSeconds = ActiveView{AtLeast: int64(active.Seconds()), Exact: exact}
	return nil
}

// moments is the timeline.
func (v *View) moments(tx Tx, ids []session.RunID, reqs []session.Request) error {
	for _, r := range reqs {
		v.History = append(v.History, requestMoment(r))
	}
	for _, id := range ids {
		attempts, err := tx.Attempts(id)
		if err != nil {
			return err
		}
		run, err := tx.Run(id)
		if err != nil {
			return err
		}
		for _, a := range attempts {
			v.History = append(v.History, Moment{At: a.StartedAt, What: "attempt", Run: id, Kind: string(run.Kind), State: string(a.State), Number: a.Number,
				Mode: string(a.Mode), Rule: a.Rule, PID: a.PID, Generation: a.Generation})
		}
		effects, err := tx.EffectsOf(id)
		if err != nil {
			return err
		}
		for _, ef := range effects {
			v.History = append(v.History, Moment{At: ef.PlannedAt, What: "effect", Run: id, Kind: ef.Tool, State: string(ef.State), Title: ef.Plan.Title,
				Effect: ef.ID, Fact: ef.Fact, SettledBy: string(ef.SettledBy), ExitCode: ef.ExitCode, Digest: ef.ResultDigest})
		}
	}
	sortMoments(v.History)
	return nil
}
