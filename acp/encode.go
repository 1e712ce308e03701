package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/acp/rpc"
	v1 "holdfast/acp/v1"
	"holdfast/internal/fault"
	"holdfast/session"
)

// update is one session/update of protocol version 1.
type update = v1.SessionUpdate

// interruptedMark follows the text of an answer that was cut off.
const interruptedMark = "\n\n[interrupted here; the rest was lost]"

func (a *Agent) notify(id session.SessionID, u update) {
	err := a.conn.Notify("session/update", v1.SessionNotification{SessionID: v1.SessionID(id), Update: u})
	if err != nil && !errors.Is(err, rpc.ErrClosed) {
		a.Log.Error().Err(err).Msg("an update could not be sent")
	}
}

// parse decodes the parameters of a request as leniently as the schema asks.
func parse[T any](req *rpc.Request) (T, error) {
	var v T
	err := v1.Decode(req.Params, &v)
	var me *v1.MemberError
	if errors.As(err, &me) {
		return v, &invalid{me.Member, me.Message}
	}
	return v, err
}

func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("acp: encode %T: %v", v, err))
	}
	return b
}

func textBlock(text string) v1.ContentBlock {
	return v1.ContentBlock{Text: &v1.TextContent{Text: strings.ToValidUTF8(text, "\uFFFD")}}
}

// textChunk is a fragment of a message; what has no kind of its own is said by the agent.
func textChunk(kind session.ItemKind, id session.ItemID, text string) update {
	c := &v1.ContentChunk{Content: textBlock(text), MessageID: v1.MessageID(id)}
	switch kind {
	case session.ItemThought:
		return update{AgentThoughtChunk: c}
	case session.ItemUser:
		return update{UserMessageChunk: c}
	}
	return update{AgentMessageChunk: c}
}

// userChunks repeats what the user sent, block by block.
func userChunks(it session.Item) []update {
	var blocks []v1.ContentBlock
	if len(it.Body.Blocks) == 0 || json.Unmarshal(it.Body.Blocks, (*blockList)(&blocks)) != nil || len(blocks) == 0 {
		return []update{textChunk(session.ItemUser, it.ID, it.Body.Text)}
	}
	withImages(blocks, it.Body.Images)
	var out []update
	for _, b := range blocks {
		out = append(out, update{UserMessageChunk: &v1.ContentChunk{Content: b, MessageID: v1.MessageID(it.ID)}})
	}
	return out
}

// blockList decodes stored content blocks.
type blockList []v1.ContentBlock

func (l *blockList) UnmarshalJSON(b []byte) error {
	var items []json.RawMessage
	if err := json.Unmarshal(b, &items); err != nil {
		return err
	}
	for _, item := range items {
		var c v1.ContentBlock
		if err := v1.Decode(item, &c); err != nil {
			return err
		}
		*l = append(*l, c)
	}
	return nil
}

// flatten turns a prompt into text and images for the model, and keeps the blocks for the replay.
func flatten(blocks []v1.ContentBlock) (in session.PromptInput, err error) {
	if len(blocks) == 0 {
		return in, &invalid{"prompt", "the prompt is empty"}
	}
	if in.Images, err = takeImages(blocks); err != nil {
		return in, err
	}
	images := in.Images
	var parts []string
	for i, b := range blocks {
		switch {
		case b.Text != nil:
			parts = append(parts, b.Text.Text)
		case b.ResourceLink != nil:
			parts = append(parts, fmt.Sprintf("[%s](%s)", b.ResourceLink.Name, b.ResourceLink.Uri))
		case b.Resource != nil:
			r := b.Resource.Resource.TextResourceContents
			if r == nil {
				return in, &invalid{fmt.Sprintf("prompt[%d]", i), "only text resources can be embedded"}
			}
			parts = append(parts, fmt.Sprintf("Content of %s:\n```\n%s\n```", r.Uri, r.Text))
		case b.Image != nil: // its place among the texts
			parts, images = append(parts, images[0].String()), images[1:]
		default:
			return in, &invalid{fmt.Sprintf("prompt[%d]", i), "this agent takes text, images, resource_link and embedded text resources; audio is not announced"}
		}
	}
	in.Text, in.Blocks = strings.Join(parts, "\n"), raw(blocks)
	if strings.TrimSpace(in.Text) == "" {
		return in, &invalid{"prompt", "the prompt is empty"}
	}
	return in, nil
}

