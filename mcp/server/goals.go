package server

import (
	"context"
	"errors"

	"holdfast/goals"
	"holdfast/session"
)

type requirement struct {
	ID      string          `json:"id,omitempty" jsonschema:"a name for it; one is made when missing"`
	Kind    requirementKind `json:"kind" jsonschema:"how it is decided: by a command's exit code, by a file's content, or by an independent review"`
	Text    string          `json:"text,omitempty" jsonschema:"what must hold, in words; needed for semantic"`
	Command string          `json:"command,omitempty" jsonschema:"for command: the shell command that must exit with 0"`
	Path    string          `json:"path,omitempty" jsonschema:"for file: the file that must exist, inside the session's directories"`
	Pattern string          `json:"pattern,omitempty" jsonschema:"for file: a regular expression its content must match"`
}

// requirements keeps the difference between none and not given, which a revision needs.
func requirements(given []requirement) []goals.Requirement {
	if given == nil {
		return nil
	}
	out := []goals.Requirement{}
	for _, r := range given {
		out = append(out, goals.Requirement{ID: r.ID, Kind: goals.Kind(r.Kind), Text: r.Text, Command: r.Command, Path: r.Path, Pattern: r.Pattern})
	}
	return out
}

type grant struct {
	Kind    grantKind `json:"kind" jsonschema:"edit: file edits in a directory; command: commands that begin with some words"`
	Path    string    `json:"path,omitempty" jsonschema:"for edit: a directory of the session, its working directory when missing"`
	Command string    `json:"command,omitempty" jsonschema:"for command: its first words, or a whole line when it joins or redirects"`
}

func grants(given []grant) (out []goals.Grant) {
	for _, g := range given {
		out = append(out, goals.Grant{Kind: goals.GrantKind(g.Kind), Path: g.Path, Command: g.Command})
	}
	return out
}

// budget reads limits as a person writes them; nil when none were given.
func budget(text string) (*goals.Budget, error) {
	if text == "" {
		return nil, nil
	}
	b, err := goals.ParseBudget(text)
	return &b, err
}

type createGoal struct {
	SessionID      session.SessionID `json:"sessionId,omitempty" jsonschema:"the session to work in; or name a cwd"`
	Cwd            string            `json:"cwd,omitempty" jsonschema:"absolute path of a directory the user trusts; a session is made for the goal"`
	Objective      string            `json:"objective" jsonschema:"what is to be achieved, in words; it is always a requirement itself"`
	Mode           mode              `json:"mode,omitempty" jsonschema:"what goes on without asking, for a session made by cwd: ask (default), edit, auto or plan"`
	Requirements   []requirement     `json:"requirements,omitempty" jsonschema:"what must hold before the goal counts as achieved"`
	Grants         []grant           `json:"grants,omitempty" jsonschema:"what the goal's own work may do without asking; needs authority full"`
	Budget         string            `json:"budget,omitempty" jsonschema:"what the goal may use in all, as money, tokens and time in which it works: 2.50 USD, 500000 tokens, 2h"`
	IdempotencyKey string            `json:"idempotencyKey,omitempty" jsonschema:"your own unique name for this request; repeating it returns the same goal"`
	Replace        bool              `json:"replace,omitempty" jsonschema:"end the session's unfinished goal first"`
}

type goalRef struct {
	GoalID    string            `json:"goalId,omitempty" jsonschema:"the goal"`
	SessionID session.SessionID `json:"sessionId,omitempty" jsonschema:"or its session, for the goal it has or had last"`
}

// named checks that exactly something was named, and that it exists as that.
func (r goalRef) named() error {
	if r.GoalID == "" && r.SessionID == "" {
		return invalid("goalId", "name a goal or a session")
	}
	return nil
}

// explain names the record that was not found.
func (r goalRef) explain(err error) error {
	switch {
	case !errors.Is(err, session.ErrNotFound) || goals.NoGoal(err):
		return err
	case r.GoalID != "":
		return &missingError{"goalId", "goal", r.GoalID}
	}
	return &missingError{"sessionId", "session", string(r.SessionID)}
}

