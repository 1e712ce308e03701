package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"holdfast/session"
)

// todoTool replaces the plan of the session.
type todoTool struct{}

var _ session.StateTool = todoTool{}

// Limits of a plan: it is looked at, not read.
const (
	maxPlan       = 100
	maxEntryRunes = 500
	maxEvidence   = 20
)

type todoArgs struct {
	Entries []session.PlanEntry `json:"entries"`
}

func (todoTool) Spec() session.ToolSpec {
	return spec("update_todo", "Write down the plan for work of several steps, and keep it true as you go: the user sees it. Give the whole list each time, it "+
		"replaces the one before; an empty list takes it away. Keep the id of an entry that stays. At most one entry should be in_progress. "+
		"It is a plan, not a result: it does not finish a goal, and a goal is not finished while an entry of its plan is open.",
		`{"type":"object","properties":{"entries":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string",`+
			`"description":"Leave it out for a new entry."},"content":{"type":"string"},"priority":{"type":"string","enum":["high","medium","low"]},`+
			`"status":{"type":"string","enum":["pending","in_progress","completed"]},"optional":{"type":"boolean","description":"The goal does not need it."},`+
			`"blocked":{"type":"boolean","description":"Nothing can be done about it for now."},"evidence":{"type":"array","items":{"type":"string"},`+
			`"description":"Ids of your calls that show it."}},"required":["content","status"],"additionalProperties":false}}},"required":["entries"],"additionalProperties":false}`)
}

func (todoTool) Class() session.Class { return session.ReadOnly } // outside the store nothing changes
func (todoTool) Kind() session.Kind   { return session.KindThink }
func (todoTool) Version() string      { return "1" }
func (todoTool) EndsTurn() bool       { return false }

func (todoTool) Plan(_ session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	in, err := todoEntries(args)
	if err != nil {
		return session.Plan{}, err
	}
	done := len(in.Entries) - session.OpenEntries(in.Entries)
	title := fmt.Sprintf("Plan: %d of %d done", done, len(in.Entries))
	if len(in.Entries) == 0 {
		title = "Plan: taken away"
	}
	return plan(in, title)
}

// todoEntries checks the entries; one without a priority is of medium priority.
func todoEntries(args json.RawMessage) (in todoArgs, err error) {
	if err := decodeArgs("update_todo", args, &in, "entries"); err != nil {
		return in, err
	}
	if len(in.Entries) > maxPlan {
		return in, failf("A plan has at most %d entries, not %d. Put small steps together.", maxPlan, len(in.Entries))
	}
	seen := map[string]bool{}
	for i := range in.Entries {
		e := &in.Entries[i]
		e.Content = strings.TrimSpace(e.Content)
		if e.Priority == "" {
			e.Priority = "medium"
		}
		switch {
		case e.Content == "":
			return in, failf("Entry %d of update_todo has no content. Say what is to be done.", i+1)
		case utf8.RuneCountInString(e.Content) > maxEntryRunes:
			return in, failf("The content of entry %d is longer than %d characters. Say it shorter.", i+1, maxEntryRunes)
		case !slices.Contains(session.PlanPriorities, e.Priority):
			return in, failf("The priority of entry %d must be one of %s.", i+1, strings.Join(session.PlanPriorities, ", "))
		case !slices.Contains(session.PlanStatuses, e.Status):
			return in, failf("The status of entry %d must be one of %s.", i+1, strings.Join(session.PlanStatuses, ", "))
		case len(e.ID) > 64:
			return in, failf("The id of entry %d is too long. Leave it out for a new entry.", i+1)
		case len(e.Evidence) > maxEvidence:
			return in, failf("Entry %d names more than %d calls as evidence. Name the ones that show it.", i+1, maxEvidence)
		case e.ID != "" && seen[e.ID]:
			return in, failf("Two entries have the id %q. Each has its own.", e.ID)
		}
		seen[e.ID] = e.ID != ""
	}
	return in, nil
}

// Run is never used: the turn loop applies it inside its transaction.
func (todoTool) Run(context.Context, session.ToolEnv, session.Plan, func(session.Output)) (session.Output, error) {
	return session.Output{}, fmt.Errorf("update_todo changes the store only: %w", errors.ErrUnsupported)
}

func (todoTool) Apply(tx session.Tx, c session.CallContext, args []byte) (session.Output, error) {
	in, err := todoEntries(args)
	if err != nil {
		return session.Output{}, err
	}
	goal := c.Run.Kind == session.RunGoal
	var old []session.PlanEntry
	if goal {
		old, err = tx.TodoOf(c.Run.Goal)
	} else {
		old, err = tx.PlanOf(c.Session.ID)
	}
	if err != nil {
		return session.Output{}, err
	}
	in.Entries = withIDs(in.Entries, old)
	if err := withEvidence(tx, in.Entries, old, c.Run.ID); err != nil {
		return session.Output{}, err
	}
	if goal {
		err = tx.PutTodo(c.Run.Goal, c.Session.ID, in.Entries, c.Now)
	} else {
		err = tx.PutPlan(c.Session.ID, in.Entries, c.Now)
	}
	if err != nil {
		return session.Output{}, err
	}
	if len(in.Entries) == 0 {
		return session.Output{Text: "The plan was taken away."}, nil
	}
	text, err := json.Marshal(in)
	return session.Output{Text: "The plan is now:\n" + string(text)}, err
}

// withIDs gives each entry without an id one: that of the old entry with the same words, or a new one that was not used before.
func withIDs(entries, old []session.PlanEntry) []session.PlanEntry {
	used := map[string]bool{}
	for _, e := range entries {
		used[e.ID] = true
	}
	taken := func(id string) bool {
		return used[id] || slices.ContainsFunc(old, func(o session.PlanEntry) bool { return o.ID == id })
	}
	next := 1
	for i, e := range entries {
		if e.ID != "" {
			continue
		}
		if at := slices.IndexFunc(old, func(o session.PlanEntry) bool { return o.Content == e.Content && !used[o.ID] }); at >= 0 {
			entries[i].ID = old[at].ID
		} else {
			for taken(fmt.Sprint(next)) {
				next++
			}
			entries[i].ID = fmt.Sprint(next)
		}
		used[entries[i].ID] = true
	}
	return entries
}

// withEvidence puts the ids of stored calls in place of the references. What an entry had stays, also when the model does not repeat it.
func withEvidence(tx session.Tx, entries, old []session.PlanEntry, run session.RunID) error {
	for i, e := range entries {
		var kept []string
		if at := slices.IndexFunc(old, func(o session.PlanEntry) bool { return o.ID == e.ID }); at >= 0 {
			kept = slices.Clone(old[at].Evidence)
		}
		for _, ref := range e.Evidence {
			if slices.Contains(kept, ref) {
				continue
			}
			ef, err := session.CitedCall(tx, ref, run)
			if err != nil {
				return err
			}
			if !slices.Contains(kept, string(ef.ID)) {
				kept = append(kept, string(ef.ID))
			}
		}
		entries[i].Evidence = kept[max(0, len(kept)-maxEvidence):]
	}
	return nil
}
