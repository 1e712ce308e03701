package fakemodel

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// responsesRequest has the wire's members; the service refuses others.
type responsesRequest struct {
	Model             string            `json:"model"`
	Instructions      *string           `json:"instructions"`
	Input             json.RawMessage   `json:"input"`
	Tools             []responsesTool   `json:"tools"`
	ToolChoice        json.RawMessage   `json:"tool_choice"`
	Stream            bool              `json:"stream"`
	Store             *bool             `json:"store"`
	Include           []string          `json:"include"`
	MaxOutputTokens   *int64            `json:"max_output_tokens"`
	ParallelToolCalls *bool             `json:"parallel_tool_calls"`
	Reasoning         map[string]string `json:"reasoning"`
	PromptCacheKey    string            `json:"prompt_cache_key"`
	Text              json.RawMessage   `json:"text"`
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

// inputItem is one item of the input, with the members of all kinds.
type inputItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Status    string          `json:"status"`
	Role      string          `json:"role"`
	Phase     string          `json:"phase"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments *string         `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

// parseResponses is parse for the responses wire.
func parseResponses(body []byte) (Request, error) {
	req := Request{Body: body, Family: "responses", IncludeUsage: true}
	var w responsesRequest
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return req, refuse("unknown_parameter", "Unknown parameter or invalid value: %v", err)
	}
	req.Model, req.Stream, req.CacheKey = w.Model, w.Stream, w.PromptCacheKey
	req.encrypted = slices.Contains(w.Include, "reasoning.encrypted_content")
	switch {
	case len(w.PromptCacheKey) > 64:
		return req, refuse("string_above_max_length", "Invalid 'prompt_cache_key': string too long.")
	case w.Model == "":
		return req, refuse("missing_required_parameter", "Missing required parameter: 'model'.")
	case w.MaxOutputTokens != nil && *w.MaxOutputTokens < 16:
		return req, refuse("integer_below_min_value", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %d instead.", *w.MaxOutputTokens)
	}
	if w.MaxOutputTokens != nil {
		req.MaxTokens = *w.MaxOutputTokens
	}
	if w.Instructions != nil {
		req.Messages = append(req.Messages, Message{Role: "system", Content: *w.Instructions})
	}
	items, err := inputItems(w.Input)
	if err != nil {
		return req, err
	}
	if err := checkItems(items, w.Model, w.Store == nil || *w.Store); err != nil {
		return req, err
	}
	for i, it := range items {
		if err := req.readItem(i, it); err != nil {
			return req, err
		}
	}
	if err := req.readResponsesTools(w.Tools); err != nil {
		return req, err
	}
	return req, CheckPairs(req.Messages)
}

// inputItems reads the input: a text, or a list of items.
func inputItems(raw json.RawMessage) ([]inputItem, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return []inputItem{{Type: "message", Role: "user", Content: raw}}, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil, refuse("missing_required_parameter", "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.")
	}
	items := make([]inputItem, len(list))
	for i := range list {
		dec := json.NewDecoder(bytes.NewReader(list[i]))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&items[i]); err != nil {
			return nil, refuse("unknown_parameter", "Unknown parameter in 'input[%d]': %v", i, err)
		}
		if bytes.Contains(list[i], []byte(`"status":null`)) {
			return nil, refuse("invalid_type", "Invalid type for 'input[%d].status': expected a string, but got null instead.", i)
		}
		if items[i].Type == "" {
			items[i].Type = "message"
		}
	}
	return items, nil
}

// readItem keeps what handlers look at: words and calls of one answer are one message, as on the other wires.
func (r *Request) readItem(i int, it inputItem) error {
	switch it.Type {
	case "message":
		text, images, err := itemContent(i, it.Role, it.Content)
		if err != nil {
			return err
		}
		if it.Role != "assistant" {
			r.Messages = append(r.Messages, Message{Role: it.Role, Content: text, Images: images})
			return nil
		}
		if m := r.answer(func(m Message) bool { return m.Content != "" && len(m.ToolCalls) == 0 }); m.Content == "" {
			m.Content = text
		} else {
			m.Content += "\n\n" + text
		}
	case "reasoning":
		m := r.answer(func(m Message) bool { return m.Content != "" && len(m.ToolCalls) == 0 })
		m.Thoughts = append(m.Thoughts, it.Encrypted)
	case "function_call":
		m := r.answer(func(Message) bool { return false })
		m.ToolCalls = append(m.ToolCalls, ToolCall{it.CallID, it.Name, *it.Arguments})
	case "function_call_output":
		text, images, err := itemContent(i, "tool", it.Output)
		if err != nil {
			return err
		}
		r.Messages = append(r.Messages, Message{Role: "tool", ToolCallID: it.CallID, Content: text, Images: images})
	}
	return nil
}

// answer is the last message when it is the model's and not over, else a new one.
func (r *Request) answer(over func(Message) bool) *Message {
	if n := len(r.Messages); n == 0 || r.Messages[n-1].Role != "assistant" || over(r.Messages[n-1]) {
		r.Messages = append(r.Messages, Message{Role: "assistant"})
	}
	return &r.Messages[len(r.Messages)-1]
}

// itemContent reads a string or a list of parts, of the kinds that the role may have.
func itemContent(i int, role string, raw json.RawMessage) (string, []string, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil, nil
	}
	var parts []struct {
		Type, Text, Refusal string
		Image               string `json:"image_url"`
	}
	if json.Unmarshal(raw, &parts) != nil || len(parts) == 0 {
		return "", nil, refuse("invalid_type", "Invalid type for 'input[%d].content': expected a string or a non-empty array.", i)
	}
	kinds := []string{"input_text", "input_image", "input_file"}
	if role == "assistant" {
		kinds = []string{"output_text", "refusal"}
	}
	var b strings.Builder
	var images []string
	for k, p := range parts {
		if !slices.Contains(kinds, p.Type) {
			return "", nil, refuse("invalid_value", "Invalid value: '%s' in 'input[%d].content[%d]'. Supported values are: '%s'.", p.Type, i, k, strings.Join(kinds, "', '"))
		}
		b.WriteString(p.Text + p.Refusal)
		if p.Type == "input_image" {
			mime, data, ok := strings.Cut(strings.TrimPrefix(p.Image, "data:"), ";base64,")
			if !ok {
				return "", nil, refuse("invalid_image_url", "Invalid 'input[%d].content[%d].image_url'.", i, k)
			}
			if err := checkImage(mime, data); err != nil {
				return "", nil, err
			}
			images = append(images, data)
		}
	}
	return b.String(), images, nil
}

func (r *Request) readResponsesTools(tools []responsesTool) error {
	var plain []wireTool
	for i, t := range tools {
		if t.Type == "function" && (t.Strict == nil || *t.Strict) {
			return refuse("invalid_function_parameters", "Invalid schema for function '%s': 'additionalProperties' is required to be supplied and to be false.", t.Name)
		}
		if len(t.Parameters) == 0 {
			return refuse("missing_required_parameter", "Missing required parameter: 'tools[%d].parameters'.", i)
		}
		w := wireTool{Type: t.Type}
		w.Function.Name, w.Function.Description, w.Function.Parameters = t.Name, t.Description, t.Parameters
		plain = append(plain, w)
	}
	return r.readTools(plain)
}
