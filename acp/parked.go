package acp

import (
	"fmt"
	"strings"

	"holdfast/session"
)

// typedFor is how a user takes each action about a request that waits.
var typedFor = map[string]string{"redo": "/redo (put back what it changed, begin again)", "retry": "/retry (go on as it is)", "end": "/stop (give it up)"}

// parked says what a request waits for that no open prompt would tell; "" when it waits for nothing that a person has to do.
func parked(r session.Run) string {
	d, known := session.Diagnostics[r.ReasonCode]
	if r.Kind != session.RunPrompt || r.Desired != session.DesiredRun || r.Phase != session.PhaseWaiting || !known || d.Owner != "user" || r.ReasonCode == session.CodeApproval {
		return ""
	}
	why := r.Reason
	if why == "" {
		why = d.Sentence
	}
	text := fmt.Sprintf("Your request of %s waits (%s): %s", r.CreatedAt.Local().Format("15:04"), r.ReasonCode, why)
	var can []string
	for _, a := range d.Allowed {
		if typed, ok := typedFor[a]; ok && !strings.Contains(why, strings.Fields(typed)[0]) {
			can = append(can, typed)
		}
	}
	if len(can) > 0 {
		text += " You can: " + strings.Join(can, ", ") + "; a new message is worked on all the same."
	}
	return text
}

// tellParked says once per reason that a request waits for a person.
func (f *follower) tellParked(r session.Run) {
	switch text := parked(r); {
	case text == "":
		delete(f.toldParked, r.ID)
	case f.toldParked[r.ID] != r.ReasonCode:
		f.toldParked[r.ID] = r.ReasonCode
		f.notice(text)
	}
}

// parkedAtOpen says it of everything that waits when a client opens the session.
func (f *follower) parkedAtOpen() {
	var open []session.Run
	err := f.b.Engine.Store.Read(f.ctx, func(tx session.Tx) (err error) { open, err = tx.OpenRuns(f.id); return err })
	if err != nil {
		f.fail(err, "reading what waits failed")
		return
	}
	for _, r := range open {
		if f.prompts[r.ID] == nil {
			f.tellParked(r)
		}
	}
}
