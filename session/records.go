package session

import (
	"encoding/json"
	"slices"
	"time"

	"holdfast/usage"
)

// Mode is what a session may do without asking.
type Mode string

const (
	ModeAsk  Mode = "ask"  // reads are free, everything else asks; the default
	ModeEdit Mode = "edit" // file edits inside the roots are free as well
	ModeAuto Mode = "auto" // also commands that the policy allows
	ModePlan Mode = "plan" // reads only
)

// Modes lists every mode in the order shown to the user.
var Modes = []Mode{ModeAsk, ModeEdit, ModeAuto, ModePlan}

// Edits tells whether file edits inside the roots are free in a mode.
func (m Mode) Edits() bool { return m == ModeEdit || m == ModeAuto }

// Above tells whether a mode lets more happen without asking than another.
func (m Mode) Above(o Mode) bool {
	order := []Mode{ModePlan, ModeAsk, ModeEdit, ModeAuto}
	return slices.Index(order, m) > slices.Index(order, o)
}

// Session is one conversation.
type Session struct {
	ID    SessionID
	Cwd   string
	Roots []string // the cwd first
	// Identity names the directory itself (device, inode, and what HEAD names), so that a replaced one is noticed.
	Identity   string
	WorkTree   string // the top of what the directory belongs to; sessions of one tree share it
	Title      string
	Mode       Mode
	Choice     Choice  // of a person, for what it is asked next
	Profile    Profile // what its current work runs with
	Owner      InstanceID
	Generation int64
	LastSeq    int64
	Closed     bool      // closed by the client: not a stop, but not continued by launch alone
	Served     time.Time // when work of it last began
	Recovery   Auto      // what is done with inherited work; "" for what the configuration says
	CreatedAt  time.Time
	UpdatedAt  time.Time
	Broken     Code // not CodeNone: the stored form is not valid; see [RecordError]
}

// RunKind is the kind of accepted work.
type RunKind string

const (
	RunPrompt       RunKind = "prompt"
	RunGoal         RunKind = "goal"
	RunVerification RunKind = "verification"
)

// Desired is what the user wants of a run; only a control changes it, and it outlives the process.
type Desired string

const (
	DesiredRun       Desired = "run"
	DesiredPaused    Desired = "paused"    // by pause or cancel of a Goal; left by resume
	DesiredCancelled Desired = "cancelled" // by cancel or end; final
	DesiredDone      Desired = "done"      // the work reached its own end; final
)

// Phase is where a run stands.
type Phase string

const (
	PhaseQueued  Phase = "queued"  // accepted; entered by acceptance and after each Goal turn
	PhaseWorking Phase = "working" // an attempt is running
	PhaseWaiting Phase = "waiting" // needs something named by the reason code
	PhaseEnded   Phase = "ended"   // final; desired is then done or cancelled
)

// Run is one piece of accepted work.
type Run struct {
	ID             RunID
	Session        SessionID
	Kind           RunKind
	Order          int64
	Desired        Desired
	Phase          Phase
	StopReason     string // of an ended prompt: an ACP stop reason, or "error"
	ReasonCode     Code
	Reason         string
	ControlVersion int64
	Goal           string
	Revision       int64
	Input          json.RawMessage // the prompt's content blocks
	CommitPoint    int64           // rises with each stored model answer and each settled effect
	Deaths         int             // owners lost in a row without progress
	Faults         int             // temporary provider faults in a row
	RetryAt        time.Time
	PastLimit      int64         // limits up to this one do not hold it: a person said to ask, or it has waited for them
	RetryWait      time.Duration // how long the wait is at most, whatever the clock does
	Redo           Redo          // what a person said about waiting work; the next admission takes it
	Profile        Profile       // what it goes on with; that of the client it came from
	Client         InstanceID    // the process of that client, "" when none executes
	Left           bool          // the process that had it is gone; an admission or a person's word takes that back
	CreatedAt      time.Time
	EndedAt        time.Time
	Broken         Code // not CodeNone: the stored form is not valid; see [RecordError]
}

// Redo is a person's word on work that waits.
type Redo string

