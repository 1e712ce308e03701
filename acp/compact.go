package acp

import (
	"fmt"

	v1 "holdfast/acp/v1"
	"holdfast/session"
)

// hasCompactions tells whether the client shows compactions as such. Others get a line of text.
func (a *Agent) hasCompactions() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.compactions
}

// compacting tells how a compaction goes that is not committed. A client that does not show them is told by the line that follows.
func (f *follower) compacting(l session.Live) {
	if !f.a.hasCompactions() || f.shown(l.Item).closed { // the log may be ahead of what the bus brings
		return
	}
	u := &v1.CompactionUpdate{CompactionID: v1.CompactionID(l.Item), Status: v1.CompactionStatus(l.Compaction)}
	if l.Text != "" {
		u.Error = &l.Text
	}
	f.send(update{CompactionUpdate: u})
}

// compacted shows a compaction that is in the history.
func (f *follower) compacted(it session.Item) {
	if f.a.hasCompactions() {
		f.send(update{CompactionUpdate: &v1.CompactionUpdate{CompactionID: v1.CompactionID(it.ID), Status: v1.CompactionStatusCompleted,
			Summary: []v1.ContentBlock{textBlock(it.Body.Text)}}})
		return
	}
	f.text(it.ID, it.Kind, 0, compactionLine(it))
}

// compactionLine is what a user reads of a compaction. The same one always gives the same line.
func compactionLine(it session.Item) string {
	why := ""
	n := 0
	if c := it.Body.Compaction; c != nil {
		n = c.Entries
		why = map[session.Cause]string{session.CauseLimit: ", because it came near what the model can read",
			session.CauseOverflow: ", because it was longer than the model can read"}[c.Why]
	}
	return fmt.Sprintf("\n[The conversation was compacted%s: %d entries became a summary. They stay in the history.]\n", why, n)
}
