package crash_test

import "fmt"

// budgetPlay sets a Goal that may use less than its first request may take, and raises that once the Goal has stopped by itself.
func budgetPlay(u *user) error {
	if _, err := u.open(); err != nil {
		return err
	}
	if err := u.createWith(map[string]any{"tokens": 1000}); err != nil {
		return err
	}
	if !u.steps["raised"] {
		err := u.until("the budget is used up", func() (bool, error) {
			g, err := u.goal()
			return g.Status == "budget_exhausted" && g.ReasonCode == "budget_used_up", err
		})
		if err != nil {
			return err
		}
		if n := u.w.seen("goal"); n != 0 {
			return fmt.Errorf("the model was asked %d times beyond the budget", n)
		}
		if err := u.call("update_goal", map[string]any{"sessionId": u.session, "action": "budget", "budget": map[string]any{}}, nil); err != nil {
			return err
		}
		u.steps["raised"] = true
	}
	return u.end()
}
