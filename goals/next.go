package goals

import "holdfast/session"

// Act is what follows a turn of a Goal.
type Act string

const (
	Continue Act = "continue" // another turn
	Verify   Act = "verify"   // an independent review
	Wait     Act = "wait"     // nothing until a command that runs has ended
	Block    Act = "block"    // a person is needed
	Rest     Act = "rest"     // nothing: the Goal is not active
)

// Facts is what Next looks at after a turn.
type Facts struct {
	Status      Status
	Asked       bool // the user asked for a review
	Candidate   bool // the worker offered a result in this revision
	TodoOpen    bool // a required todo item is not completed
	TodoDone    bool // all required todo items are completed, and no review has seen them so
	Unknown     bool // effects of the conversation with an unknown outcome
	Subtasks    bool // subtasks that have not ended; this version has none
	Live        bool // a command of this work runs in the background
	Reviewed    bool // reviews have refused this same result as often as they may
	Blocker     bool // the worker named an obstacle in this turn
	SameBlocker bool // the same one as in the turns before, three in a row
	Workable    bool // a todo item is open about which something can be done
	Progress    bool // results or evidence changed in this turn
	IdleTurns   int  // turns in a row without progress, this one included
}

// Limits of patience, in turns in a row.
const (
	blockerTurns = 3
	idleTurns    = 3
	// maxReviews is how many reviews in a row may judge a result that has not changed.
	maxReviews = 2
)

// Decision is what follows and why.
type Decision struct {
	Act  Act
	Rule string
	Code session.Code
}

// Next decides what follows a turn. There is no limit on the number of turns.
func Next(f Facts) Decision {
	offered := f.Candidate || f.TodoDone
	tired := !f.Progress && f.IdleTurns >= idleTurns
	switch {
	case f.Status != Active:
		return Decision{Rest, "G1 only an active goal goes on", session.CodeNone}
	case f.Asked:
		return Decision{Verify, "G2 the user asked for a review", session.CodeVerifying}
	case offered && !f.TodoOpen && !f.Unknown && !f.Subtasks && !f.Reviewed && f.Candidate:
		return Decision{Verify, "G3 a candidate is reviewed", session.CodeVerifying}
	case offered && !f.TodoOpen && !f.Unknown && !f.Subtasks && !f.Reviewed:
		return Decision{Verify, "G4 a todo that is done is reviewed", session.CodeVerifying}
	case f.Live && !f.Progress && !f.Candidate:
		return Decision{Wait, "G5 a command runs and there is nothing else to do", session.CodeCommandRuns}
	case f.Blocker && f.SameBlocker && (!f.Workable || tired):
		return Decision{Block, "G6 the same obstacle three turns running", session.CodeBlocked}
	case tired:
		return Decision{Block, "G7 three turns running changed nothing", session.CodeNoProgress}
	case offered && f.TodoOpen:
		return Decision{Continue, "G8 an open todo item is worked on before a review", session.CodeNone}
	case offered && f.Unknown:
		return Decision{Continue, "G9 an unknown outcome is settled before a review", session.CodeNone}
	case offered && f.Reviewed:
		return Decision{Continue, "G10 a refused result changes before the next review", session.CodeNone}
	case offered && f.Subtasks:
		return Decision{Continue, "G11 subtasks end before a review", session.CodeNone}
	}
	return Decision{Continue, "G12 otherwise the work goes on", session.CodeNone}
}
