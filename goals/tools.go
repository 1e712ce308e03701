package goals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"holdfast/session"
)

// stateTool is a tool whose whole effect is in the store.
type stateTool struct {
	name, about, schema string
	class               session.Class
	last                bool // a call of it ends the turn
	check               func(env session.ToolEnv, args []byte) (title string, err error)
	apply               func(tx Tx, c session.CallContext, args []byte) (string, error)
}

var _ session.StateTool = stateTool{}

func (t stateTool) Spec() session.ToolSpec {
	return session.ToolSpec{Name: t.name, Description: t.about, Schema: json.RawMessage(t.schema)}
}
func (t stateTool) Class() session.Class { return t.class }
func (t stateTool) Kind() session.Kind   { return session.KindThink }
func (t stateTool) Version() string      { return "1" }
func (t stateTool) EndsTurn() bool       { return t.last }

func (t stateTool) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	title, err := t.check(env, args)
	if err != nil {
		return session.Plan{}, &session.ToolError{Message: t.name + ": " + err.Error()}
	}
	return session.Plan{Args: bytes.Clone(args), Title: title}, nil
}

// Run is never used: the turn loop applies a state tool inside its transaction.
func (t stateTool) Run(context.Context, session.ToolEnv, session.Plan, func(session.Output)) (session.Output, error) {
	return session.Output{}, fmt.Errorf("%s changes the store only: %w", t.name, errors.ErrUnsupported)
}

func (t stateTool) Apply(tx session.Tx, c session.CallContext, args []byte) (session.Output, error) {
	text, err := t.apply(in(tx), c, args)
	return session.Output{Text: text}, err
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("goals: encode %T: %v", v, err))
	}
	return string(b)
}

