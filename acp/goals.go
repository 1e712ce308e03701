package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"holdfast/acp/rpc"
	"holdfast/goals"
	"holdfast/internal/fault"
	"holdfast/internal/nearest"
	"holdfast/session"
)

// decode reads the parameters of our own methods; an empty array is an empty object, as Lua clients encode it.
func decode(params json.RawMessage, v any) error {
	if p := bytes.TrimSpace(params); len(p) == 0 || bytes.Equal(p, []byte("[]")) && !fault.Without("empty_arrays") || bytes.Equal(p, []byte("null")) {
		params = json.RawMessage("{}")
	}
	err := json.Unmarshal(params, v)
	var te *json.UnmarshalTypeError
	if errors.As(err, &te) {
		return &invalid{"params." + te.Field, "want " + te.Type.String() + ", got " + te.Value}
	}
	if err != nil {
		return &invalid{"params", err.Error()}
	}
	return nil
}

type goalParams struct {
	GoalID                 string              `json:"goalId"`
	SessionID              session.SessionID   `json:"sessionId"`
	Cwd                    string              `json:"cwd"`
	Objective              string              `json:"objective"`
	Mode                   *string             `json:"mode"`
	Grants                 []goals.Grant       `json:"grants"`
	Budget                 json.RawMessage     `json:"budget"`
	Requirements           []goals.Requirement `json:"requirements"`
	IdempotencyKey         string              `json:"idempotencyKey"`
	Replace                bool                `json:"replace"`
	Action                 string              `json:"action"`
	ExpectedControlVersion int64               `json:"expectedControlVersion"`
	RequirementID          string              `json:"requirementId"`
	Reason                 string              `json:"reason"`
	History                bool                `json:"history"`
}

// unsupported refuses members that would otherwise be ignored silently.
func (p goalParams) unsupported() error {
	if p.Mode != nil {
		return &invalid{"mode", "a goal runs in its session's mode in this version; use session/set_mode"}
	}
	return nil
}