type getGoal struct {
	goalRef
	History bool `json:"history,omitempty" jsonschema:"also attempts, model requests and tool calls in order"`
}

type updateGoal struct {
	goalRef
	Action        action        `json:"action" jsonschema:"what to do; nextAction.allowed and the can members of a goal say what is possible"`
	Expected      int64         `json:"expectedControlVersion,omitempty" jsonschema:"controlVersion you decided by; a goal that changed since is left alone"`
	Objective     string        `json:"objective,omitempty" jsonschema:"for revise: the new objective"`
	Requirements  []requirement `json:"requirements,omitempty" jsonschema:"for revise: all requirements of the new revision; left out they stay"`
	RequirementID string        `json:"requirementId,omitempty" jsonschema:"for waive: the requirement"`
	Reason        string        `json:"reason,omitempty" jsonschema:"why; needed for revise and waive"`
	Budget        string        `json:"budget,omitempty" jsonschema:"for budget: the new limits in place of all old ones, such as 5 USD, 1000000 tokens, 4h; none is unlimited"`
}

type listGoals struct {
	SessionID session.SessionID `json:"sessionId,omitempty" jsonschema:"only the goals that this session has and had"`
	Status    status            `json:"status,omitempty" jsonschema:"only goals with this status"`
	page
}

type goalResult struct {
	Goal *goals.View `json:"goal" jsonschema:"the goal, or null when the session has none"`
}

type changedGoal struct {
	Goal     goals.View `json:"goal"`
	Executor Executor   `json:"executor"`
}

type goalPage struct {
	Goals      []goals.View `json:"goals"`
	NextCursor string       `json:"nextCursor,omitempty" jsonschema:"missing on the last page"`
}

func goalTools() []tool {
	return []tool{
		define(tool{name: "create_goal", title: "Create a goal", hints: starts, needs: AuthorityGoals,
			about: "Hand a durable objective to the coding agent, in a session or in a directory. It is stored and answered at once; the work goes on " +
				"by itself, over restarts, until an independent review accepts it. Poll get_goal."}, runCreateGoal),
		define(tool{name: "get_goal", title: "Look at a goal", hints: looks, needs: AuthorityRead,
			about: "Where a goal stands: status, phase, why it waits and for whom, requirements with evidence, usage."}, runGetGoal),
		define(tool{name: "update_goal", title: "Steer a goal", hints: starts, needs: AuthorityGoals,
			about: "Pause, resume, end, verify, retry, redo or revise a goal, add, confirm or waive requirements, or change its budget. It is stored before it is answered. End is final. " +
				"Waive, confirm, budget, revising what the user set, and resuming what the user stopped, are a person's word and need authority full."}, runUpdateGoal),
		define(tool{name: "list_goals", title: "List goals", hints: looks, needs: AuthorityRead,
			about: "The goals of every session, or all that one session has and had, changed last first, in pages."}, runListGoals),
	}
}

func runCreateGoal(ctx context.Context, c call, a createGoal) (changedGoal, error) {
	p := goals.CreateParams{Session: a.SessionID, Objective: a.Objective, Requirements: requirements(a.Requirements),
		IdempotencyKey: a.IdempotencyKey, Replace: a.Replace, Program: true, SparesStops: !c.s.o.Authority.allows(AuthorityFull)}
	if b, err := budget(a.Budget); err != nil {
		return changedGoal{}, err
	} else if b != nil {
		p.Budget = *b
	}
	if p.Grants = grants(a.Grants); p.Grants != nil && !c.s.o.Authority.allows(AuthorityFull) {
		return changedGoal{}, &authorityError{what: "a goal with grants, which does some things without asking,", needs: AuthorityFull, has: c.s.o.Authority}
	}
	switch {
	case a.SessionID != "" && a.Cwd != "":
		return changedGoal{}, invalid("cwd", "name a session or a cwd, not both")
	case a.SessionID != "":
		if err := c.inSession(ctx, a); err != nil {
			return changedGoal{}, err
		}
	case a.Cwd == "":
		return changedGoal{}, invalid("cwd", "name a session or a cwd")
	default:
		p.Mode = session.Mode(a.Mode)
		if p.Mode == "" {
			p.Mode = session.ModeAsk
		}
		if err := c.s.mayRun(p.Mode); err != nil {
			return changedGoal{}, err
		}
		var err error
		if p.Cwd, err = c.trusted(ctx, a.Cwd); err != nil {
			return changedGoal{}, err
		}
	}
	v, err := c.Goals.Create(ctx, p)
	if errors.Is(err, goals.ErrStoppedByUser) {
		err = c.s.spares("replacing")
	}
	if err != nil {
		return changedGoal{}, goalRef{SessionID: a.SessionID}.explain(err)
	}
	return changedGoal{v, c.Executor(ctx)}, nil
}