// strict decodes arguments and refuses members it does not know.
func strict(args []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

type createArgs struct {
	Objective    string        `json:"objective"`
	Requirements []Requirement `json:"requirements"`
	Grants       []Grant       `json:"grants"`
	Budget       *BudgetParams `json:"budget"`
}

type updateArgs struct {
	Action        string `json:"action"`
	Text          string `json:"text"`
	RequirementID string `json:"requirementId"`
	CallID        string `json:"callId"`
}

// WorkTools are the goal tools of a worker.
func WorkTools() []session.Tool { return []session.Tool{getTool, updateTool} }

// ChatTools are the goal tools of an ordinary prompt.
func ChatTools() []session.Tool { return []session.Tool{createTool, getTool} }

var createTool = stateTool{
	name: "create_goal", class: session.Idempotent,
	about: "Propose a durable goal that is pursued over many turns until an independent review accepts it. The user is asked first. Only when the user " +
		"wants that; never for an ordinary request.",
	schema: `{"type":"object","properties":{"objective":{"type":"string","description":"The user's own words."},"requirements":{"type":"array","items":` +
		`{"type":"object","properties":{"id":{"type":"string"},"kind":{"type":"string","enum":["command","file","semantic"]},"text":{"type":"string"},` +
		`"command":{"type":"string"},"path":{"type":"string"},"pattern":{"type":"string"}},"required":["kind"]}},"grants":{"type":"array","description":` +
		`"What the goal's own work may do without asking, if the user wants that: file edits in a directory, commands that begin with some words.",` +
		`"items":{"type":"object","properties":{"kind":{"type":"string","enum":["edit","command"]},"path":{"type":"string"},"command":{"type":"string"}},` +
		`"required":["kind"]}},"budget":{"type":"object","description":"What the goal may use in all, if the user names a limit.","properties":` +
		`{"costMicros":{"type":"integer"},"currency":{"type":"string"},"tokens":{"type":"integer"},"activeSeconds":{"type":"integer"}}}},"required":["objective"]}`,
	check: func(env session.ToolEnv, args []byte) (string, error) {
		var in createArgs
		if err := json.Unmarshal(args, &in); err != nil {
			return "", err
		}
		if _, err := check(CreateParams{Objective: in.Objective, Requirements: in.Requirements}); err != nil {
			return "", err
		}
		title := "Create goal: " + firstLine(in.Objective)
		if b := in.Budget.Budget(); b != nil {
			budget, err := b.checked()
			if err != nil {
				return "", err
			}
			title += " (limits: " + budget.String() + ")"
		}
		grants, err := checkGrants(in.Grants, env.Cwd, env.Roots)
		if len(grants) > 0 {
			title += " (without asking: " + grantsText(grants) + ")"
		}
		return title, err
	},
	apply: func(tx Tx, c session.CallContext, args []byte) (string, error) {
		var in createArgs
		if err := json.Unmarshal(args, &in); err != nil {
			return "", err
		}
		p := CreateParams{Session: c.Session.ID, Objective: in.Objective, Requirements: in.Requirements, Profile: c.Run.Profile, Client: c.Run.Client}
		reqs, err := check(p)
		if err != nil {
			return "", &session.ToolError{Message: err.Error()}
		}
		if p.Grants, err = checkGrants(in.Grants, c.Session.Cwd, c.Session.Roots); err != nil {
			return "", &session.ToolError{Message: err.Error()}
		}
		if b := in.Budget.Budget(); b != nil {
			if p.Budget, err = b.checked(); err != nil {
				return "", &session.ToolError{Message: err.Error()}
			}
		}
		g, err := create(tx, p, reqs, c.Now, c.NewID)
		if errors.Is(err, ErrExists) {
			return "", &session.ToolError{Message: "The session already has an unfinished goal; only the user can replace it."}
		}
		return "Goal " + g.ID + " was created. Its work starts after this turn.", err
	},
}

var getTool = stateTool{
	name: "get_goal", class: session.ReadOnly,
	about:  "Read the current goal: objective, requirements with their results, state and usage.",
	schema: `{"type":"object","properties":{}}`,
	check:  func(session.ToolEnv, []byte) (string, error) { return "Read the goal", nil },
	apply: func(tx Tx, c session.CallContext, _ []byte) (string, error) {
		all, err := tx.Goals(c.Session.ID)
		if err != nil || len(all) == 0 {
			return `{"goal":null}`, err
		}
		v, err := view(tx, all[len(all)-1].ID, false)
		return encode(map[string]any{"goal": v}), err
	},
}

var updateTool = stateTool{
	name: "update_goal", class: session.ReadOnly,
	about: "Report on the goal. action \"candidate\": you believe every requirement is met (text: a summary); a review follows. \"blocker\": something " +
		"only the user can remove stops all work (text: the same words each turn). \"evidence\": a call of yours supports a requirement " +
		"(requirementId, callId).",
	schema: `{"type":"object","properties":{"action":{"type":"string","enum":["candidate","blocker","evidence"]},"text":{"type":"string"},` +
		`"requirementId":{"type":"string"},"callId":{"type":"string"}},"required":["action"]}`,
	check: func(_ session.ToolEnv, args []byte) (string, error) {
		var in updateArgs
		if err := strict(args, &in); err != nil {
			return "", err
		}
		switch {
		case in.Action == "candidate":
			return "Offer the result for review", nil
		case in.Action == "blocker" && in.Text != "":
			return "Report an obstacle: " + firstLine(in.Text), nil
		case in.Action == "blocker":
			return "", errors.New("text: say what stops the work")
		case in.Action == "evidence":
			return "Point at evidence for " + in.RequirementID, nil
		}
		return "", errors.New(`action: want "candidate", "blocker" or "evidence"; the objective and its state are the user's`)
	},
	apply: func(tx Tx, c session.CallContext, args []byte) (string, error) {
		var in updateArgs
		if err := strict(args, &in); err != nil {
			return "", err
		}
		g, reqs, err := load(tx, c.Run.Goal)
		if err != nil {
			return "", err
		}
		if c.Revision != g.Revision { // what it reports on is no longer what is wanted
			return "", &session.ToolError{Message: "The user has revised the goal meanwhile. " + contract(g, reqs)}
		}
		g.UpdatedAt = c.Now
		switch in.Action {
		case "candidate":
			g.Candidate = "offered"
			if in.Text != "" {
				g.Candidate = in.Text
			}
			return "Noted. An independent review follows this turn.", tx.UpdateGoal(g, c.Now)
		case "evidence":
			return "Noted.", addEvidence(tx, g, reqs, c.Run.ID, in)
		}
		return "Noted.", nil
	},
}

func addEvidence(tx Tx, g Goal, reqs []Requirement, run session.RunID, in updateArgs) error {
	ef, err := session.CitedCall(tx, in.CallID, run)
	if err != nil {
		return err
	}
	for i := range reqs {
		if reqs[i].ID == in.RequirementID {
			if !slices.Contains(reqs[i].Evidence, string(ef.ID)) {
				reqs[i].Evidence = append(reqs[i].Evidence, string(ef.ID))
			}
			return tx.PutRequirements(g.ID, g.Revision, reqs)
		}
	}
	return &session.ToolError{Message: fmt.Sprintf("There is no requirement %q.", in.RequirementID)}
}

type submission struct {
	Requirements []struct {
		ID       string   `json:"id"`
		Result   Result   `json:"result"`
		Evidence []string `json:"evidence"`
		Reason   string   `json:"reason"`
	} `json:"requirements"`
}

// ReviewTool is how a reviewer submits its judgement. Judge names the model that judges.
func ReviewTool(judge func() string) session.Tool {
	return stateTool{
		name: "submit_review", class: session.ReadOnly, last: true,
		about: "Submit the judgement: for each requirement met, unmet or unknown, with the evidence that shows it.",
		schema: `{"type":"object","properties":{"requirements":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"result":` +
			`{"type":"string","enum":["met","unmet","unknown"]},"evidence":{"type":"array","items":{"type":"string"}},"reason":{"type":"string"}},` +
			`"required":["id","result"]}}},"required":["requirements"]}`,
		check: func(_ session.ToolEnv, args []byte) (string, error) {
			var in submission
			return "Submit the review", strict(args, &in)
		},
		apply: func(tx Tx, c session.CallContext, args []byte) (string, error) {
			var in submission
			if err := strict(args, &in); err != nil {
				return "", err
			}
			return "Noted.", submit(tx, c, in, judged(c.Run.Profile, judge))
		},
	}
}

// judged names the model of a review: the one that its work runs with.
func judged(p session.Profile, here func() string) string {
	if p.Provider == "" {
		return here()
	}
	return p.Provider + "/" + p.Name
}

// submit stores a reviewer's results. A met without fresh, stored evidence is refused.
func submit(tx Tx, c session.CallContext, in submission, judge string) error {
	g, reqs, err := load(tx, c.Run.Goal)
	if err != nil {
		return err
	}
	ev, err := gather(tx, g, c.Run.ID, reqs)
	if err != nil {
		return err
	}
	for _, s := range in.Requirements {
		i := slices.IndexFunc(reqs, func(q Requirement) bool { return q.ID == s.ID })
		if i < 0 {
			return &session.ToolError{Message: fmt.Sprintf("There is no requirement %q.", s.ID)}
		}
		q := &reqs[i]
		if q.Kind != KindSemantic || q.Result == Waived {
			continue // code or the user decides it
		}
		if s.Result != Met && s.Result != Unmet && s.Result != Unknown {
			return &session.ToolError{Message: fmt.Sprintf("%s: result must be met, unmet or unknown.", s.ID)}
		}
		q.Result, q.Reason, q.JudgedBy, q.Evidence = s.Result, s.Reason, judge, nil
		for _, ref := range s.Evidence {
			ef, err := session.CitedCall(tx, ref, c.Run.ID, g.Run)
			if err != nil {
				return err
			}
			if !ev.fresh(ef) {
				return &session.ToolError{Message: fmt.Sprintf("%s: %q is older than the last change or was not completed.", s.ID, ref)}
			}
			failed, err := session.FailedCall(tx, ef)
			if err != nil {
				return err
			}
			if failed && s.Result == Met {
				return &session.ToolError{Message: fmt.Sprintf("%s: %q failed and shows nothing met. That something is not there is shown by a call "+
					"that looks for it and succeeds, such as list or glob.", s.ID, ref)}
			}
			q.Evidence = append(q.Evidence, string(ef.ID))
		}
		if s.Result == Met && len(q.Evidence) == 0 {
			return &session.ToolError{Message: fmt.Sprintf("%s: a met requirement must cite evidence.", s.ID)}
		}
	}
	return tx.PutRequirements(g.ID, g.Revision, reqs)
}

func sortMoments(m []Moment) {
	slices.SortStableFunc(m, func(a, b Moment) int { return a.At.Compare(b.At) })
}
