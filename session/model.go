package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"holdfast/usage"
)

// Role says who speaks in a model request.
type Role string

const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Call is one tool call as the model made it. Args is the raw text the model sent; it may be invalid JSON.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args" secret:"known"`
}

// Message is one message of a model request. Calls is set on assistant messages, CallID on tool messages, which hold the one
// result of that call in Text.
type Message struct {
	Role    Role    `json:"role"`
	Text    string  `json:"text,omitempty"`
	Calls   []Call  `json:"calls,omitempty"`
	CallID  string  `json:"callId,omitempty"`
	IsError bool    `json:"isError,omitempty"` // tool messages: the call failed
	Images  []Image `json:"images,omitempty"`  // user and tool messages: pictures, with their bytes
	Native  *Native `json:"native,omitempty"`  // assistant messages: the same answer as this model gave it, when it may be sent back so
}

// Native is a complete answer in the form of the provider that gave it, block by block and in order. It holds what text and calls
// cannot: reasoning with the signatures that the provider checks when it gets it back. Only the same provider and model read it.
type Native struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// Before is the provider's digest of everything that the request held; a signature may hold for that history only.
	Before string            `json:"before,omitempty"`
	Blocks []json.RawMessage `json:"blocks"`
}

// ToolSpec describes one tool to the model. Schema is a JSON Schema object.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// ModelRequest is everything one provider request depends on. Cwd and Faults are for scripts and recordings; no endpoint is sent them.
type ModelRequest struct {
	System   string
	Messages []Message
	Tools    []ToolSpec
	// Conversation names the conversation whose requests begin alike, for endpoints that look for the beginning in a cache by name. It
	// says nothing of the session to anybody else; "" for a request that stands alone.
	Conversation string
	Cwd          string // the session's directory
	Faults       int    // requests for the same answer that failed, in a row
	Effort       string // how much the model is to think, in its own levels; "" leaves it to what is set for all, else to the model
}

// EffortDefault is how a person says that nothing is asked of the model.
const EffortDefault = "default"

// Delta is a fragment of a streaming answer. Exactly one of the fields is set.
type Delta struct {
	Text    string
	Thought string
}

// Finish says why the model stopped.
type Finish string

const (
	FinishStop    Finish = "stop"       // the model ended its turn
	FinishCalls   Finish = "tool_calls" // the model wants tool results
	FinishLength  Finish = "length"     // output limit reached
	FinishRefusal Finish = "refusal"    // the model or its filter refused
)

// ModelResponse is one complete answer: it exists only when the provider's terminal event arrived.
type ModelResponse struct {
	Text    string
	Thought string
	Calls   []Call
	Finish  Finish
	Usage   usage.Tokens // Known is false when the provider sent no usage
	Native  *Native      // nil when text and calls say it all, or when the answer must not be sent back as it came
}

// Model answers one request. Implementations never retry by themselves: a retry is a new provider attempt with its own record.
// onDelta is called in order from the calling goroutine; an error from it ends the stream and is returned. When the answer is
// incomplete the error is a *ModelError and nothing of the tool calls received so far may be used.
type Model interface {
	Stream(ctx context.Context, req ModelRequest, onDelta func(Delta) error) (ModelResponse, error)
	// Identity says what answers: shown to the user and compared before another process continues the work.
	Identity() ModelIdentity
}

// ModelIdentity is the non-secret identity of a model endpoint.
type ModelIdentity struct {
	Provider   string // "openai", "anthropic", "scripted"
	Name       string // the model's name at the provider, or the script's path
	Origin     string // scheme://host[:port] of the base URL, or "" for a script
	API        string // of the provider's wires the one that is spoken, where it has several: "chat" or "responses"
	Credential string // keyed hash of the credential, "" for none; never the credential
	Scripted   bool   // a scripted model says so on every surface
}

// ModelErrorKind is what a caller may do about a failed provider request.
type ModelErrorKind string

const (
	ModelCutOff     ModelErrorKind = "cut_off"          // the stream ended before its terminal event; tokens may be spent
	ModelNetwork    ModelErrorKind = "network"          // no connection, reset, or stalled
	ModelRateLimit  ModelErrorKind = "rate_limit"       // 429
	ModelOverloaded ModelErrorKind = "overloaded"       // 408, 409, 5xx
	ModelAuth       ModelErrorKind = "auth"             // 401, 403
	ModelNotFound   ModelErrorKind = "model_not_found"  // 404
	ModelOverflow   ModelErrorKind = "context_overflow" // the request is too long
	ModelBadRequest ModelErrorKind = "bad_request"      // other 4xx
)

// ModelError is a failed provider request. Message is safe to show: it holds no header and no credential.
type ModelError struct {
	Kind       ModelErrorKind
	Status     int
	Message    string
	RetryAfter time.Duration // 0 when the provider gave none
	Account    bool          // what is used up is the account's, whichever model is asked
	Native     bool          // refused for what an earlier answer holds in its native form: asked without it, the model may answer
	Err        error
}

func (e *ModelError) Error() string { return fmt.Sprintf("model %s: %s", e.Kind, e.Message) }
func (e *ModelError) Unwrap() error { return e.Err }

// Temporary tells whether the same request may succeed later without anybody changing anything.
func (e *ModelError) Temporary() bool {
	switch e.Kind {
	case ModelCutOff, ModelNetwork, ModelRateLimit, ModelOverloaded:
		return true
	}
	return false
}
