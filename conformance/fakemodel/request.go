package fakemodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Request is one request as it arrived.
type Request struct {
	N            int    // 1 for the first request of this server
	Family       string // "openai", "responses" or "anthropic": the wire it came by
	Model        string
	Messages     []Message
	Tools        []Tool
	Stream       bool
	IncludeUsage bool
	MaxTokens    int64  // max_tokens or max_completion_tokens; 0 when neither was sent
	CacheKey     string // prompt_cache_key
	Header       http.Header
	Path         string
	Body         []byte
	prefix       string // messages wire: digest of all that signatures of the answer are bound to
	encrypted    bool   // responses wire: reasoning was asked for in its encrypted form
	Counted      *Usage // what a server with a cache has counted of it
	Refused      string // why the service refused it; "" when the handler answered it
}

// Message is one message of a request. Content is the text, also when it was sent in parts. What the messages wire has in one message
// of the user, several results and texts, are messages of their own here.
type Message struct {
	Role       string
	Content    string
	ToolCalls  []ToolCall
	ToolCallID string
	Images     []string // base64
	IsError    bool     // messages wire: a result that says so
	Thoughts   []string // messages wire: signatures and hidden thoughts, in order; responses wire: encrypted reasoning
}

// ToolCall is one call of an assistant message.
type ToolCall struct{ ID, Name, Args string }

// Tool is one tool that was offered.
type Tool struct {
	Name, Description string
	Parameters        json.RawMessage
}

// LastUser is the text of the last user message.
func (r Request) LastUser() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == "user" {
			return r.Messages[i].Content
		}
	}
	return ""
}

// Said tells whether some user message of the request is this text.
func (r Request) Said(text string) bool {
	return slices.ContainsFunc(r.Messages, func(m Message) bool { return m.Role == "user" && m.Content == text })
}

// Results are the tool messages of the request, in order.
func (r Request) Results() []Message {
	var out []Message
	for _, m := range r.Messages {
		if m.Role == "tool" {
			out = append(out, m)
		}
	}
	return out
}

// refusal is why the service answers 400.
type refusal struct{ message, code string }

func (e *refusal) Error() string { return e.message }

func refuse(code, format string, args ...any) error {
	return &refusal{message: fmt.Sprintf(format, args...), code: code}
}

// wireRequest has the wire's members; those that are not here are accepted and ignored.
type wireRequest struct {
	Model               string        `json:"model"`
	Messages            []wireMessage `json:"messages"`
	Tools               []wireTool    `json:"tools"`
	Stream              bool          `json:"stream"`
	MaxTokens           *int64        `json:"max_tokens"`
	MaxCompletionTokens *int64        `json:"max_completion_tokens"`
	PromptCacheKey      string        `json:"prompt_cache_key"`
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type wireMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string  `json:"name"`
			Arguments *string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

type wireTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// validName is what the service takes for the name of a tool.
var validName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// parse reads a request and checks it as the service does. What could be read is returned with the error.
func parse(body []byte) (Request, error) {
	req := Request{Body: body, Family: "openai"}
	var w wireRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return req, refuse("", "We could not parse the JSON body of your request: %v", err)
	}
	req.Model, req.Stream, req.CacheKey = w.Model, w.Stream, w.PromptCacheKey
	req.IncludeUsage = w.StreamOptions != nil && w.StreamOptions.IncludeUsage
	for _, n := range []*int64{w.MaxTokens, w.MaxCompletionTokens} {
		if n != nil {
			req.MaxTokens = *n
			if *n < 1 {
				return req, refuse("integer_below_min_value", "Invalid output limit: %d is below 1.", *n)
			}
		}
	}
	switch {
	case len(w.PromptCacheKey) > 64:
		return req, refuse("string_above_max_length", "Invalid 'prompt_cache_key': string too long.")
	case w.Model == "":
		return req, refuse("", "you must provide a model parameter")
	case len(w.Messages) == 0:
		return req, refuse("empty_array", "Invalid 'messages': empty array.")
	case w.StreamOptions != nil && !w.Stream:
		return req, refuse("", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	if err := req.readMessages(w.Messages); err != nil {
		return req, err
	}
	if err := req.readTools(w.Tools); err != nil {
		return req, err
	}
	return req, CheckPairs(req.Messages)
}

func (r *Request) readMessages(messages []wireMessage) error {
	for i, m := range messages {
		text, err := content(m.Content)
		if err != nil {
			return refuse("", "Invalid 'messages[%d].content': %v", i, err)
		}
		images, err := partImages(m.Role, m.Content)
		if err != nil {
			return err
		}
		out := Message{Role: m.Role, Content: text, ToolCallID: m.ToolCallID, Images: images}
		for k, c := range m.ToolCalls {
			switch {
			case c.ID == "" || len(c.ID) > 40:
				return refuse("", "Invalid 'messages[%d].tool_calls[%d].id': a length of 1 to 40 is expected.", i, k)
			case c.Type != "function":
				return refuse("", "Invalid 'messages[%d].tool_calls[%d].type': %q.", i, k, c.Type)
			case !validName.MatchString(c.Function.Name):
				return refuse("", "Invalid 'messages[%d].tool_calls[%d].function.name': %q.", i, k, c.Function.Name)
			case c.Function.Arguments == nil:
				return refuse("", "Missing 'messages[%d].tool_calls[%d].function.arguments'.", i, k)
			}
			out.ToolCalls = append(out.ToolCalls, ToolCall{c.ID, c.Function.Name, *c.Function.Arguments})
		}
		missing := len(m.Content) == 0 || string(m.Content) == "null"
		if missing && len(out.ToolCalls) == 0 {
			return refuse("", "Invalid value for 'messages[%d].content': expected a string, got null.", i)
		}
		r.Messages = append(r.Messages, out)
	}
	return nil
}

// content is the text of a message: a string, or parts of which some are text.
func content(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(raw, &parts); err != nil || len(parts) == 0 {
		return "", fmt.Errorf("expected a string or a non-empty array of parts")
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type == "" {
			return "", fmt.Errorf("a part has no type")
		}
		b.WriteString(p.Text)
	}
	return b.String(), nil
}

func (r *Request) readTools(tools []wireTool) error {
	seen := map[string]bool{}
	for i, t := range tools {
		f := t.Function
		var schema struct{ Type string }
		switch {
		case t.Type != "function":
			return refuse("", "Invalid 'tools[%d].type': %q.", i, t.Type)
		case !validName.MatchString(f.Name):
			return refuse("", "Invalid 'tools[%d].function.name': %q.", i, f.Name)
		case seen[f.Name]:
			return refuse("", "Invalid 'tools[%d]': the name %q comes twice.", i, f.Name)
		case len(f.Parameters) > 0 && (json.Unmarshal(f.Parameters, &schema) != nil || schema.Type != "object"):
			return refuse("invalid_function_parameters", "Invalid schema for function '%s': schema must be of type 'object'.", f.Name)
		}
		seen[f.Name] = true
		r.Tools = append(r.Tools, Tool{f.Name, f.Description, f.Parameters})
	}
	return nil
}
