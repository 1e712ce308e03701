package goals

import (
	"fmt"
	"time"
)

// confirm makes what the model read out of the objective the user's own: one requirement, or all of them.
func confirm(tx Tx, g Goal, p UpdateParams, now time.Time) error {
	reqs, err := tx.Requirements(g.ID, g.Revision)
	if err != nil {
		return err
	}
	found := false
	for i := range reqs {
		if p.RequirementID == "" && reqs[i].Origin == FromModel || p.RequirementID != "" && reqs[i].ID == p.RequirementID {
			reqs[i].Confirmed, found = true, true
		}
	}
	switch {
	case !found && p.RequirementID != "":
		return &ParamError{"requirementId", fmt.Sprintf("the goal has no requirement %q", p.RequirementID)}
	case !found:
		return &ParamError{"requirementId", "nothing was read out of the objective that could be confirmed"}
	}
	if err := tx.PutRequirements(g.ID, g.Revision, reqs); err != nil {
		return err
	}
	return tx.UpdateGoal(g, now)
}

// add puts requirements of the user to those that there are.
func add(tx Tx, g Goal, p UpdateParams, now time.Time) error {
	if len(p.Requirements) == 0 {
		return &ParamError{"requirements", "say what else must hold"}
	}
	have, err := tx.Requirements(g.ID, g.Revision)
	if err != nil {
		return err
	}
	reqs, err := extend(have, p.Requirements)
	if err != nil {
		return err
	}
	for i := range reqs[len(have):] {
		reqs[len(have)+i].Origin = Added
	}
	if err := tx.PutRequirements(g.ID, g.Revision, reqs); err != nil {
		return err
	}
	return tx.UpdateGoal(g, now)
}
