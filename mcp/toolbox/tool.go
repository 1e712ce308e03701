package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/internal/picture"
	"holdfast/mcp/client"
	"holdfast/session"
)

// tool is one tool of one server as a session sees it.
type tool struct {
	box  *Box
	def  client.Tool
	held *held
}

var _ session.Preparer = (*tool)(nil)

func (t *tool) Spec() session.ToolSpec {
	return session.ToolSpec{Name: t.def.Exposed, Description: t.def.Description, Schema: t.def.Schema}
}

// Class is constant: what a server says of itself decides nothing.
func (t *tool) Class() session.Class { return session.Unknown }
func (t *tool) Kind() session.Kind   { return session.KindOther }

// Version binds approvals to the server's whole definition and to the tool's.
func (t *tool) Version() string { return "mcp:" + session.Digest(t.held.digest, t.def.Hash) }

// Plan checks the arguments against the server's own schema; what fails here was provably not sent.
func (t *tool) Plan(_ session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	mapped, err := t.def.Arguments(args)
	if err != nil {
		return session.Plan{}, &session.ToolError{Message: err.Error()}
	}
	return session.Plan{Args: mapped, Title: title(t.held.name, t.def.Name, mapped),
		External: &session.External{Server: t.held.name, Tool: t.def.Name, Definition: t.def.Hash}}, nil
}

// shownArgs is how much of the arguments a title shows.
const shownArgs = 120

// title is the call on one line: a person who is asked about it, perhaps after its outcome got lost, has to know what it was.
func title(server, name string, args json.RawMessage) string {
	text := string(args)
	if r := []rune(text); len(r) > shownArgs {
		text = string(r[:shownArgs]) + "…"
	}
	if text == "{}" {
		text = ""
	}
	return strings.TrimSpace(server + ": " + name + " " + text)
}

// Run is never reached: a call goes through Prepare, so that its send is on record.
func (t *tool) Run(context.Context, session.ToolEnv, session.Plan, func(session.Output)) (session.Output, error) {
	panic("toolbox: an external tool runs only prepared")
}

// Prepare makes sure that the server is there and the tool is still what was allowed.
func (t *tool) Prepare(ctx context.Context, _ session.ToolEnv, plan session.Plan) (session.Prepared, error) {
	if t.held.server == nil {
		return nil, session.MissingServer(t.held.name)
	}
	slot, err := t.held.server.Acquire(ctx, t.def)
	switch {
	case errors.Is(err, client.ErrChanged):
		return nil, session.ErrStale
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &session.ToolError{Message: fmt.Sprintf("The MCP server %q cannot be used now: %v. Nothing was sent.", t.held.name, err)}
	}
	return &send{tool: t, slot: slot, args: plan.Args, ticket: t.box.NewID()}, nil
}

// send is the one send of a call. Its methods are called in order by the turn that makes the call.
type send struct {
	tool   *tool
	slot   *client.Slot
	args   json.RawMessage
	ticket string
	row    session.Send
}

// Dispatching puts the send on record, in the transaction that dispatches the call.
func (s *send) Dispatching(tx session.Tx, e session.Effect, now time.Time) error {
	s.row = session.Send{ID: s.ticket, Effect: e.ID, Round: 1, Server: s.tool.held.name, Config: s.tool.held.digest, Tool: s.tool.def.Name,
		Definition: s.tool.def.Hash, ArgsDigest: session.Digest(string(s.args)), State: session.SendSending, SentAt: now}
	return tx.InsertSend(s.row)
}

// detachGrace is how long a call in flight may still answer when this process lets go of the session.
const detachGrace = 700 * time.Millisecond

// Run sends and waits. An outcome that is not an answer is a *session.LostError, whatever happened. When this process lets go, what comes
// too late is not waited for: the send stays on record as sending, and the next owner calls its outcome unknown.
func (s *send) Run(ctx context.Context, progress func(session.Output)) (session.Output, error) {
	calling, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	gone := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), session.ErrDetach) {
			time.AfterFunc(detachGrace, func() { close(gone) })
			return
		}
		cancel(context.Cause(ctx))
	})
	defer stop()
	outcome := make(chan client.Outcome, 1)
	s.tool.box.wg.Go(func() { // ends with the server at the latest
		outcome <- s.slot.Call(calling, s.ticket, s.args, func(text string) { progress(session.Output{Text: text}) })
	})
	var o client.Outcome
	select {
	case o = <-outcome:
	case <-gone:
		return session.Output{}, session.ErrDetach
	}
	s.row.Protocol, s.row.RPCID, s.row.Written = o.Protocol, o.RPCID, o.Written
	if !o.Answered {
		s.row.State, s.row.Reason = session.SendUnknown, o.Reason
		lost := &session.LostError{Message: fmt.Sprintf("The call was sent to the MCP server %q and no answer was received: %s.", s.tool.held.name, o.Reason)}
		if o.Open {
			lost.Lookup = session.LookupAnswer
		}
		return session.Output{}, lost
	}
	o.Answer = veiled(o.Answer, s.tool.held.veil, s.tool.box.Mask)
	var err error
	if s.row.Answer, err = s.tool.box.keep(o.Answer); err != nil { // nothing that cannot be stored is called answered
		s.tool.box.Log.Error().Err(err).Str("send_id", s.ticket).Msg("an answer could not be stored")
		s.row.State, s.row.Reason = session.SendUnknown, "an answer came, and it could not be stored"
		return session.Output{}, &session.LostError{Message: fmt.Sprintf("The MCP server %q answered, and the answer could not be stored.", s.tool.held.name)}
	}
	s.row.State, s.row.Kind, s.row.AnswerDigest = session.SendAnswered, o.Answer.Kind, o.Answer.Digest
	return output(o.Answer), nil
}

func output(a client.Answer) session.Output {
	out := session.Output{Text: a.Text, Cut: a.Cut, IsError: a.IsError, Digest: a.Digest}
	for n, b := range a.Images {
		fit, _, err := picture.Fit(b)
		if err != nil {
			out.Text += fmt.Sprintf("\n[image %d cannot be shown: %v]", n+1, err)
			continue
		}
		out.Images = append(out.Images, session.NewImage(fit.MIME, fit.Width, fit.Height, fit.Data))
	}
	return out
}

// Settle stores what came of the send, in the transaction that settles the call.
func (s *send) Settle(tx session.Tx, now time.Time) error {
	if s.row.State == session.SendSending {
		return nil // the answer could not be kept: recovery will say unknown
	}
	s.row.EndedAt = now
	return tx.UpdateSend(s.row)
}

func (s *send) Done() { s.slot.Release() }
