package session

import (
	"context"
	"fmt"
)

// A goal may be revised in the middle of a turn. The turn ends then at its next step, and what an answer to the words before had planned and
// not begun is not done.

// outdatedText is what the model reads in place of such a call's result.
const outdatedText = "Not started: the user revised the goal after this call was planned. Go by the objective as it stands now."

// outdated tells whether a run was revised since the request whose answer is carried out.
func (t *turn) outdated(tx Tx, run Run) (bool, error) {
	if run.Goal == "" || run.Revision <= 1 {
		return false, nil
	}
	if t.answered == 0 { // the request was another process's
		reqs, err := tx.RequestsOf(run.ID)
		if err != nil {
			return false, err
		}
		for _, r := range reqs {
			if r.Purpose == PurposeAnswer {
				t.answered = r.Revision
			}
		}
		if t.answered == 0 {
			return false, nil
		}
	}
	return t.answered != run.Revision, nil
}

// outdated looks at that before the call is planned.
func (c *call) outdated(ctx context.Context) (old bool, err error) {
	if c.t.run.Goal == "" {
		return false, nil
	}
	err = c.t.e.Store.Read(ctx, func(tx Tx) error {
		run, err := tx.Run(c.t.run.ID)
		if err != nil {
			return err
		}
		old, err = c.t.outdated(tx, run)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("look whether the goal was revised: %w", err)
	}
	return old, nil
}
