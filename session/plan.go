package session

import "slices"

// PlanEntry is one thing that the model means to do. A plan is what the model works by and the user looks at. That of a Goal is its todo: what is
// open in it keeps the Goal from being achieved, and nothing in it ever achieves one.
type PlanEntry struct {
	ID       string `json:"id"` // stays the same while the entry does
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
	// Optional: a Goal does not need it. Blocked: nothing can be done about it for now.
	Optional bool     `json:"optional,omitempty"`
	Blocked  bool     `json:"blocked,omitempty"`
	Evidence []string `json:"evidence,omitempty"` // ids of stored calls that show it
}

// Done tells whether nothing is left to do about the entry.
func (e PlanEntry) Done() bool { return e.Status == "completed" }

// Values of an entry.
var (
	PlanPriorities = []string{"high", "medium", "low"}
	PlanStatuses   = []string{"pending", "in_progress", "completed"}
)

// OpenEntries counts what is not completed.
func OpenEntries(plan []PlanEntry) int {
	n := 0
	for _, e := range plan {
		if !e.Done() {
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
