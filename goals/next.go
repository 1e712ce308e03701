package goals

import "holdfast/session"

// Act is what follows a turn of a Goal.
type Act string

const (
	Continue Act = "continue" // another turn
	Verify   Act = "verify"   // an independent review
	Block    Act = "block"    // a person is needed
	Rest     Act = "rest"     // nothing: the Goal is not active
)

// Facts is what Next looks at after a turn.
type Facts struct {
	Status      Status
	Candidate   bool // the worker offered a result in this revision
	Unknown     bool // effects of the conversation with an unknown outcome
	Blocker     bool // the worker named an obstacle in this turn
	SameBlocker bool // the same one as in the turns before, three in a row
	Progress    bool // results or evidence changed in this turn
	IdleTurns   int  // turns in a row without progress, this one included
}

// Limits of patience, in turns in a row.
const (
	blockerTurns = 3
	idleTurns    = 3
)

// Decision is what follows and why.
type Decision struct {
	Act  Act
	Rule string
	Code session.Code
}

// Next decides what follows a turn. There is no limit on the number of turns.
func Next(f Facts) Decision {
	switch {
	case f.Status != Active:
		return Decision{Rest, "G1 only an active goal goes on", session.CodeNone}
	case f.Candidate && !f.Unknown:
		return Decision{Verify, "G2 a candidate is reviewed", session.CodeVerifying}
	case f.Blocker && f.SameBlocker:
		return Decision{Block, "G3 the same obstacle three turns running", session.CodeBlocked}
	case !f.Progress && f.IdleTurns >= idleTurns:
		return Decision{Block, "G4 three turns running changed nothing", session.CodeNoProgress}
	case f.Candidate && f.Unknown:
		return Decision{Continue, "G5 an unknown outcome is settled before a review", session.CodeNone}
	}
	return Decision{Continue, "G6 otherwise the work goes on", session.CodeNone}
}
