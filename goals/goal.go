package goals

import (
	"errors"
	"time"

	"holdfast/session"
)

// Status is the state of a Goal.
type Status string

const (
	Active    Status = "active"           // pursued; entered by creation, resume and retry
	Paused    Status = "paused"           // by the user's pause or cancel; left by resume or end
	Blocked   Status = "blocked"          // needs a person; left by retry, resume, revise or end
	Achieved  Status = "achieved"         // final: accepted by a review
	Cancelled Status = "cancelled"        // final: ended by the user
	Exhausted Status = "budget_exhausted" // an explicit budget is used up; left by another one or end
)

// Statuses lists every status.
var Statuses = []Status{Active, Paused, Blocked, Exhausted, Achieved, Cancelled}

// Ended tells whether nothing more can happen to the Goal.
func (s Status) Ended() bool { return s == Achieved || s == Cancelled }

// Goal is a durable objective.
type Goal struct {
	ID             string
	Session        session.SessionID
	Run            session.RunID
	Revision       int64
	ControlVersion int64
	Objective      string
	Status         Status
	ReasonCode     session.Code
	Reason         string
	// Candidate is the worker's summary of a result it offers for review; a claim, not evidence.
	Candidate string
	// Blocker is the last obstacle the worker named, BlockerTurns for how many turns in a row.
	Blocker      string
	BlockerTurns int
	IdleTurns    int    // turns in a row that changed nothing
	Progress     string // digest over results and evidence after the last turn
	Reviewed     string // Progress when a review last refused it, and Reviews how often in a row that was the same
	Reviews      int
	TodoSeen     string // digest of the todo when a review last began
	Feedback     string // what the last review found missing
	Extraction   Extraction
	// ExtractionNote is why no requirements were read out of the objective.
	ExtractionNote string
	// CancelCommand is the cancel that paused the Goal, so that a prompt right behind it can undo just that.
	CancelCommand  string
	Grants         []Grant // given at creation; each counts for one revision
	Budget         Budget
	Asked          Budget // the one that it was created with, which its idempotency key stands for
	IdempotencyKey string
	Program        bool // a program set it, and the user has not revised it since: its words are that program's to revise
	CreatedAt      time.Time
	UpdatedAt      time.Time
	EndedAt        time.Time
	Broken         session.Code // not CodeNone: the stored form is not valid; see [session.RecordError]
}

// Kind is how a requirement is decided.
type Kind string

const (
	KindCommand  Kind = "command"  // by the exit code of a command
	KindFile     Kind = "file"     // by a file's presence and content
	KindSemantic Kind = "semantic" // by an independent reviewer
)

// Result is what is known about a requirement.
type Result string

const (
	Unknown Result = "unknown"
	Met     Result = "met"
	Unmet   Result = "unmet"
	Waived  Result = "waived" // by the user, with a reason
)

// Requirement is one checkable condition.
type Requirement struct {
	ID       string   `json:"id"`
	Kind     Kind     `json:"kind"`
	Text     string   `json:"text"`
	Command  string   `json:"command,omitempty"`
	Path     string   `json:"path,omitempty"`
	Pattern  string   `json:"pattern,omitempty"` // regular expression the file must match
	Result   Result   `json:"result"`
	Reason   string   `json:"reason,omitempty"`
	Evidence []string `json:"evidence"` // effect ids and digests
	JudgedBy string   `json:"judgedBy,omitempty"`
	Origin   Origin   `json:"origin"`
	// Confirmed is false for what the model read out of the objective until the user confirms it.
	Confirmed bool `json:"confirmed"`
	SentBack  bool `json:"-"` // not confirmed, and it has sent the work back once
}

// Origin is who a requirement comes from.
type Origin string

const (
	FromUser  Origin = "user"  // given with the objective, or with its revision
	Added     Origin = "added" // by the user later
	FromModel Origin = "model" // read out of the objective
)

// binds tells whether the requirement has to be met. What nobody confirmed sends the work back once: a bad reading of the objective must not hold
// it up for ever, and the objective itself always binds.
func (q Requirement) binds() bool {
	return q.Origin != FromModel || q.Confirmed || !q.SentBack && q.Result == Unmet
}

// objectiveID is the requirement that is the objective itself.
const objectiveID = "objective"

// Tx is what this package needs of a transaction besides session.Tx.
type Tx interface {
	session.Tx
	InsertGoal(Goal) error
	// UpdateGoal writes a goal and announces it.
	UpdateGoal(Goal, time.Time) error
	Goal(id string) (Goal, error)
	// OpenGoal returns the Goal of a session that has not ended, or ErrNotFound.
	OpenGoal(session.SessionID) (Goal, error)
	Goals(session.SessionID) ([]Goal, error)
	GoalByKey(session.SessionID, string) (Goal, error)
	// GoalsByKey lists the Goals of every session that were created with an idempotency key.
	GoalsByKey(key string) ([]Goal, error)
	// AllGoals lists Goals, newest first, after the place (updated, id). An empty session or status matches all.
	AllGoals(sess session.SessionID, status Status, updated time.Time, id string, limit int) ([]Goal, error)
	PutRequirements(goal string, revision int64, reqs []Requirement) error
	Requirements(goal string, revision int64) ([]Requirement, error)
}

// in gives the goal side of a session transaction: one store implements both.
func in(tx session.Tx) Tx {
	g, ok := tx.(Tx)
	if !ok {
		panic("goals: the store does not implement goals.Tx")
	}
	return g
}

// Errors a door turns into its own form.
var (
	ErrExists  = errors.New("the session already has an unfinished goal")
	ErrVersion = errors.New("the goal changed since the version you named")
)

// NotAllowedError: the goal's state does not permit the action.
type NotAllowedError struct {
	Action string
	Status Status
	Hint   string
}

func (e *NotAllowedError) Error() string {
	return "cannot " + e.Action + " a goal that is " + string(e.Status) + ": " + e.Hint
}