const (
	RedoNone  Redo = ""
	RedoEntry Redo = "entry" // put back what it changed, and begin again
	RedoKeep  Redo = "keep"  // go on in the work tree as it is
)

// AttemptState is how an attempt ended.
type AttemptState string

const (
	AttemptRunning     AttemptState = "running"
	AttemptCompleted   AttemptState = "completed"
	AttemptCancelled   AttemptState = "cancelled"
	AttemptInterrupted AttemptState = "interrupted" // its owner died or let go
	AttemptStalled     AttemptState = "stalled"
	AttemptFailed      AttemptState = "failed"
)

// AttemptMode is why an attempt began.
type AttemptMode string

const (
	ModeFirst      AttemptMode = "first"      // first admission of the run
	ModeTurn       AttemptMode = "turn"       // the next turn of a Goal, or a retry
	ModeReconnect  AttemptMode = "reconnect"  // a command outlived its owner
	ModeCheckpoint AttemptMode = "checkpoint" // same execution, from the last commit
	ModeNewTurn    AttemptMode = "new_turn"   // the old turn was closed as interrupted
)

// Attempt is one try at executing a run by one owner.
type Attempt struct {
	ID              AttemptID
	Run             RunID
	Number          int
	Generation      int64
	Instance        InstanceID
	PID             int
	State           AttemptState
	Mode            AttemptMode
	Rule            string // the recovery rule that admitted it, or ""
	ContinuationKey string
	EntryTree       string // git tree of the work tree before the attempt's first change, or ""
	// Continued: it went on in the work tree as it was, after another attempt. Its entry tree is then the tree it began in.
	Continued bool
	// Fingerprint is that of the work tree as it was last recorded for the attempt.
	Fingerprint string
	StartPoint  int64      // the run's commit point at the start
	HandedTo    InstanceID // whom it was handed over to between two steps, or ""
	Died        bool       // its process died in it, rather than letting go
	StartedAt   time.Time
	EndedAt     time.Time
}

// ItemKind is the kind of a history entry.
type ItemKind string

const (
	ItemUser    ItemKind = "user"    // what the user said
	ItemAgent   ItemKind = "agent"   // what the model said; may be empty when it only called tools
	ItemThought ItemKind = "thought" // reasoning shown to the user, not sent back
	ItemTool    ItemKind = "tool"    // one tool call with its result
	ItemNote    ItemKind = "note"    // for the model only: what happened in between
	ItemMarker  ItemKind = "marker"  // for the user only
	ItemGoal    ItemKind = "goal"    // the one record of an ended Goal; for the user only
	// ItemCompaction is a summary that stands for what was said before it; entered complete, with its request settled, or not at all.
	ItemCompaction ItemKind = "compaction"
)

// ItemState tells whether an item may still change.
type ItemState string

const (
	ItemOpen        ItemState = "open"
	ItemComplete    ItemState = "complete"
	ItemInterrupted ItemState = "interrupted" // what was committed before its owner was lost
)

// Item is one entry of a session's history.
type Item struct {
	ID      ItemID
	Session SessionID
	Seq     int64
	// Thread is empty for the conversation; a review has a thread of its own that is never chat.
	Thread    string
	Run       RunID
	Attempt   AttemptID
	Kind      ItemKind
	State     ItemState
	Body      ItemBody
	CreatedAt time.Time
	Broken    Code // not CodeNone: the stored form is not valid; see [RecordError]
}

// ItemBody is the content of an item; which fields are set depends on the kind.
type ItemBody struct {
	Text   string          `json:"text,omitempty"`
	Blocks json.RawMessage `json:"blocks,omitempty"` // user: the content blocks as the client sent them, images by their digests
	Images []Image         `json:"images,omitempty"` // user: the pictures among them
	// Aside: the user said it to Holdfast, not to the model, which never sees it.
	Aside bool `json:"aside,omitempty"`
	// Response is the provider request that agent, thought and tool items came from.
	Response string    `json:"response,omitempty"`
	Tool     *ToolCall `json:"tool,omitempty"`
	Native   *Native   `json:"native,omitempty"` // agent, complete: the answer as its provider gave it
	// Refused names a model that did not take back the native form of answers before this marker: it is asked without it from here on.
	Refused *Refused `json:"refused,omitempty"`
	// Compaction is what a compaction covers and keeps; its summary is Text.
	Compaction *Compaction `json:"compaction,omitempty"`
}

