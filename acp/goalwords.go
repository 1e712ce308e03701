package acp

import (
	"fmt"
	"strings"

	"holdfast/goals"
)

// changedRequirements says what a confirmation or an addition has made of a goal.
func changedRequirements(p goals.UpdateParams, v goals.View) string {
	var ids []string
	for _, q := range v.Requirements {
		if q.ID == p.RequirementID || p.RequirementID == "" && q.Origin == goals.FromModel {
			ids = append(ids, q.ID)
		}
	}
	if p.Action == "add" {
		return fmt.Sprintf("Added as requirement %s. ", v.Requirements[len(v.Requirements)-1].ID)
	}
	return fmt.Sprintf("Confirmed: %s. ", strings.Join(ids, ", "))
}

// statusText is what "/goal status" answers: the one line, and what the goal is held to.
func statusText(v goals.View) string {
	lines := []string{statusLine(v)}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if said := v.Extraction.Line(); said != "" {
		add("Requirements: %s.", strings.TrimSuffix(said, "."))
	}
	for _, q := range v.Requirements {
		add("- %s (%s, %s)%s is %s: %s", q.ID, q.Kind, q.Origin, q.Standing(), q.Result, oneLine(q.Text))
	}
	for _, e := range v.Todo {
		text := oneLine(e.Content)
		if e.Optional {
			text += " (optional)"
		}
		if e.Blocked {
			text += " (nothing can be done about it for now)"
		}
		if len(e.Evidence) > 0 {
			text += ", evidence " + strings.Join(e.Evidence, ", ")
		}
		add("- todo %s, %s: %s", e.ID, e.Status, text)
	}
	if v.Budget != nil {
		add("Used %s of %s.", v.Budget.Counted(), v.Budget.Budget)
	}
	add("Turns: %d.", v.Turns)
	return strings.Join(lines, "\n")
}

// oneLine is a text in a line of a list.
func oneLine(text string) string {
	words := strings.Join(strings.Fields(text), " ")
	if r := []rune(words); len(r) > 200 {
		words = string(r[:200]) + "…"
	}
	return words
}
