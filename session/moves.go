package session

import "slices"

// Moves tells whether anything of a session can go on without a person: what an owner would execute now, or at a time that is set. It
// mirrors how an owner picks its next run.
func Moves(tx Tx, id SessionID) (bool, error) {
	runs, err := tx.OpenRuns(id)
	if err != nil {
		return false, err
	}
	approvals, err := tx.OpenApprovals(id)
	if err != nil {
		return false, err
	}
	effects, err := tx.OpenEffects(id)
	if err != nil {
		return false, err
	}
	held := false
	for _, kind := range []RunKind{RunPrompt, RunVerification, RunGoal} {
		for _, r := range runs {
			if r.Kind != kind || held {
				continue // its owner is busy with the one that holds it up
			}
			s := stepOf(r, approvals, effects)
			if s == stepGoes {
				return true, nil
			}
			held = held || s == stepHolds
		}
	}
	return false, nil
}

type step string

const (
	stepGoes  step = "goes"
	stepWaits step = "waits" // others may go on
	stepHolds step = "holds" // it is in the middle of a turn and holds the others up
)

func stepOf(r Run, approvals []Approval, effects []Effect) step {
	asks := slices.ContainsFunc(approvals, func(p Approval) bool { return p.Run == r.ID && p.State == ApprovalPending })
	busy := slices.ContainsFunc(effects, func(e Effect) bool { return e.Run == r.ID && e.State == EffectDispatched && e.Fact != FactUnknown })
	switch {
	case r.Desired == DesiredCancelled:
		return stepGoes // to be closed
	case r.Desired == DesiredPaused && r.Phase != PhaseWorking:
		return stepWaits
	case r.Desired == DesiredPaused, r.Phase == PhaseQueued:
		return stepGoes
	case r.Phase == PhaseWorking && asks && !busy:
		return stepHolds
	case r.Phase == PhaseWorking, Timed(r.ReasonCode):
		return stepGoes
	case r.ReasonCode == CodeApproval && !asks:
		return stepGoes
	case r.ReasonCode == CodeApproval && r.Kind == RunPrompt:
		return stepHolds
	}
	return stepWaits
}
