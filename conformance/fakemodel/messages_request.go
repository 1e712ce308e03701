package fakemodel

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"regexp"
	"slices"
	"strings"
)

// messagesRequest has the wire's members; the service refuses others.
type messagesRequest struct {
	Model        string          `json:"model"`
	MaxTokens    *int64          `json:"max_tokens"`
	System       json.RawMessage `json:"system"`
	Messages     []messagesTurn  `json:"messages"`
	Tools        []messagesTool  `json:"tools"`
	Stream       bool            `json:"stream"`
	Thinking     *thinkingConfig `json:"thinking"`
	Temperature  *float64        `json:"temperature"`
	ToolChoice   json.RawMessage `json:"tool_choice"`
	Metadata     json.RawMessage `json:"metadata"`
	CacheControl json.RawMessage `json:"cache_control"`
	OutputConfig *struct {
		Effort string `json:"effort"`
	} `json:"output_config"`
}

type thinkingConfig struct {
	Type    string `json:"type"`
	Display string `json:"display"`
	Budget  int64  `json:"budget_tokens"`
}

// check is the service's rule for thinking. Newer models, such as the one that is played as a rule, take no number of tokens.
func (c *thinkingConfig) check(model string, most int64) error {
	switch {
	case c == nil || c.Type == "adaptive" || c.Type == "disabled":
		return nil
	case c.Type != "enabled" || strings.HasPrefix(model, "claude-fake"):
		return refuse("", "thinking.type: %q is not supported for this model", c.Type)
	case c.Budget < 1024:
		return refuse("", "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case c.Budget >= most:
		return refuse("", "`max_tokens` must be greater than `thinking.budget_tokens`")
	}
	return nil
}

// checkLast: with a number of tokens, calls whose results are at the end have a thought in front of them.
func (c *thinkingConfig) checkLast(turns []joined) error {
	if c == nil || c.Type != "enabled" || len(turns) < 2 {
		return nil
	}
	last, before := turns[len(turns)-1].blocks, turns[len(turns)-2]
	if len(last) > 0 && last[0].Type == "tool_result" && !strings.Contains(before.blocks[0].Type, "thinking") {
		return refuse("", "messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`.", before.at, before.blocks[0].Type)
	}
	return nil
}

type messagesTurn struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type messagesTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// contentBlock is one block of a message, with the members of all kinds.
type contentBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  *string         `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Source    *struct {
		Type string `json:"type"`
		MIME string `json:"media_type"`
		Data string `json:"data"`
	} `json:"source"`
}

// joined is what the service makes of messages of one role that follow each other.
type joined struct {
	role   string
	at     int // index of its first message, as errors name it
	blocks []contentBlock
	raw    []json.RawMessage
}

// validID and longName are what this wire takes for a call's id and for the name of a tool.
var (
	validID  = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	longName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
)

// parseMessages is parse for the messages wire.
func parseMessages(body []byte) (Request, error) {
	req := Request{Body: body, Family: "anthropic", IncludeUsage: true}
	var w messagesRequest
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return req, refuse("", "The request body is not valid: %v", err)
	}
	req.Model, req.Stream = w.Model, w.Stream
	switch {
	case w.Model == "":
		return req, refuse("", "model: Field required")
	case w.MaxTokens == nil:
		return req, refuse("", "max_tokens: Field required")
	case *w.MaxTokens < 1:
		return req, refuse("", "max_tokens: must be greater than or equal to 1")
	case len(w.Messages) == 0:
		return req, refuse("", "messages: at least one message is required")
	case bytes.Count(body, []byte(`"cache_control":{`)) > 4:
		return req, refuse("", "A maximum of 4 blocks with cache_control may be provided.")
	case w.OutputConfig != nil && !slices.Contains([]string{"low", "medium", "high", "xhigh", "max"}, w.OutputConfig.Effort):
		return req, refuse("", "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
	}
	if err := w.Thinking.check(w.Model, *w.MaxTokens); err != nil {
		return req, err
	}
	req.MaxTokens = *w.MaxTokens
	sum := sha256.New()
	if err := req.readSystem(w.System, sum); err != nil {
		return req, err
	}
	if err := req.readMessageTools(w.Tools, sum); err != nil {
		return req, err
	}
	turns, err := join(w.Messages)
	if err != nil {
		return req, err
	}
	if err := checkUses(turns); err != nil {
		return req, err
	}
	if err := w.Thinking.checkLast(turns); err != nil {
		return req, err
	}
	for _, t := range turns {
		if err := req.readTurn(t, hex.EncodeToString(sum.Sum(nil))); err != nil {
			return req, err
		}
		for _, raw := range t.raw {
			note(sum, t.role, raw)
		}
	}
	if last := turns[len(turns)-1]; last.role != "user" {
		return req, refuse("", "This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	req.prefix = hex.EncodeToString(sum.Sum(nil))
	return req, CheckPairs(req.Messages)
}

// note adds a part of the request to the digest that signatures are bound to. Marks for the cache are not part of it.
func note(sum hash.Hash, kind string, raw json.RawMessage) {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return
	}
	if m, ok := v.(map[string]any); ok {
		delete(m, "cache_control")
	}
	sum.Write(append(encode([]any{kind, v}), '\n'))
}

func (r *Request) readSystem(raw json.RawMessage, sum hash.Hash) error {
	if len(raw) == 0 {
		return nil
	}
	blocks, all, err := contentOf(raw)
	if err != nil {
		return refuse("", "system: %v", err)
	}
	var text strings.Builder
	for i, b := range blocks {
		if b.Type != "text" || strings.TrimSpace(b.Text) == "" {
			return refuse("", "system: text content blocks must be non-empty")
		}
		text.WriteString(b.Text)
		note(sum, "system", all[i])
	}
	r.Messages = append(r.Messages, Message{Role: "system", Content: text.String()})
	return nil
}

func (r *Request) readMessageTools(tools []messagesTool, sum hash.Hash) error {
	seen := map[string]bool{}
	for i, t := range tools {
		var schema struct{ Type string }
		switch {
		case !longName.MatchString(t.Name):
			return refuse("", "tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
		case seen[t.Name]:
			return refuse("", "tools: Tool names must be unique.")
		case json.Unmarshal(t.InputSchema, &schema) != nil || schema.Type != "object":
			return refuse("", "tools.%d.custom.input_schema.type: Input should be 'object'", i)
		}
		seen[t.Name] = true
		note(sum, "tool", encode(map[string]any{"name": t.Name, "description": t.Description, "schema": t.InputSchema}))
		r.Tools = append(r.Tools, Tool{t.Name, t.Description, t.InputSchema})
	}
	return nil
}

// contentOf reads a string or a list of blocks.
func contentOf(raw json.RawMessage) ([]contentBlock, []json.RawMessage, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		b := contentBlock{Type: "text", Text: text}
		return []contentBlock{b}, []json.RawMessage{encode(map[string]any{"type": "text", "text": text})}, nil
	}
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil || len(all) == 0 {
		return nil, nil, refuse("", "Input should be a valid string or a non-empty list")
	}
	blocks := make([]contentBlock, len(all))
	for i := range all {
		if err := json.Unmarshal(all[i], &blocks[i]); err != nil {
			return nil, nil, refuse("", "%d: %v", i, err)
		}
	}
	return blocks, all, nil
}

func join(turns []messagesTurn) ([]joined, error) {
	var out []joined
	for i, t := range turns {
		if t.Role != "user" && t.Role != "assistant" {
			return nil, refuse("", "messages.%d.role: Input should be 'user' or 'assistant'", i)
		}
		blocks, raw, err := contentOf(t.Content)
		if err != nil {
			return nil, refuse("", "messages.%d.content: %v", i, err)
		}
		if n := len(out); n == 0 || out[n-1].role != t.Role {
			out = append(out, joined{role: t.Role, at: i})
		}
		last := &out[len(out)-1]
		last.blocks, last.raw = append(last.blocks, blocks...), append(last.raw, raw...)
	}
	if out[0].role != "user" {
		return nil, refuse("", "messages: first message must use the \"user\" role")
	}
	return out, nil
}

// Parse reads a request of a family as the service does, and says why it would be refused.
func Parse(family string, body []byte) (Request, error) {
	switch family {
	case "anthropic":
		return parseMessages(body)
	case "responses":
		return parseResponses(body)
	}
	return parse(body)
}
