package session

import "time"

// A review has a model of its own when one is set. It is settled when the review begins: what goes on after a restart is asked of the same one,
// whatever is set by then. Until it has begun it goes by what is set, so that one that cannot be asked is mended by setting another.

// ownJudge tells whether a run that had that attempt last is a review that still gets its own model.
func (e *Engine) ownJudge(r Run, last Attempt) bool {
	return e.ReviewModel != "" && r.Kind == RunVerification && last.ID == "" && !e.Passive
}

// judging is what a review begins with in this process: the model that is set, with this process's key and address. Without those nothing of it is
// known but the name, and it waits.
func (e *Engine) judging(p Profile) Profile {
	here := e.HereFor(Choice{Model: e.ReviewModel})
	if here.Provider == "" {
		p.Chosen, p.Effort = e.ReviewModel, ""
		return p
	}
	here.Env = p.Env
	return here
}

// judge gives a review that begins its model.
func (t *turn) judge(tx Tx, run *Run, last Attempt, now time.Time) error {
	if !t.e.ownJudge(*run, last) {
		return nil
	}
	env := run.Profile.Env
	here, err := t.e.Bring(tx, Choice{Model: t.e.ReviewModel}, now)
	if err != nil || here.Provider == "" {
		return err
	}
	if run.Profile = here; env != "" {
		run.Profile.Env = env
	}
	return nil
}