// ToolStatus is the ACP status of a tool call.
type ToolStatus string

const (
	ToolPending    ToolStatus = "pending"
	ToolInProgress ToolStatus = "in_progress"
	ToolCompleted  ToolStatus = "completed"
	ToolFailed     ToolStatus = "failed"
)

// ToolCall is a call as shown and as sent to the model. Output is nil until there is a result.
type ToolCall struct {
	CallID string       `json:"callId"`
	Name   string       `json:"name"`
	Args   string       `json:"args" secret:"known"`
	Effect EffectID     `json:"effect"`
	Title  string       `json:"title"`
	Kind   Kind         `json:"kind"`
	Paths  []string     `json:"paths,omitempty"`
	Line   int          `json:"line,omitempty"`
	Files  []FileChange `json:"files,omitempty"`
	Status ToolStatus   `json:"status"`
	Fact   Fact         `json:"fact,omitempty"`
	Why    string       `json:"why,omitempty"`    // of an unknown outcome: what is known about how that came
	Lookup Lookup       `json:"lookup,omitempty"` // of an unknown outcome: what could still tell
	Output *Output      `json:"output,omitempty"`
	// ByCode: code planned the call as evidence; no model asked for it.
	ByCode bool `json:"byCode,omitempty"`
}

// EventKind says which record changed.
type EventKind string

const (
	EventItem     EventKind = "item"
	EventRun      EventKind = "run"
	EventGoal     EventKind = "goal"
	EventApproval EventKind = "approval"
	EventSession  EventKind = "session"
)

// Event says that the record Ref changed; the follower reads the record.
type Event struct {
	Session SessionID
	Seq     int64
	Kind    EventKind
	Ref     string
	At      time.Time
}

// EffectState is how far a call came.
type EffectState string

const (
	EffectPlanned    EffectState = "planned"    // stored; nothing happened outside
	EffectDispatched EffectState = "dispatched" // stored right before the outside action
	EffectSettled    EffectState = "settled"    // the outcome is known
)

// Fact is what is certain about a call.
type Fact string

const (
	FactNone       Fact = ""                 // in the hands of a live owner
	FactNotStarted Fact = "not_started"      // provably never began
	FactUnknown    Fact = "unknown"          // may have happened, wholly or in part
	FactCompleted  Fact = "completed"        // the real result is stored
	FactRunning    Fact = "running_external" // goes on outside, with a handle to it
)

// SettledBy says where the certainty comes from.
type SettledBy string

const (
	SettledByResult   SettledBy = "result"   // the call returned
	SettledByReceipt  SettledBy = "receipt"  // a command's receipt, read after a restart
	SettledByProbe    SettledBy = "probe"    // file digests, compared after a restart
	SettledByRecovery SettledBy = "recovery" // provably never started
	SettledByPerson   SettledBy = "person"
)

// Effect is the journal record of one tool call.
type Effect struct {
	ID           EffectID
	Session      SessionID
	Run          RunID
	Attempt      AttemptID
	Item         ItemID
	Tool         string
	Version      string
	Class        Class
	ArgsDigest   string
	State        EffectState
	Fact         Fact
	Plan         Plan
	Dir          string // run folder of a supervised command
	ResultDigest string
	ExitCode     *int
	SettledBy    SettledBy
	Note         string
	Lookup       Lookup // of an unknown outcome
	PlannedAt    time.Time
	DispatchedAt time.Time
	SettledAt    time.Time
	SettledSeq   int64 // the session's sequence number when it was settled
	Broken       Code  // not CodeNone: the stored form is not valid; see [RecordError]
}

// Changes tells whether the call may have changed something outside.
func (e Effect) Changes() bool {
	return e.Class != ReadOnly && e.State != EffectPlanned && e.Fact != FactNotStarted
}

// ApprovalState is the life of a question.
type ApprovalState string

const (
	ApprovalPending  ApprovalState = "pending"
	ApprovalAnswered ApprovalState = "answered" // stored, not yet acted on
	ApprovalConsumed ApprovalState = "consumed" // acted on, exactly once
	ApprovalVoid     ApprovalState = "void"     // cancelled, paused or its binding changed
)

