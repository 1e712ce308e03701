package acp

import (
	"fmt"

	v1 "holdfast/acp/v1"
	"holdfast/session"
)

// plan shows the plan of the session when it is not what the client has. One that was never there is not shown; one that was taken away is
// shown as empty, because each update replaces the plan before.
func (f *follower) plan() {
	var plan []session.PlanEntry
	err := f.b.Engine.Store.Read(f.ctx, func(tx session.Tx) (err error) { plan, err = tx.ShownPlan(f.id); return err })
	if err != nil {
		f.fail(err, "reading the plan failed")
		return
	}
	key := ""
	for _, e := range plan {
		key += session.Digest(append([]string{e.ID, e.Content, e.Priority, e.Status, fmt.Sprint(e.Optional, e.Blocked)}, e.Evidence...)...)
	}
	if key == f.planShown {
		return
	}
	f.planShown = key
	f.send(planUpdate(plan))
}

// planUpdate has beside what the protocol knows the id of each entry, and what only a Goal's todo knows.
func planUpdate(plan []session.PlanEntry) update {
	entries := v1.List[v1.PlanEntry]{}
	for _, e := range plan {
		more := map[string]any{"id": e.ID}
		if e.Optional {
			more["optional"] = true
		}
		if e.Blocked {
			more["blocked"] = true
		}
		if len(e.Evidence) > 0 {
			more["evidence"] = e.Evidence
		}
		entries = append(entries, v1.PlanEntry{Meta: v1.Meta{"holdfast": more}, Content: e.Content,
			Priority: v1.PlanEntryPriority(e.Priority), Status: v1.PlanEntryStatus(e.Status)})
	}
	return update{Plan: &v1.Plan{Entries: entries}}
}
