package goals

import (
	"time"

	"holdfast/session"
)

// limit is the run of a Goal that was told of a provider's limit which is not full again: its work or a review, whatever became of that since.
// Only retry asks before that time.
func limit(tx Tx, g Goal, now time.Time) (*session.Run, error) {
	work, err := tx.Run(g.Run)
	if err != nil {
		return nil, err
	}
	open, err := tx.OpenRuns(g.Session)
	if err != nil {
		return nil, err
	}
	for _, r := range append([]session.Run{work}, open...) {
		if (r.ID == g.Run || r.Goal == g.ID) && !r.LimitedUntil(now).IsZero() {
			return &r, nil
		}
	}
	return nil, nil
}

// askNow is the user's word that a limit is not waited for, whoever was told of it: by the work, and by a review that follows.
func askNow(tx Tx, g Goal, now time.Time) error {
	work, err := tx.Run(g.Run)
	if err != nil {
		return err
	}
	if err := work.PassLimits(tx); err != nil {
		return err
	}
	if err := tx.UpdateRun(work, now); err != nil {
		return err
	}
	for {
		r, err := limit(tx, g, now)
		if err != nil || r == nil {
			return err
		}
		r.AskNow()
		if err := tx.UpdateRun(*r, now); err != nil {
			return err
		}
	}
}
