package goals

import (
	"time"

	"holdfast/session"
)

// Affords tells whether a request for a Goal may be made: within its budget, by what is stored.
func (Hooks) Affords(stx session.Tx, r session.Request, now time.Time) (bool, error) {
	tx := in(stx)
	g, err := tx.Goal(r.Goal)
	if err != nil {
		return false, err
	}
	why, err := refusedBy(tx, g, r, now)
	return why == nil, err
}

// Exhaust stops a Goal whose next request its budget does not allow. It looks again: when the budget was raised meanwhile, or the Goal no longer
// works, it changes nothing; goesOn tells the first.
func (Hooks) Exhaust(stx session.Tx, r session.Request, now time.Time) (goesOn bool, err error) {
	tx := in(stx)
	g, err := tx.Goal(r.Goal)
	if err != nil || g.Status != Active {
		return false, err
	}
	why, err := refusedBy(tx, g, r, now)
	if err != nil || why == nil {
		return err == nil, err
	}
	g.Status, g.ReasonCode, g.Reason, g.UpdatedAt, g.CancelCommand = Exhausted, why.code, why.reason, now, ""
	g.ControlVersion++
	return false, want(tx, g, session.DesiredPaused, now)
}

func refusedBy(tx Tx, g Goal, r session.Request, now time.Time) (*refusal, error) {
	if g.Budget == (Budget{}) {
		return nil, nil
	}
	reqs, err := tx.RequestsOfGoal(g.ID)
	if err != nil {
		return nil, err
	}
	active, _, err := activeTime(tx, g, reqs, r.Attempt, now)
	if err != nil {
		return nil, err
	}
	return g.Budget.refuses(g.Budget.used(reqs, active), r), nil
}

// runsOf are the runs that worked for a Goal: its own, and its reviews.
func runsOf(g Goal, reqs []session.Request) []session.RunID {
	ids, known := []session.RunID{g.Run}, map[session.RunID]bool{g.Run: true}
	for _, r := range reqs {
		if !known[r.Run] {
			ids, known[r.Run] = append(ids, r.Run), true
		}
	}
	return ids
}

// activeTime is how long attempts for a Goal were running, by their stored beginnings and ends; that of one that runs now counts up to now. What
// a crash left open counts up to the last thing that was stored: a lower bound, which is not exact.
func activeTime(tx Tx, g Goal, reqs []session.Request, current session.AttemptID, now time.Time) (active time.Duration, exact bool, err error) {
	exact = true
	for _, id := range runsOf(g, reqs) {
		attempts, err := tx.Attempts(id)
		if err != nil {
			return 0, false, err
		}
		for _, a := range attempts {
			end := a.EndedAt
			if a.ID == current {
				end = now
			}
			if end.After(a.StartedAt) {
				active += end.Sub(a.StartedAt)
			}
			exact = exact && a.State != session.AttemptInterrupted && a.State != session.AttemptRunning
		}
	}
	return active, exact, nil
}

// setBudget is the user's word about what a Goal may use. A limit of money needs every request to have a price.
func setBudget(tx Tx, g *Goal, b *Budget) error {
	if b == nil {
		return &ParamError{"budget", "say what it may use: costMicros with currency, tokens or activeSeconds; {} is unlimited"}
	}
	next, err := b.checked()
	if err != nil {
		return err
	}
	if next.CostMicros > 0 {
		reqs, err := tx.RequestsOfGoal(g.ID)
		if err != nil {
			return err
		}
		if n := next.used(reqs, 0).Unpriced; n > 0 {
			return &ParamError{"budget.costMicros", unpriced(n, next.Currency)}
		}
	}
	g.Budget = next
	return nil
}
