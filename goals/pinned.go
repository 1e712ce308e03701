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
	}
	fmt.Fprintf(&b, "The goal is %s, set %s.\n", g.Status, g.CreatedAt.UTC().Format(time.RFC3339))
	if g.Feedback != "" {
		b.WriteString("What the last review or revision said:\n" + g.Feedback + "\n")
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
