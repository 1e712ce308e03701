package recovery

import "holdfast/session"

// Approval is where the run's question stands.
type Approval string

const (
	NoQuestion Approval = "none"
	Pending    Approval = "pending"
	Answered   Approval = "answered"
)

// Directory is what became of the working directory.
type Directory string

const (
	DirSame    Directory = "same"
	DirMissing Directory = "missing"
	DirChanged Directory = "changed"
)

// Model tells whether this process can go on with the work as it was.
type Model string

const (
	ModelSame    Model = "same"
	ModelMissing Model = "missing"
	ModelDiffers Model = "differs"
)

// Tools tells whether what the planned calls need is here.
type Tools string

const (
	ToolsHere    Tools = "here"
	ToolsMissing Tools = "missing" // a planned call needs an external server that only a client can bring back
)

// Attempt is what the last try left behind.
type Attempt string

const (
	NeverTried Attempt = "never"
	EndedTry   Attempt = "ended"  // it ended in order; the run is between attempts
	HandedTry  Attempt = "handed" // it ended between two steps, for another process to go on
	LostTry    Attempt = "lost"   // its owner died or let go in the middle
)

// Calls is the worst that is true of the calls of the run.
type Calls string

const (
	CallsClosed  Calls = "closed"  // every call has its result
	CallsPlanned Calls = "planned" // some never began
	CallsLive    Calls = "live"    // a command goes on outside
	CallsUnseen  Calls = "unseen"  // the outcome of one cannot be looked at now, and can be later
	CallsUnknown Calls = "unknown" // a call was dispatched, its end is not recorded, and nothing will tell it
)

// Redo is whether the last attempt stalled, or what a person said about beginning again.
type Redo string

const (
	NoRedo       Redo = "none"
	RedoProven   Redo = "proven"     // it stalled for the first time, and everything it changed can be put back for certain
	RedoConfirm  Redo = "confirm"    // it stalled, and a person has to see what it changed
	RedoFromHere Redo = "as_it_is"   // a person said: go on in the work tree as it is
	RedoAll      Redo = "from_entry" // a person said: put back what it changed, and begin again
)

// said tells whether a person has decided.
func (r Redo) said() bool { return r == RedoFromHere || r == RedoAll }

// Auto is whether work goes on by itself whose process is gone.
type Auto string

const (
	AutoGoes     Auto = "goes"
	AutoOff      Auto = "off"      // not here, or not in this session
	AutoAttached Auto = "attached" // once a client opens the session, and none has
)

// Facts is all that Decide looks at.
type Facts struct {
	Desired   session.Desired
	Closed    bool // the client closed the session
	Approval  Approval
	Directory Directory
	Model     Model
	Tools     Tools
	CrashLoop bool // two owners in a row died here without progress
	Attempt   Attempt
	Calls     Calls
	Streaming bool // an answer was being received
	Redo      Redo
	Auto      Auto
}

// Action is what is to be done.
type Action string

const (
	Leave      Action = "leave"
	Wait       Action = "wait"
	Reconnect  Action = "reconnect"
	Checkpoint Action = "checkpoint"
	NewTurn    Action = "new_turn"
	First      Action = "first"
	Turn       Action = "turn"
	Again      Action = "again" // put back what the last turn changed, then a new turn
)

// Decision names its rule and, for a wait, the code that says why and what moves it.
type Decision struct {
	Action Action
	Rule   string
	Code   session.Code
}

// Decide says how a run goes on.
func Decide(f Facts) Decision {
	switch {
	case f.Desired != session.DesiredRun:
		return Decision{Leave, "R1 the user stopped it", session.CodeNone}
	case f.Closed:
		return Decision{Wait, "R2 the client closed the session", session.CodeClosedByClient}
	case f.Auto == AutoOff:
		return Decision{Wait, "R20 recovery is off", session.CodeRecoveryOff}
	case f.Auto == AutoAttached:
		return Decision{Wait, "R21 nobody has the session open", session.CodeNotAttached}
	case f.Approval == Pending && f.Calls != CallsUnknown && f.Calls != CallsUnseen && f.Calls != CallsLive:
		return Decision{Wait, "R3 a question is open", session.CodeApproval}
	case f.Directory == DirMissing:
		return Decision{Wait, "R4 the directory is gone", session.CodeDirectoryMissing}
	case f.Directory == DirChanged:
		return Decision{Wait, "R5 the directory is another one", session.CodeWorkspaceChanged}
	case f.Model == ModelMissing:
		return Decision{Wait, "R6 no model here", session.CodeModelUnavailable}
	case f.Model == ModelDiffers:
		return Decision{Wait, "R7 another endpoint or credential here", session.CodeEnvironment}
	case f.Tools == ToolsMissing && f.Calls == CallsPlanned:
		return Decision{Wait, "R8 an external server is not here", session.CodeServerMissing}
	case f.CrashLoop && !f.Redo.said():
		return Decision{Wait, "R9 two deaths without progress", session.CodeCrashLoop}
	case f.Attempt == NeverTried:
		return Decision{First, "R10 accepted and never begun", session.CodeNone}
	case f.Redo == RedoConfirm:
		return Decision{Wait, "R16 it stalled and a person decides", session.CodeStalled}
	case f.Redo == RedoAll && f.Calls != CallsLive:
		return Decision{Again, "R17 a person said to begin again", session.CodeNone}
	case f.Redo == RedoProven && f.Calls != CallsLive:
		return Decision{Again, "R18 it stalled and every change is proven", session.CodeNone}
	case f.Calls == CallsUnknown && f.Attempt == LostTry:
		return Decision{NewTurn, "R11 an outcome is unknown", session.CodeNone}
	case f.Calls == CallsUnseen && f.Attempt == LostTry:
		return Decision{NewTurn, "R19 an outcome cannot be seen now", session.CodeNone}
	case f.Calls == CallsLive:
		return Decision{Reconnect, "R12 a command lives", session.CodeNone}
	case f.Attempt == LostTry && f.Streaming:
		return Decision{NewTurn, "R13 an answer was cut off", session.CodeNone}
	case f.Attempt == HandedTry:
		return Decision{Checkpoint, "R22 handed over between two steps", session.CodeNone}
	case f.Attempt == LostTry || f.Calls == CallsPlanned:
		return Decision{Checkpoint, "R14 everything up to here is stored", session.CodeNone}
	}
	return Decision{Turn, "R15 between two turns", session.CodeNone}
}
