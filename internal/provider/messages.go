package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"regexp"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"holdfast/session"
)

// What is sent where the wire wants a message of the user and there is none: at the beginning, and behind every answer without calls
// (an interrupted one, for example). They are constants: the same history always gives the same bytes.
const (
	textBegin = "[The conversation begins here.]"
	textGoOn  = "[Go on.]"
)

// thread builds the messages of a request. Messages of one role that follow each other become one. It keeps a digest of all that
// went before, because a signature may hold for one history only.
type thread struct {
	turns []turn
	sum   hash.Hash
}

// turn is one message of the wire.
type turn struct {
	Role    string            `json:"role"`
	Content []json.RawMessage `json:"content"`
}

// encode turns a request into the wire's, and returns the digest of its history. The same request always gives the same bytes.
func (m *Anthropic) encode(req session.ModelRequest) (anthropic.MessageNewParams, string, error) {
	p := anthropic.MessageNewParams{Model: m.config.Model, MaxTokens: m.config.MaxTokens}
	t := &thread{sum: sha256.New()}
	if adapts(m.config.Model) {
		p.Thinking.OfAdaptive = &anthropic.ThinkingConfigAdaptiveParam{Display: anthropic.ThinkingConfigAdaptiveDisplaySummarized}
	}
	t.note("system", encodeJSON(req.System))
	if !blank(req.System) {
		p.System = []anthropic.TextBlockParam{{Text: req.System, CacheControl: anthropic.NewCacheControlEphemeralParam()}}
	}
	for _, spec := range req.Tools {
		tool, err := messageTool(spec)
		if err != nil {
			return p, "", fmt.Errorf("encode tool %s of the model request: %w", spec.Name, err)
		}
		t.note("tool", encodeJSON(tool))
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: new(param.Override[anthropic.ToolParam](tool))})
	}
	for i, msg := range req.Messages {
		if err := t.add(m.forModel(msg)); err != nil {
			return p, "", fmt.Errorf("encode message %d of the model request: %w", i, err)
		}
	}
	t.userIsLast()
	m.think(&p, t, m.config.effort.of(req))
	before := t.digest()
	t.cache()
	for _, turn := range t.turns {
		if turn.Role == "user" {
			p.Messages = append(p.Messages, anthropic.MessageParam{OfUser: new(param.Override[anthropic.UserMessageParam](turn))})
		} else {
			p.Messages = append(p.Messages, anthropic.MessageParam{OfAssistant: new(param.Override[anthropic.AssistantMessageParam](turn))})
		}
	}
	return p, before, nil
}

func (t *thread) add(msg session.Message) error {
	switch msg.Role {
	case session.RoleUser:
		if !blank(msg.Text) { // the wire refuses empty blocks
			t.put("user", textBlock(msg.Text))
		}
		for _, i := range msg.Images {
			t.put("user", imageBlock(i))
		}
	case session.RoleTool:
		t.put("user", resultBlock(msg))
	case session.RoleAssistant:
		t.userIsLast()
		if own := t.native(msg); own != nil {
			t.put("assistant", own...)
			return nil
		}
		if !blank(msg.Text) {
			t.put("assistant", textBlock(msg.Text))
		}
		for _, c := range msg.Calls {
			t.put("assistant", callBlock(c))
		}
	default:
		return fmt.Errorf("unknown role %q", msg.Role)
	}
	return nil
}

// userIsLast: an answer begins behind a message of the user. The wire refuses a request that ends otherwise, and would join two
// answers to one.
func (t *thread) userIsLast() {
	switch {
	case len(t.turns) == 0:
		t.put("user", textBlock(textBegin))
	case t.turns[len(t.turns)-1].Role == "assistant":
		t.put("user", textBlock(textGoOn))
	}
}

func (t *thread) put(role string, blocks ...json.RawMessage) {
	if n := len(t.turns); n == 0 || t.turns[n-1].Role != role {
		t.turns = append(t.turns, turn{Role: role})
	}
	last := &t.turns[len(t.turns)-1]
	for _, b := range blocks {
		last.Content = append(last.Content, b)
		t.note(role, b)
	}
}