// toolUpdate shows a call as it is now. The key is the same when nothing the client sees has changed.
func toolUpdate(it session.Item, first bool) (update, string) {
	t := it.Body.Tool
	full := v1.ToolCall{
		ToolCallID: v1.ToolCallID(toolID(it)), Title: t.Title, Name: &t.Name, Kind: v1.ToolKind(t.Kind), Status: v1.ToolCallStatus(t.Status),
		Content: content(t), Locations: locations(t), RawInput: rawInput(t.Args),
	}
	key := session.Digest(string(raw(full)))
	if first {
		return update{ToolCall: &full}, key
	}
	return update{ToolCallUpdate: &v1.ToolCallUpdate{ToolCallID: full.ToolCallID, Title: &full.Title, Name: full.Name, Kind: full.Kind, Status: full.Status,
		Content: full.Content, Locations: full.Locations, RawInput: full.RawInput}}, key
}

// toolID is unique over the session, which a model's own ids need not be.
func toolID(it session.Item) string { return string(it.ID) }

func content(t *session.ToolCall) []v1.ToolCallContent {
	out := diffs(t.Files)
	text := ""
	switch {
	case t.Output != nil:
		text = t.Output.Text
	case t.Fact == session.FactUnknown:
		text = t.Unsure() + " It is not repeated by itself."
	}
	if text != "" && (len(t.Files) == 0 || t.Output == nil || t.Output.IsError) {
		out = append(out, v1.ToolCallContent{Content: &v1.Content{Content: textBlock(text)}})
	}
	if t.Output != nil {
		for _, i := range t.Output.Images {
			if i.Data != nil {
				out = append(out, v1.ToolCallContent{Content: &v1.Content{Content: imageContent(i)}})
			}
		}
	}
	return out
}

func locations(t *session.ToolCall) []v1.ToolCallLocation {
	var out []v1.ToolCallLocation
	for i, p := range t.Paths {
		l := v1.ToolCallLocation{Path: p}
		if i == 0 && t.Line > 0 {
			n := uint32(t.Line)
			l.Line = &n
		}
		out = append(out, l)
	}
	return out
}

func rawInput(args string) json.RawMessage {
	if json.Valid([]byte(args)) {
		return json.RawMessage(args)
	}
	return raw(args)
}

// liveOutput shows what a running call has printed so far.
func liveOutput(item session.ItemID, out session.Output) update {
	return update{ToolCallUpdate: &v1.ToolCallUpdate{ToolCallID: v1.ToolCallID(item), Status: v1.ToolCallStatusInProgress,
		Content: []v1.ToolCallContent{{Content: &v1.Content{Content: textBlock(out.Text)}}}}}
}

// pendingAgain takes back that a call is running.
func pendingAgain(item session.ItemID) update {
	return update{ToolCallUpdate: &v1.ToolCallUpdate{ToolCallID: v1.ToolCallID(item), Status: v1.ToolCallStatusPending}}
}

var modeNames = map[session.Mode][2]string{
	session.ModeAsk:  {"Ask", "Reads are free, everything else asks first"},
	session.ModeEdit: {"Edit", "File edits inside the workspace are free as well"},
	session.ModeAuto: {"Auto", "Edits are free, and commands that only read or that are confined"},
	session.ModePlan: {"Plan", "Reads only"},
}

func modeState(current session.Mode) *v1.SessionModeState {
	st := &v1.SessionModeState{CurrentModeID: v1.SessionModeID(current)}
	for _, m := range session.Modes {
		st.AvailableModes = append(st.AvailableModes, v1.SessionMode{ID: v1.SessionModeID(m), Name: modeNames[m][0], Description: new(modeNames[m][1])})
	}
	return st
}

func modeUpdate(m session.Mode) update {
	return update{CurrentModeUpdate: &v1.CurrentModeUpdate{CurrentModeID: v1.SessionModeID(m)}}
}