// spares is the answer to a client that would take back what the user has stopped.
func (s *Server) spares(what string) error {
	return &authorityError{what: what + " a goal that the user stopped", needs: AuthorityFull, has: s.o.Authority}
}

// mayRun refuses work that would not ask.
func (s *Server) mayRun(m session.Mode) error {
	if m.Edits() && !s.o.Authority.allows(AuthorityFull) {
		return &authorityError{what: "a goal in mode " + string(m) + ", which changes files without asking,", needs: AuthorityFull, has: s.o.Authority}
	}
	return nil
}

// inSession checks a goal for a session that exists: it runs in that session's mode.
func (c call) inSession(ctx context.Context, a createGoal) error {
	s, err := c.session(ctx, a.SessionID)
	if err != nil {
		return err
	}
	if a.Mode != "" && session.Mode(a.Mode) != s.Mode {
		return invalid("mode", "the session is in mode %s, and its goals run in it; leave mode out, or name a cwd instead", s.Mode)
	}
	return c.s.mayRun(s.Mode)
}

func runGetGoal(ctx context.Context, c call, a getGoal) (goalResult, error) {
	if err := a.named(); err != nil {
		return goalResult{}, err
	}
	get := c.Goals.Get
	if a.History {
		get = c.Goals.History
	}
	v, err := get(ctx, a.GoalID, a.SessionID)
	if goals.NoGoal(err) {
		return goalResult{}, nil
	}
	if err != nil {
		return goalResult{}, a.explain(err)
	}
	return goalResult{&v}, nil
}

func runUpdateGoal(ctx context.Context, c call, a updateGoal) (changedGoal, error) {
	if err := a.named(); err != nil {
		return changedGoal{}, err
	}
	if (a.Action == "waive" || a.Action == "confirm" || a.Action == "budget") && !c.s.o.Authority.allows(AuthorityFull) {
		return changedGoal{}, &authorityError{what: "the action " + string(a.Action), needs: AuthorityFull, has: c.s.o.Authority}
	}
	limits, err := budget(a.Budget)
	if err != nil {
		return changedGoal{}, err
	}
	v, err := c.Goals.Update(ctx, goals.UpdateParams{Goal: a.GoalID, Session: a.SessionID, Action: string(a.Action), Expected: a.Expected,
		Objective: a.Objective, Requirements: requirements(a.Requirements), RequirementID: a.RequirementID, Reason: a.Reason, Budget: limits,
		Client: true, SparesStops: !c.s.o.Authority.allows(AuthorityFull)})
	switch {
	case errors.Is(err, goals.ErrStoppedByUser):
		err = c.s.spares("resuming")
	case errors.Is(err, goals.ErrUsersGoal):
		err = &authorityError{what: "revising a goal that the user set", needs: AuthorityFull, has: c.s.o.Authority}
	}
	if err != nil {
		return changedGoal{}, a.explain(err)
	}
	return changedGoal{v, c.Executor(ctx)}, nil
}

func runListGoals(ctx context.Context, c call, a listGoals) (goalPage, error) {
	limit, err := a.limit()
	if err != nil {
		return goalPage{}, err
	}
	all, next, err := c.Goals.List(ctx, a.SessionID, goals.Status(a.Status), a.Cursor, limit)
	if err != nil {
		return goalPage{}, goalRef{SessionID: a.SessionID}.explain(err)
	}
	return goalPage{all, next}, nil
}
