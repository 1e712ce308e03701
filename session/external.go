package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// SendState is how far one send of a call to an external server came.
type SendState string

const (
	SendSending  SendState = "sending"  // committed before the first byte; after a crash the outcome is unknown
	SendAnswered SendState = "answered" // a complete answer is stored; final
	SendUnknown  SendState = "unknown"  // the wait ended without one; final for automation
	SendResolved SendState = "resolved" // a late answer came after all; the reason of the unknown stays
)

// Send is one tools/call as it went, or may have gone, to an external server. There is a row for each send, and none is sent twice.
type Send struct {
	ID           string
	Effect       EffectID
	Round        int
	Server       string // our name for it
	Config       string // digest of the definition it was started from
	Tool         string // its own name for the tool
	Definition   string // digest of the tool's definition as the user saw it
	ArgsDigest   string
	State        SendState
	Kind         string // of the answer: ok, tool_error, protocol_error, input_required, task, malformed
	Reason       string // why the outcome is unknown
	Protocol     string
	RPCID        string
	Written      int64 // bytes that were handed over, as far as known
	Answer       string
	AnswerDigest string
	SentAt       time.Time
	EndedAt      time.Time
}

// ServerDef is an MCP server as a client supplied it, without secret values.
type ServerDef struct {
	Name    string
	Command string
	Args    []string // what may be a secret is masked
	Env     []string // names only
	Digest  string   // keyed hash over the whole definition, values included
	// Tools are the definitions the server last listed, so that they stay in the tool list while it is not here.
	Tools []json.RawMessage
}

// Toolbox offers the tools of external servers. The engine asks it before each model request of a conversation.
type Toolbox interface {
	// Offer returns the tools of a session, waiting a bounded time for servers that are starting.
	Offer(ctx context.Context, s Session) []Tool
	// Find returns one tool by the name the model knows, or nil. A tool of a server that is not here is found all the same.
	Find(ctx context.Context, s Session, name string) Tool
	// Missing says which server a tool needs that only a client can bring back, "" when there is none.
	Missing(ctx context.Context, s Session, name string) string
}

// Preparer is a tool whose call needs something made ready before it is dispatched. Prepare lets nothing of the call leave the process.
// Done is called when the call is over. An error is a *ToolError, a *WaitError or ErrStale: the tool is no longer what was allowed.
type Preparer interface {
	Prepare(ctx context.Context, env ToolEnv, plan Plan) (Prepared, error)
}

// Prepared is a call that is ready to go.
type Prepared interface {
	// Dispatching stores, in the transaction that dispatches the call, what has to be on record before it goes.
	Dispatching(tx Tx, e Effect, now time.Time) error
	// Run makes the call. Settle stores what came of it, in the transaction that settles the call.
	Run(ctx context.Context, progress func(Output)) (Output, error)
	Settle(tx Tx, now time.Time) error
	// Done gives back what was held for the call.
	Done()
}

// WaitError says that a call has to wait for something that only a person can supply; the run is parked with the code.
type WaitError struct {
	Code    Code
	Message string
}

func (e *WaitError) Error() string { return e.Message }

// MissingServer is the wait for a server that only a client can bring back.
func MissingServer(name string) *WaitError {
	return &WaitError{Code: CodeServerMissing, Message: fmt.Sprintf("%s (%s)", Diagnostics[CodeServerMissing].Sentence, name)}
}

// External names the tool of an external server that a planned call goes to.
type External struct {
	Server     string `json:"server"`
	Tool       string `json:"tool"`       // its own name for it
	Definition string `json:"definition"` // digest of the definition that the user saw
}

// lose marks the sends of a call that have no answer as unknown.
func lose(tx Tx, id EffectID, why string, now time.Time) error {
	sends, err := tx.Sends(id)
	if err != nil {
		return err
	}
	for _, s := range sends {
		if s.State != SendSending {
			continue
		}
		s.State, s.Reason, s.EndedAt = SendUnknown, why, now
		if err := tx.UpdateSend(s); err != nil {
			return err
		}
	}
	return nil
}

// Resolve stores an answer that came after its call was given as unknown. It settles the call, unless a person has done so before, and
// takes back the questions that named it. ErrStale: the unknown outcome is not stored yet.
func (e *Engine) Resolve(ctx context.Context, s Send, out Output) error {
	var session SessionID
	err := e.Store.Commit(ctx, "send.resolved", func(tx Tx) error {
		old, err := tx.Send(s.ID)
		if err != nil {
			return err
		}
		if old.State != SendUnknown {
			return fmt.Errorf("send %s is %s: %w", s.ID, old.State, ErrStale)
		}
		now := e.Now()
		s.State, s.Reason, s.Protocol, s.Written, s.EndedAt = SendResolved, "", old.Protocol, old.Written, now
		if err := tx.UpdateSend(s); err != nil {
			return err
		}
		ef, err := tx.Effect(old.Effect)
		if err != nil {
			return err
		}
		session = ef.Session
		f := Finding{Fact: FactCompleted, By: SettledByReceipt, Output: &out, Note: "The answer came late.", Evidence: s.AnswerDigest, Instance: e.Self.ID}
		if err := SettleFinding(tx, ef.ID, f, now); err != nil {
			return err
		}
		return voidNaming(tx, session, ef.ID, now)
	})
	if err != nil {
		return fmt.Errorf("store a late answer: %w", err)
	}
	e.changed(session)
	return nil
}
