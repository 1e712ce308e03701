package goals

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/session"
)

// todo is what the plan of a Goal says about its end.
type todo struct {
	open     []session.PlanEntry // required and not completed
	workable bool                // one of those, or an optional one, can be worked on
	done     bool                // there are required entries, and all are completed
	digest   string
}

func todoOf(tx Tx, goal string) (todo, error) {
	entries, err := tx.TodoOf(goal)
	if err != nil {
		return todo{}, err
	}
	return readTodo(entries), nil
}

func readTodo(entries []session.PlanEntry) todo {
	var t todo
	var parts []string
	for _, e := range entries {
		if !e.Done() && !e.Blocked {
			t.workable = true
		}
		switch {
		case e.Optional:
		case e.Done():
			t.done = true
		default:
			t.open = append(t.open, e)
		}
		parts = append(parts, session.Digest(e.ID, e.Content, e.Status, fmt.Sprint(e.Optional)))
	}
	slices.Sort(parts)
	t.done = t.done && len(t.open) == 0
	t.digest = session.Digest(parts...)
	return t
}

// maxNamed is how many open entries a refusal names.
const maxNamed = 10

// refusal says which entries keep the Goal open; "" when none does.
func (t todo) refusal() string {
	if len(t.open) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "- %d todo item(s) are open; finish them, or take away with update_todo what is not needed:", len(t.open))
	for i, e := range t.open {
		if i == maxNamed {
			fmt.Fprintf(&b, " and %d more", len(t.open)-i)
			break
		}
		fmt.Fprintf(&b, " %q (%s, %s);", e.Content, e.ID, e.Status)
	}
	return strings.TrimSuffix(b.String(), ";")
}
