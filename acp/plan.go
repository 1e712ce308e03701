package acp

import (
	v1 "holdfast/acp/v1"
	"holdfast/session"
)

// plan shows the plan of the session when it is not what the client has. One that was never there is not shown; one that was taken away is
// shown as empty, because each update replaces the plan before.
func (f *follower) plan() {
	var plan []session.PlanEntry
	err := f.b.Engine.Store.Read(f.ctx, func(tx session.Tx) (err error) { plan, err = tx.PlanOf(f.id); return err })
	if err != nil {
		f.fail(err, "reading the plan failed")
		return
	}
	key := ""
	for _, e := range plan {
		key += session.Digest(e.ID, e.Content, e.Priority, e.Status)
	}
	if key == f.planShown {
		return
	}
	f.planShown = key
	f.send(planUpdate(plan))
}

// planUpdate has the id of each entry beside what the protocol knows.
func planUpdate(plan []session.PlanEntry) update {
	entries := v1.List[v1.PlanEntry]{}
	for _, e := range plan {
		entries = append(entries, v1.PlanEntry{Meta: v1.Meta{"holdfast": map[string]any{"id": e.ID}}, Content: e.Content,
			Priority: v1.PlanEntryPriority(e.Priority), Status: v1.PlanEntryStatus(e.Status)})
	}
	return update{Plan: &v1.Plan{Entries: entries}}
}
