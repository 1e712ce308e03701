package goals

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/session"
)

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
		b.WriteByte('\n')
		if err := pinnedEvidence(tx, &b, r); err != nil {
			return "", err
		}
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

// pinnedEvidence names the calls that were noted as evidence: after a compaction the model no longer sees them.
func pinnedEvidence(tx Tx, b *strings.Builder, r Requirement) error {
	for _, id := range r.Evidence {
		ef, err := tx.Effect(session.EffectID(id))
		if errors.Is(err, session.ErrNotFound) { // a digest
			fmt.Fprintf(b, "  - evidence: %s\n", id)
			continue
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "  - evidence: %s: %s (call %s)\n", ef.Tool, ef.Plan.Title, ef.ID)
	}
	return nil
}
