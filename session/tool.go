package session

import (
	"context"
	"encoding/json"
)

// Class says what a repeated call may do. It comes only from the implementation compiled into this binary, never from a name, a
// description, an annotation or the model.
type Class string

const (
	ReadOnly   Class = "read_only"   // changes nothing outside; may run again at any time
	Idempotent Class = "idempotent"  // a repetition changes nothing more
	StateProbe Class = "state_probe" // the outcome can be proven afterwards, by file digests
	Unknown    Class = "unknown"     // neither; a dispatched call without a result is never repeated by itself
)

// Kind is the ACP tool kind shown to the user.
type Kind string

const (
	KindRead    Kind = "read"
	KindEdit    Kind = "edit"
	KindDelete  Kind = "delete"
	KindMove    Kind = "move"
	KindSearch  Kind = "search"
	KindExecute Kind = "execute"
	KindThink   Kind = "think"
	KindFetch   Kind = "fetch"
	KindOther   Kind = "other"
)

// Tool is one built-in tool.
type Tool interface {
	Spec() ToolSpec
	Class() Class
	Kind() Kind
	// Version names the implementation; with the name it is the identity that approvals and effects are bound to.
	Version() string
	// Plan checks the arguments and says what the call would do, without doing any of it. An error is a *ToolError whose text
	// goes to the model.
	Plan(env ToolEnv, args json.RawMessage) (Plan, error)
	// Run does what a plan says. For a StateProbe tool it re-reads the before digest right before its rename and fails with a
	// *ToolError when it differs from plan.Files.
	Run(ctx context.Context, env ToolEnv, plan Plan, progress func(Output)) (Output, error)
}

// ToolEnv is what a call may depend on.
type ToolEnv struct {
	Cwd   string   // absolute
	Roots []string // absolute; the cwd is the first
	// Env is the environment for commands, without any provider key.
	Env []string
	// RunDir is a private folder for this one call, outside the roots; only supervised commands use it.
	RunDir string
	// Buffer gives the text of a file as the attached editor shows it; nil where none offers that.
	Buffer Buffers
	// Backgrounds lists the background commands of the session; nil where there is none to ask.
	Backgrounds func(context.Context) ([]Background, error)
}

// Plan is a checked call. It is stored before the call is dispatched, so that a later process can probe or reconnect.
type Plan struct {
	Args    json.RawMessage `json:"args" secret:"known"` // normalised arguments, the input of the arguments digest
	Title   string          `json:"title"`               // one line for the user
	Paths   []string        `json:"paths,omitempty"`     // absolute, links resolved: what is read or written
	Place   Place           `json:"place,omitempty"`     // the worst of where they lie
	Line    int             `json:"line,omitempty"`      // 1-based line of interest in Paths[0]
	Files   []FileChange    `json:"files,omitempty"`     // what a StateProbe call will write
	Command string          `json:"command,omitempty" secret:"known"`
	// Question and Choices are what the call asks the user.
	Question  string    `json:"question,omitempty"`
	Choices   []string  `json:"choices,omitempty"`
	Host      string    `json:"host,omitempty"` // of another machine that the call goes to, with a port that is not the usual one
	TimeoutMs int64     `json:"timeoutMs,omitempty"`
	Terminal  bool      `json:"terminal,omitempty"` // the command gets a terminal of its own
	External  *External `json:"external,omitempty"` // the call goes to an external server
	// Background is the background command that the call is about. One that it starts gets its name when the call is dispatched.
	Background *BackgroundRef `json:"background,omitempty"`
	// Programs are files below the roots that a command names as what it runs, as they are now.
	Programs []FileState `json:"programs,omitempty"`
	// Reach is how far the command goes, as far as its words tell, and Decides is the part of it that says so.
	Reach   Reach  `json:"reach,omitempty"`
	Decides string `json:"decides,omitempty"`
	// Writes are the files that its redirections name, absolute, links resolved.
	Writes []string `json:"writes,omitempty"`
	// Touches are further files that a command names to programs which change what they name.
	Touches []string `json:"touches,omitempty"`
	// Confined is what the command is confined to; nil when it is not.
	Confined *Confinement `json:"confined,omitempty"`
	// Permission is why the call may happen: the policy's rule, and what the user said.
	Permission string `json:"permission,omitempty"`
}

// Witness is a tool that can tell which files decide what a call does, besides its arguments.
type Witness interface {
	Programs(env ToolEnv, plan Plan) []FileState
}

// FileState is a file and its digest: "sha256:<hex>", "absent", or a word for what cannot be read.
type FileState struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
}

// Output is what a call returned.
type Output struct {
	Text    string `json:"text"`             // for the model and the user, capped
	IsError bool   `json:"isError"`          // the tool ran and failed
	Digest  string `json:"digest,omitempty"` // sha256 of the whole result, before any cap
	// ExitCode and Signal are set for commands. ExitCode is nil when it is not known.
	ExitCode *int   `json:"exitCode,omitempty"`
	Signal   string `json:"signal,omitempty"`
	// Stopped is set when the user or a deadline ended the command: it started and may have had effects.
	Stopped string `json:"stopped,omitempty"`
	// Cut is how many bytes of the whole result Text leaves out; they can be fetched.
	Cut int64 `json:"cut,omitempty"`
	// Kept is the digest under which the text is stored whole, and Size its bytes, when Text is a short form of it.
	Kept string `json:"kept,omitempty"`
	Size int    `json:"size,omitempty"`
	// Images are pictures that belong to the result.
	Images []Image `json:"images,omitempty"`
	// Heard is what the call has learnt of a background command.
	Heard *Heard `json:"-"`
}

// ToolError is a failure whose text the model should read; nothing was changed.
type ToolError struct{ Message string }

func (e *ToolError) Error() string { return e.Message }
