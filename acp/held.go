package acp

import (
	"slices"

	"holdfast/session"
)

// busy are the runs that were told to stop and are still being executed.
func (f *follower) busy() (busy []session.Run, err error) {
	err = f.b.Engine.Store.Read(f.ctx, func(tx session.Tx) (err error) { busy, err = tx.OpenRuns(f.id); return err })
	return slices.DeleteFunc(busy, func(r session.Run) bool { return r.Phase != session.PhaseWorking || r.Desired == session.DesiredRun }), err
}

// stillStops tells whether the prompt of a stopped goal has to wait, because the goal's run still ends. After a while it does not wait any
// longer, and what comes of the run is not shown.
func (f *follower) stillStops(p *openPrompt, busy []session.Run) bool {
	for _, r := range busy {
		switch {
		case r.Goal != p.goal:
			continue
		case p.overdue:
			f.muted[r.ID] = true
			continue
		case !p.stopping:
			p.stopping = true
			p.timers = append(p.timers, f.after(confirmWithin, func() {
				f.sayStopping()
				p.overdue = true
				f.goalMoved()
				f.catchUp()
			}))
		}
		return true
	}
	return false
}