// Option ids of an approval.
const (
	OptionAllow       = "allow_once"
	OptionAllowAlways = "allow_always" // also makes a rule of it
	OptionReject      = "reject_once"
	OptionNever       = "reject_always" // the same for a refusal
	OptionHappened    = "it_happened"   // settles the first of the unknown effects that the question names
	OptionNotHappened = "it_did_not"    // the same, the other way
)

// Approval is one durable question to the user about one call.
type Approval struct {
	ID         ApprovalID
	Session    SessionID
	Run        RunID
	Effect     EffectID
	Binding    string     // digest over arguments, implementation, scope and the unknown set
	Unknown    []EffectID // unknown effects named in the question
	Always     string     // what a standing answer would cover, in words; "" when none is offered
	State      ApprovalState
	Option     string
	Question   string   // of the model; "" when a permission is asked for
	Choices    []string // the answers that a question of the model offers
	Answer     string   // in the words of the user, with OptionAnswer
	AnsweredBy InstanceID
	AskedAt    time.Time
	AnsweredAt time.Time
	Broken     Code // not CodeNone: the stored form is not valid; see [RecordError]
}

// CommandKind is the kind of an accepted control.
type CommandKind string

const (
	CommandPrompt CommandKind = "prompt"
	CommandCancel CommandKind = "cancel"
	CommandAnswer CommandKind = "answer"
	CommandMode   CommandKind = "mode"
	CommandGoal   CommandKind = "goal"
	CommandClose  CommandKind = "close"
	CommandSettle CommandKind = "settle" // a person says what became of an unknown call
	CommandStop   CommandKind = "stop"
)

// Command is one accepted control. What it changes in the records is committed with it; consuming it means that the owner has
// acted on it.
type Command struct {
	ID         string
	Session    SessionID
	Kind       CommandKind
	Ref        string
	Body       json.RawMessage
	Instance   InstanceID
	At         time.Time
	ConsumedAt time.Time
	Generation int64
}

// RequestState is what is known about a provider request.
type RequestState string

const (
	RequestStarted RequestState = "started"
	RequestSettled RequestState = "settled"
	RequestUnknown RequestState = "unknown" // it may have been answered and billed
)

// Request is one provider request; its attribution is fixed before it is sent.
type Request struct {
	ID       string
	Session  SessionID
	Run      RunID
	Attempt  AttemptID
	Goal     string
	Revision int64
	Model    string
	State    RequestState
	Purpose  Purpose
	Input    int64
	Output   int64
	Parts    usage.Parts // of the two
	Price    usage.Price // when it was sent
	// What it takes at most, in tokens, as far as that can be told before; both 0 in requests of earlier versions.
	ReservedInput, ReservedOutput int64
	StartedAt                     time.Time
	SettledAt                     time.Time
	Row                           int64 // rises from request to request
}

// Usage is what the request consumed, as far as it is known.
func (r Request) Usage() usage.Tokens {
	return usage.Tokens{Input: r.Input, Output: r.Output, Parts: r.Parts, Known: r.State == RequestSettled}
}

// Purpose is what a provider request is for.
type Purpose string

const (
	PurposeAnswer     Purpose = ""           // the next answer of a turn
	PurposeCompaction Purpose = "compaction" // a summary of what was said; nothing of it is chat
	// PurposeRequirements asks what an objective demands; nothing of it is chat.
	PurposeRequirements Purpose = "requirements"
)

// Client is who a process works for.
type Client struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	Answers bool   `json:"answers,omitempty"` // it can be asked for permission
}

// Attachment says that a client of an instance has a session open.
type Attachment struct {
	Instance InstanceID
	Session  SessionID
	Client   Client
	Profile  Profile // what its process runs work with; without an environment it executes nothing
	At       time.Time
}

// InstanceRow is one Holdfast process as the store knows it.
type InstanceRow struct {
	ID        InstanceID
	Kind      string
	Host      string
	Boot      string
	Space     string // in which the PID counts; "" when it is not known
	PID       int
	Start     uint64
	StartedAt time.Time
}