func (t *thread) note(role string, b []byte) { fmt.Fprintf(t.sum, "%s %d %s\n", role, len(b), b) }

func (t *thread) digest() string { return hex.EncodeToString(t.sum.Sum(nil)[:16]) }

// native is an answer's own blocks when they may be sent back: it was given to exactly this history, they make the calls that the
// message makes, and the wire takes them. An answer may hold empty text; it is left out.
func (t *thread) native(msg session.Message) []json.RawMessage {
	if msg.Native == nil || msg.Native.Before != t.digest() {
		return nil
	}
	var out []json.RawMessage
	calls, last := 0, ""
	for _, raw := range msg.Native.Blocks {
		var b struct{ Type, Text, ID, Name string }
		if json.Unmarshal(raw, &b) != nil {
			return nil
		}
		switch b.Type {
		case "text":
			if blank(b.Text) {
				continue
			}
		case "tool_use":
			if calls >= len(msg.Calls) || msg.Calls[calls].ID != b.ID || messageID(b.ID) != b.ID || wireName(b.Name) != b.Name {
				return nil
			}
			calls++
		}
		out, last = append(out, raw), b.Type
	}
	if calls != len(msg.Calls) || last == "thinking" || last == "redacted_thinking" { // the wire takes no thought without what it led to
		return nil
	}
	return out
}

// kindOf is the type of a block.
func kindOf(raw json.RawMessage) string {
	var b struct{ Type string }
	_ = json.Unmarshal(raw, &b) // what cannot be read is of no type
	return b.Type
}

// cache marks the end of the request, so that the next one is charged for what is new only, and the end of the one before: the service
// looks for what it kept only some twenty blocks back from a mark, and an answer with many calls is longer.
func (t *thread) cache() {
	n := len(t.turns)
	t.mark(n - 1)
	if n > 2 {
		t.mark(n - 3)
	}
}

func (t *thread) mark(turn int) {
	last := &t.turns[turn]
	i := len(last.Content) - 1
	var b map[string]json.RawMessage
	if json.Unmarshal(last.Content[i], &b) != nil {
		return
	}
	b["cache_control"] = json.RawMessage(`{"type":"ephemeral"}`)
	last.Content[i] = encodeJSON(b)
}

func textBlock(text string) json.RawMessage {
	return encodeJSON(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", text})
}

func resultBlock(msg session.Message) json.RawMessage {
	b := struct {
		Type    string `json:"type"`
		ID      string `json:"tool_use_id"`
		Content any    `json:"content,omitempty"`
		IsError bool   `json:"is_error,omitempty"`
	}{Type: "tool_result", ID: messageID(msg.CallID), IsError: msg.IsError}
	if !blank(msg.Text) {
		b.Content = msg.Text
	}
	if len(msg.Images) > 0 {
		var blocks []json.RawMessage
		if !blank(msg.Text) {
			blocks = append(blocks, textBlock(msg.Text))
		}
		for _, i := range msg.Images {
			blocks = append(blocks, imageBlock(i))
		}
		b.Content = blocks
	}
	return encodeJSON(b)
}

func callBlock(c session.Call) json.RawMessage {
	input := json.RawMessage(c.Args)
	if !isObject(input) {
		input = encodeJSON(map[string]string{"invalid_arguments": c.Args})
	}
	return encodeJSON(struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}{"tool_use", messageID(c.ID), wireName(c.Name), input})
}

// toolSpec keeps the schema's bytes: the SDK's own type would lose the order of its members, which models read.
type toolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

func messageTool(t session.ToolSpec) (toolSpec, error) {
	schema := t.Schema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if !isObject(schema) {
		return toolSpec{}, errors.New("the schema is not a JSON object")
	}
	return toolSpec{Name: wireName(t.Name), Description: t.Description, InputSchema: schema}, nil
}

// plainID is what the wire takes for the id of a call.
var plainID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// messageID is an id as the wire accepts it. Call and result get the same replacement.
func messageID(id string) string {
	if plainID.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }
