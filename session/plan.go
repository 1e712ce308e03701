package session

import "slices"

// PlanEntry is one thing that the model means to do. A plan is what the model works by and the user looks at: it decides nothing, least of all
// that a Goal has been reached.
type PlanEntry struct {
	ID       string `json:"id"` // stays the same while the entry does
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// Values of an entry.
var (
	PlanPriorities = []string{"high", "medium", "low"}
	PlanStatuses   = []string{"pending", "in_progress", "completed"}
)

// OpenEntries counts what is not completed.
func OpenEntries(plan []PlanEntry) int {
	n := 0
	for _, e := range plan {
		if e.Status != "completed" {
			n++
		}
	}
	return n
}

// valid tells whether an entry can be shown.
func (e PlanEntry) valid() bool {
	return e.ID != "" && e.Content != "" && slices.Contains(PlanPriorities, e.Priority) && slices.Contains(PlanStatuses, e.Status)
}

// ValidPlan leaves out what cannot be shown.
func ValidPlan(plan []PlanEntry) []PlanEntry {
	return slices.DeleteFunc(plan, func(e PlanEntry) bool { return !e.valid() })
}