func titleUpdate(s session.Session) update {
	return update{SessionInfoUpdate: &v1.SessionInfoUpdate{Title: &s.Title, UpdatedAt: new(s.UpdatedAt.Format(time.RFC3339))}}
}

func commandsUpdate() update {
	hint := &v1.AvailableCommandInput{Unstructured: &v1.UnstructuredCommandInput{Hint: "objective, or help, status, list, pause, resume, revise, waive, confirm, add, budget, end, verify, retry, redo"}}
	turn := &v1.AvailableCommandInput{Unstructured: &v1.UnstructuredCommandInput{Hint: "number of a turn, or nothing for the last one"}}
	step := &v1.AvailableCommandInput{Unstructured: &v1.UnstructuredCommandInput{Hint: "number of a turn, or u1, u2, … to take an undo back"}}
	return update{AvailableCommandsUpdate: &v1.AvailableCommandsUpdate{AvailableCommands: []v1.AvailableCommand{
		{Name: "goal", Description: "Pursue an objective over many turns until an independent review accepts it", Input: hint},
		{Name: "help", Description: "List these commands"},
		{Name: "rules", Description: "List your standing answers, or revoke one",
			Input: &v1.AvailableCommandInput{Unstructured: &v1.UnstructuredCommandInput{Hint: "revoke ID"}}},
		{Name: "status", Description: "Say where the goal stands"},
		{Name: "stop", Description: "Stop everything in this session, background commands too",
			Input: &v1.AvailableCommandInput{Unstructured: &v1.UnstructuredCommandInput{Hint: "all, for every session"}}},
		{Name: "diff", Description: "Show what the last turn changed", Input: turn},
		{Name: "redo", Description: "Put back what stalled work changed, and begin it again"},
		{Name: "retry", Description: "Let work that waits for your word go on as things are"},
		{Name: "recovery", Description: "Say what is done by itself with work of this session whose process is gone",
			Input: &v1.AvailableCommandInput{Unstructured: &v1.UnstructuredCommandInput{Hint: "always, attached, off or default"}}},
		{Name: "takeover", Description: "End the process that has this session and does not respond, and go on here",
			Input: &v1.AvailableCommandInput{Unstructured: &v1.UnstructuredCommandInput{Hint: "yes, when more than this session ends with it"}}},
		{Name: "trust", Description: "Look at the project's own configuration, and decide whether it counts",
			Input: &v1.AvailableCommandInput{Unstructured: &v1.UnstructuredCommandInput{Hint: "yes, or no to take it back"}}},
		{Name: "context", Description: "Say which instruction files of the project the model is told"},
		{Name: "compact", Description: "Put a summary in the place of what was said so far",
			Input: &v1.AvailableCommandInput{Unstructured: &v1.UnstructuredCommandInput{Hint: "what to keep in particular"}}},
		{Name: "undo", Description: "Take back what the last turn changed; your own edits stay", Input: step},
	}}}
}

// initialize is answered before anything slow.
func (a *Agent) initialize(req *rpc.Request) {
	p, err := parse[v1.InitializeRequest](req)
	if err != nil {
		req.Fail(toError(err, ""))
		return
	}
	a.mu.Lock()
	a.initialized = true
	a.client = session.Client{Answers: true} // the protocol lets every client be asked
	if p.ClientInfo != nil {
		a.client.Name, a.client.Version = p.ClientInfo.Name, p.ClientInfo.Version
	}
	a.buffers = p.ClientCapabilities.Fs.ReadTextFile
	a.notices = p.ClientCapabilities.Session != nil && p.ClientCapabilities.Session.Notices != nil
	a.compactions = p.ClientCapabilities.Session != nil && p.ClientCapabilities.Session.Compaction != nil
	a.forms = p.ClientCapabilities.Elicitation != nil && p.ClientCapabilities.Elicitation.Form != nil
	a.panel = panelOf(p.ClientCapabilities.Meta)
	a.mu.Unlock()
	req.Reply(a.initializeResult(p.ClientCapabilities.Auth.Terminal))
	if a.Initialized != nil {
		a.Initialized()
	}
}

// protocolVersion is the only one spoken here; a client that asked for another decides whether to go on.
const protocolVersion = 1

