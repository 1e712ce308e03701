package goals

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/session"
)

// pinnedEvidence is how many of a Goal's calls are kept, the newest.
const pinnedEvidence = 60

// Pinned is the open Goal of a session as it is now: what it is about, word for word, what holds of it, and its limits. A compaction keeps it.
func (Hooks) Pinned(stx session.Tx, id session.SessionID) (string, error) {
	tx := in(stx)
	g, err := tx.OpenGoal(id)
	if errors.Is(err, session.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	reqs, err := tx.Requirements(g.ID, g.Revision)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(contract(g, reqs))
	b.WriteString("Where its requirements stand:\n")
	for _, r := range reqs {
		fmt.Fprintf(&b, "- %s is %s", r.ID, r.Result)
		if r.Reason != "" {
			b.WriteString(": " + r.Reason)
		}
		if len(r.Evidence) > 0 {
			b.WriteString("; evidence: " + strings.Join(r.Evidence, ", "))
		}
		b.WriteByte('\n')
	}
	ev, err := gather(tx, g, "", reqs)
	if err != nil {
		return "", err
	}
	if more := len(ev.effects) - pinnedEvidence; more > 0 {
		ev.effects = ev.effects[more:]
	}
	if len(ev.effects) > 0 {
		b.WriteString("Stored evidence that can be cited by its id, oldest first:\n" + ev.text())
	}
	fmt.Fprintf(&b, "The goal is %s, set %s.\n", g.Status, g.CreatedAt.UTC().Format(time.RFC3339))
	if g.Feedback != "" {
		b.WriteString("What the last review or revision said:\n" + g.Feedback + "\n")
	}
	todo, err := tx.TodoOf(g.ID)
	if err != nil {
		return "", err
	}
	if len(todo) > 0 {
		b.WriteString("Its todo:\n")
	}
	for _, e := range todo {
		fmt.Fprintf(&b, "- %s: %s\n", e.Status, e.Content)
		b.WriteString("  " + more(e) + "\n")
	}
	if g.Budget != (Budget{}) {
		b.WriteString("It may use in all: " + g.Budget.String() + "\n")
	}
	for _, grant := range g.Grants {
		if grant.Revision == g.Revision {
			b.WriteString("Allowed beforehand, and nothing beyond it: " + grant.Covers + "\n")
		}
	}
	return b.String(), nil
}

// more is what else is known of a todo item.
func more(e session.PlanEntry) string {
	parts := []string{"id " + e.ID}
	if e.Optional {
		parts = append(parts, "optional")
	}
	if e.Blocked {
		parts = append(parts, "blocked")
	}
	if len(e.Evidence) > 0 {
		parts = append(parts, "evidence "+strings.Join(e.Evidence, " "))
	}
	return strings.Join(parts, ", ")
}