// budget is what was given as a budget; nil when nothing was.
func (p goalParams) budget() (*goals.Budget, error) {
	if !present(p.Budget) {
		return nil, nil
	}
	b := &goals.BudgetParams{}
	d := json.NewDecoder(bytes.NewReader(p.Budget))
	d.DisallowUnknownFields()
	if err := d.Decode(b); err != nil {
		return nil, &invalid{"budget", "want an object with costMicros, currency, tokens or activeSeconds, in whole numbers"}
	}
	return b.Budget(), nil
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (a *Agent) createGoal(ctx context.Context, b *Backend, req *rpc.Request) error {
	var p goalParams
	if err := decode(req.Params, &p); err != nil {
		return err
	}
	if err := p.unsupported(); err != nil {
		return err
	}
	budget, err := p.budget()
	if err != nil {
		return err
	}
	if budget == nil {
		budget = &goals.Budget{}
	}
	if err := a.needModel(b); err != nil {
		return err
	}
	c := goals.CreateParams{Session: p.SessionID, Objective: p.Objective, Requirements: p.Requirements, Grants: p.Grants,
		Budget: *budget, IdempotencyKey: p.IdempotencyKey, Replace: p.Replace}
	switch {
	case p.SessionID == "" && p.Cwd == "":
		return &invalid{"sessionId", "name a session, or a cwd to make one for"}
	case p.SessionID == "":
		roots, err := checkRoots(p.Cwd, nil)
		if err != nil {
			return err
		}
		a.introduce(b)
		c.Cwd, c.Opened = roots[0], new(bool)
	}
	v, err := b.Goals.Create(ctx, c)
	if err != nil {
		return err
	}
	req.Reply(map[string]any{"goal": v})
	if c.Opened == nil || !*c.Opened {
		return nil
	}
	s, err := a.stored(ctx, b, v.SessionID)
	if err != nil { // it was answered: what is left is only what this client would be shown
		a.Log.Error().Err(err).Str("session_id", string(v.SessionID)).Msg("following a new goal failed")
		return nil
	}
	a.publish(b, s, 0, nil)
	return nil
}

// listGoals is a page of goals, of one session or of all.
func (a *Agent) listGoals(ctx context.Context, b *Backend, req *rpc.Request) error {
	var p struct {
		SessionID session.SessionID `json:"sessionId"`
		Status    goals.Status      `json:"status"`
		Cursor    string            `json:"cursor"`
		Limit     int               `json:"limit"`
	}
	if err := decode(req.Params, &p); err != nil {
		return err
	}
	switch {
	case p.Status != "" && !slices.Contains(goals.Statuses, p.Status):
		return &invalid{"status", fmt.Sprintf("want one of %v", goals.Statuses)}
	case p.Limit < 0 || p.Limit > mostGoals:
		return &invalid{"limit", fmt.Sprintf("want 1 to %d", mostGoals)}
	case p.Limit == 0:
		p.Limit = listPage
	}
	all, next, err := b.Goals.List(ctx, p.SessionID, p.Status, p.Cursor, p.Limit)
	if errors.Is(err, session.ErrCursor) {
		return &invalid{"cursor", "this cursor is not from list_goals; ask for the first page"}
	}
	if err != nil {
		return err
	}
	out := map[string]any{"goals": all}
	if next != "" {
		out["nextCursor"] = next
	}
	req.Reply(out)
	return nil
}

const mostGoals = 200

func (a *Agent) getGoal(ctx context.Context, b *Backend, req *rpc.Request) error {
	var p goalParams
	if err := decode(req.Params, &p); err != nil {
		return err
	}
	if p.GoalID == "" && p.SessionID == "" {
		return &invalid{"sessionId", "name a goal or a session"}
	}
	get := b.Goals.Get
	if p.History {
		get = b.Goals.History
	}
	v, err := get(ctx, p.GoalID, p.SessionID)
	if goals.NoGoal(err) {
		req.Reply(map[string]any{"goal": nil})
		return nil
	}
	if err != nil {
		return err
	}
	req.Reply(map[string]any{"goal": v})
	return nil
}

func (a *Agent) updateGoal(ctx context.Context, b *Backend, req *rpc.Request) error {
	var p goalParams
	if err := decode(req.Params, &p); err != nil {
		return err
	}
	if err := p.unsupported(); err != nil {
		return err
	}
	if len(p.Grants) > 0 {
		return &invalid{"grants", "grants are given when a goal is created"}
	}
	if p.GoalID == "" && p.SessionID == "" {
		return &invalid{"sessionId", "name a goal or a session"}
	}
	budget, err := p.budget()
	if err != nil {
		return err
	}
	v, err := b.Goals.Update(ctx, goals.UpdateParams{Budget: budget, Goal: p.GoalID, Session: p.SessionID, Action: p.Action, Expected: p.ExpectedControlVersion,
		Objective: p.Objective, Requirements: p.Requirements, RequirementID: p.RequirementID, Reason: p.Reason})
	if err != nil {
		return err
	}
	req.Reply(map[string]any{"goal": v})
	return nil
}

// slash is a command that the user typed as a prompt.
type slash struct {
	name, rest string
	fresh      bool // the session has no goal that could be changed: "/goal add a dark mode" is an objective
}

// commandNames are the commands that a prompt may be.
var commandNames = []string{"/goal", "/status", "/stop", "/rules", "/diff", "/undo", "/redo", "/retry", "/recovery", "/takeover", "/trust", "/context", "/compact", "/help"}

// command recognises the commands we advertise, and a single word that was surely meant to be one.
func command(text string) (slash, bool) {
	name, rest, more := strings.Cut(strings.TrimSpace(text), " ")
	if slices.Contains(commandNames, name) {
		return slash{name: name, rest: strings.TrimSpace(rest)}, true
	}
	if near := nearest.Of(name, commandNames); strings.HasPrefix(name, "/") && !more && near != "" {
		return slash{name: name, rest: near}, true
	}
	return slash{}, false
}

// action is what a command does: a control of the goal, "status", or "" when the rest of it is the objective of a new one.
func (s slash) action() string {
	switch s.name {
	case "/stop", "/help":
		return s.name[1:]
	case "/rules", "/recovery", "/takeover", "/trust", "/context":
		return s.name[1:]
	}
	if !slices.Contains(commandNames, s.name) {
		return "unknown"
	}
	first, _, more := strings.Cut(s.rest, " ")
	if s.name == "/status" || s.rest == "" || first == "status" {
		return "status"
	}
	switch s.rest {
	case "pause", "resume", "end", "verify", "retry", "redo", "list", "help": // "/goal resume the download feature" is an objective
		return s.rest
	case "stop", "cancel": // as everywhere else: it rests until it is resumed
		return "pause"
	case "clear":
		return "end"
	}
	if first == "revise" || first == "waive" {
		return first
	}
	if one := strings.Fields(s.rest); first == "confirm" && len(one) <= 2 || first == "add" && (!s.fresh || !more) {
		return first // "/goal confirm that the door is green" is an objective
	}
	if first == "budget" { // "/goal budget the trip" is an objective, "/goal budget 3" a limit without its unit and no wish to work on
		what := strings.TrimSpace(strings.TrimPrefix(s.rest, first))
		if _, err := goals.ParseBudget(what); err == nil || !more || strings.IndexAny(what, "0123456789.+-$€£") == 0 {
			return first
		}
	}
	if !more && nearest.Of(s.rest, goalWords) != "" {
		return "unclear" // no objective is one word that is nearly a command
	}
	return ""
}

// goalWords are what "/goal" takes besides an objective.
var goalWords = []string{"status", "list", "pause", "resume", "end", "verify", "retry", "redo", "help", "revise", "waive", "stop", "cancel", "clear", "budget",
	"confirm", "add"}

// slashHelp is what "/goal help" answers.
const slashHelp = "/goal <objective> sets a goal. /goal status tells where it stands, /goal list every goal of this session, /goal pause (or stop, cancel) stops it until /goal resume, " +
	"/goal end ends it for good, /goal revise <objective> changes it, /goal waive <requirement> <reason> takes a requirement out of acceptance, " +
	"/goal add <text> adds one to it, /goal confirm <requirement> makes one that was read out of the objective binding, /goal confirm all of them, /goal verify asks for a review now, " +
	"/goal retry tries again what a block held up, /goal redo puts back what a stalled turn changed and begins it again. " +
	"/goal budget 2.50 USD, 500000 tokens, 2h limits what it may use, /goal budget none takes the limits away."

// helpLine lists the commands, each with what it does.
func helpLine() string {
	var b strings.Builder
	b.WriteString("Anything that is no command goes to the model. Commands:")
	for _, c := range commandsUpdate().AvailableCommandsUpdate.AvailableCommands {
		fmt.Fprintf(&b, "\n/%s – %s", c.Name, c.Description)
	}
	return b.String()
}

// sets tells whether the command sets a goal.
func (s slash) sets() bool { return s.action() == "" }

// run executes a command. shown is the id for the user's line in the history. hold is the goal whose work the prompt stays open for, "" to
// answer at once with the line.
func (s slash) run(ctx context.Context, b *Backend, id session.SessionID, text string, shown session.ItemID) (hold, line string, err error) {
	switch action := s.action(); action {
	case "help":
		if s.name == "/help" {
			return "", helpLine(), nil
		}
		return "", slashHelp, nil
	case "unknown":
		return "", fmt.Sprintf("There is no command %s; did you mean %s? Nothing was done.", s.name, s.rest), nil
	case "unclear":
		return "", fmt.Sprintf("Did you mean /goal %s? Nothing was done. An objective says in a few words what is to be reached.", nearest.Of(s.rest, goalWords)), nil
	case "":
		v, err := b.Goals.Create(ctx, goals.CreateParams{Session: id, Objective: s.rest, Shown: text, ShownID: shown})
		return v.GoalID, statusLine(v), err
	case "stop":
		line, err = stopCommand(ctx, b, id, s.rest)
		return "", line, err
	case "takeover":
		line, err = takeoverCommand(ctx, b, id, s.rest)
		return "", line, err
	case "rules":
		line, err = s.rules(ctx, b, id)
		return "", line, err
	case "recovery":
		line, err = s.recovery(ctx, b, id)
		return "", line, err
	case "trust", "context":
		line, err = s.project(ctx, b, id)
		return "", line, err
	case "status":
		v, err := b.Goals.Get(ctx, "", id)
		if goals.NoGoal(err) {
			return "", "No goal. Set one with /goal <objective>.", nil
		}
		if err != nil {
			return "", "", err
		}
		return "", statusText(v), nil
	case "list":
		all, err := b.Goals.Of(ctx, id)
		return "", goalLines(all), err
	default:
		p := goals.UpdateParams{Session: id, Action: action, Reason: "/goal " + action}
		if action == "waive" {
			words := strings.TrimSpace(strings.TrimPrefix(s.rest, action))
			p.RequirementID, p.Reason, _ = strings.Cut(words, " ")
			if p.Reason = strings.TrimSpace(p.Reason); p.Reason == "" {
				return "", "Say which requirement, and why: /goal waive <requirement> <reason>. " + b.requirements(ctx, id), nil
			}
		}
		if action == "revise" {
			if p.Objective = strings.TrimSpace(strings.TrimPrefix(s.rest, action)); p.Objective == "" {
				return "", "Say the new objective: /goal revise <objective>.", nil
			}
		}
		if action == "budget" {
			budget, err := goals.ParseBudget(strings.TrimPrefix(s.rest, action))
			if err != nil {
				return "", "Say the limits, for example: /goal budget 2.50 USD, 500000 tokens, 2h. Nothing was changed.", nil
			}
			p.Budget = &budget
		}
		if action == "confirm" {
			p.RequirementID = strings.TrimSpace(strings.TrimPrefix(s.rest, action))
		}
		if action == "add" {
			text := strings.TrimSpace(strings.TrimPrefix(s.rest, action))
			if text == "" {
				return "", "Say what else must hold: /goal add <text>. Nothing was changed.", nil
			}
			p.Requirements = []goals.Requirement{{Kind: goals.KindSemantic, Text: text}}
		}
		v, err := b.Goals.Update(ctx, p)
		if err != nil {
			return "", "", err
		}
		if action == "confirm" || action == "add" { // the work goes on behind it as before
			return "", changedRequirements(p, v) + statusLine(v), nil
		}
		if action == "budget" {
			line = "Its budget: " + p.Budget.String() + ". "
		}
		if v.Status == goals.Active {
			hold = v.GoalID
		}
		return hold, line + statusLine(v), nil
	}
}

// statusLine is one line about a goal.
func statusLine(v goals.View) string {
	line := fmt.Sprintf("Goal %s", v.Status)
	if v.Status == goals.Active {
		line += ", " + v.Phase
	}
	if v.Reason != "" {
		line += ": " + v.Reason
	}
	if v.NextAction.Owner == "user" {
		var can []string
		for _, a := range v.NextAction.Allowed {
			if typed, ok := typedAs[a]; ok {
				can = append(can, typed)
			}
		}
		if len(can) > 0 {
			line += " You can: " + strings.Join(can, ", ") + "."
		}
	}
	return line
}

// goalLines is every goal of a session, oldest first.
func goalLines(all []goals.View) string {
	if len(all) == 0 {
		return "No goal. Set one with /goal <objective>."
	}
	out := "Goals of this session, oldest first:"
	for _, v := range all {
		objective, _, _ := strings.Cut(v.Objective, "\n")
		out += fmt.Sprintf("\n- %s, %s: %s", v.CreatedAt.Local().Format("2006-01-02 15:04"), v.Status, objective)
	}
	return out
}

// requirements names those of the session's goal that can be waived.
func (b *Backend) requirements(ctx context.Context, id session.SessionID) string {
	v, err := b.Goals.Get(ctx, "", id)
	if err != nil || v.Status.Ended() {
		return "" // only a hint
	}
	var ids []string
	for _, r := range v.Requirements {
		if r.Result != goals.Waived {
			ids = append(ids, r.ID)
		}
	}
	return "Requirements: " + strings.Join(ids, ", ") + "."
}

// typedAs is how a user takes each action in a session. Opening the session is not one: it is open.
var typedAs = map[string]string{"answer": "answer the question", "pause": "/goal pause", "resume": "/goal resume", "end": "/goal end",
	"verify": "/goal verify", "retry": "/goal retry", "redo": "/goal redo", "revise": "/goal revise <objective>", "budget": "/goal budget <limits>", "takeover": "/takeover"}

// refusal is what a user reads when a command is refused: what can be typed, where the error names what a program can pass.
func refusal(err error, message string) string {
	var refused *goals.NotAllowedError
	var param *goals.ParamError
	switch {
	case errors.Is(err, goals.ErrExists):
		return "The session already has an unfinished goal. /goal revise <objective> changes it, /goal end ends it; /goal status tells where it stands."
	case goals.NoGoal(err):
		return "The session has no goal. Set one with /goal <objective>."
	case errors.As(err, &param) && param.Member == "requirementId":
		if !strings.Contains(param.Message, "has no requirement") {
			return "Nothing was changed: " + param.Message + "."
		}
		return "There is no such requirement, and nothing was changed. /goal status lists them with their ids."
	case errors.As(err, &refused) && refused.Status.Ended():
		return fmt.Sprintf("The goal is %s. Set a new one with /goal <objective>.", refused.Status)
	}
	return message
}