func (a *Agent) initializeResult(terminal bool) v1.InitializeResponse {
	methods := []string{"_holdfast/create_goal", "_holdfast/get_goal", "_holdfast/update_goal", "_holdfast/list_goals"}
	return v1.InitializeResponse{
		Meta:            panelMeta(),
		ProtocolVersion: protocolVersion,
		AgentInfo:       &v1.Implementation{Name: "holdfast", Title: new(a.title()), Version: a.Version},
		AuthMethods:     authMethods(terminal),
		AgentCapabilities: v1.AgentCapabilities{
			LoadSession:        true,
			PromptCapabilities: v1.PromptCapabilities{EmbeddedContext: true, Image: true},
			SessionCapabilities: v1.SessionCapabilities{List: &v1.SessionListCapabilities{}, Resume: &v1.SessionResumeCapabilities{},
				Close: &v1.SessionCloseCapabilities{}, Delete: &v1.SessionDeleteCapabilities{}, AdditionalDirectories: &v1.SessionAdditionalDirectoriesCapabilities{}},
			Meta: v1.Meta{"holdfast": map[string]any{"version": a.Version, "goal": map[string]any{"methods": methods}}},
		},
	}
}

// title says so when the model plays a script.
func (a *Agent) title() string {
	if a.Scripted {
		return "Holdfast (scripted model)"
	}
	return "Holdfast"
}

// authenticate succeeds at once when a model can be used.
func (a *Agent) authenticate(_ context.Context, b *Backend, req *rpc.Request) error {
	p, err := parse[v1.AuthenticateRequest](req)
	if err != nil {
		return err
	}
	if p.MethodID != authEnvironment && p.MethodID != authSetup {
		return &invalid{"methodId", fmt.Sprintf("%q is not offered; the methods are %q and, in a terminal, %q", p.MethodID, authEnvironment, authSetup)}
	}
	if err := a.needModel(b); err != nil {
		return err
	}
	if fault.Without("authenticate") {
		return &AuthRequired{Message: "This build refuses to sign in."}
	}
	req.Reply(v1.AuthenticateResponse{})
	return nil
}

// meta says that a model plays a script, wherever a session is opened.
func (a *Agent) meta() v1.Meta {
	if !a.Scripted {
		return nil
	}
	return v1.Meta{"holdfast": map[string]any{"scripted": true}}
}

func (a *Agent) newSessionResult(b *Backend, s session.Session) v1.NewSessionResponse {
	return v1.NewSessionResponse{SessionID: v1.SessionID(s.ID), Modes: modeState(s.Mode), ConfigOptions: configOptions(b, s), Meta: a.meta()}
}

func (a *Agent) openResult(b *Backend, s session.Session) v1.LoadSessionResponse {
	return v1.LoadSessionResponse{Modes: modeState(s.Mode), ConfigOptions: configOptions(b, s), Meta: a.meta()}
}

func listResult(page []session.SessionView, next string) v1.ListSessionsResponse {
	out := v1.ListSessionsResponse{Sessions: []v1.SessionInfo{}}
	if next != "" {
		out.NextCursor = &next
	}
	for _, s := range page {
		out.Sessions = append(out.Sessions, v1.SessionInfo{SessionID: v1.SessionID(s.SessionID), Cwd: s.Cwd, Title: new(s.Title),
			UpdatedAt: new(s.UpdatedAt.Format(time.RFC3339)), AdditionalDirectories: s.Directories, Meta: standing(s)})
	}
	return out
}

// standing says in a list what a session is at.
func standing(s session.SessionView) v1.Meta {
	return v1.Meta{"holdfast": map[string]any{"state": s.State, "reasonCode": s.ReasonCode, "reason": s.Reason, "allowed": s.Allowed}}
}

func promptResult(stop string) v1.PromptResponse {
	return v1.PromptResponse{StopReason: v1.StopReason(stop)}
}

func promptError(r session.Run) *rpc.Error {
	return &rpc.Error{Code: rpc.CodeInternalError, Message: "The model endpoint failed: " + strings.TrimSuffix(r.Reason, ".") + ". Send the message again to go on from here.",
		Data: map[string]any{"sessionId": r.Session, "code": r.ReasonCode}}
}
