package provider

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"holdfast/session"
)

// encode turns a request into the wire's. The same request always gives the same bytes, which lets the endpoint cache its beginning.
// Nothing is stored at the service: the history is ours, and reasoning comes encrypted.
func (m *Responses) encode(req session.ModelRequest) (responses.ResponseNewParams, error) {
	p := responses.ResponseNewParams{Model: m.config.Model, Store: openai.Bool(false)}
	if reasons(m.config.Model) {
		p.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
		p.Reasoning = shared.ReasoningParam{Summary: shared.ReasoningSummaryAuto}
	}
	if name := m.dialect.cacheName(req.Conversation); name != "" {
		p.PromptCacheKey = openai.String(name)
	}
	p.Reasoning.Effort = shared.ReasoningEffort(m.config.effort.of(req))
	if m.config.MaxTokens > 0 {
		p.MaxOutputTokens = openai.Int(m.config.MaxTokens)
	}
	if !blank(req.System) {
		p.Instructions = openai.String(req.System)
	}
	var list []json.RawMessage
	for i, msg := range req.Messages {
		own, err := m.items(m.forModel(msg))
		if err != nil {
			return p, fmt.Errorf("encode message %d of the model request: %w", i, err)
		}
		list = append(list, own...)
	}
	if len(list) == 0 {
		list = append(list, inputMessage("user", textBegin))
	}
	for _, raw := range list {
		p.Input.OfInputItemList = append(p.Input.OfInputItemList, param.Override[responses.ResponseInputItemUnionParam](raw))
	}
	for _, t := range req.Tools {
		tool, err := responsesTool(t)
		if err != nil {
			return p, fmt.Errorf("encode tool %s of the model request: %w", t.Name, err)
		}
		p.Tools = append(p.Tools, param.Override[responses.ToolUnionParam](tool))
	}
	return p, nil
}

// items is a message as items of the input.
func (m *Responses) items(msg session.Message) ([]json.RawMessage, error) {
	switch msg.Role {
	case session.RoleUser:
		if len(msg.Images) > 0 {
			return []json.RawMessage{inputMessage("user", inputParts(msg.Text, msg.Images))}, nil
		}
		return []json.RawMessage{inputMessage("user", msg.Text)}, nil
	case session.RoleTool:
		var output any = msg.Text
		if len(msg.Images) > 0 {
			output = inputParts(msg.Text, msg.Images)
		}
		return []json.RawMessage{encodeJSON(struct {
			Type   string `json:"type"`
			CallID string `json:"call_id"`
			Output any    `json:"output"`
		}{"function_call_output", wireID(msg.CallID), output})}, nil
	case session.RoleAssistant:
		if own := m.native(msg); own != nil {
			return own, nil
		}
		var out []json.RawMessage
		if msg.Text != "" {
			out = append(out, inputMessage("assistant", msg.Text))
		}
		for _, c := range msg.Calls {
			out = append(out, encodeJSON(struct {
				Type      string `json:"type"`
				CallID    string `json:"call_id"`
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			}{"function_call", wireID(c.ID), wireName(c.Name), c.Args}))
		}
		return out, nil
	}
	return nil, fmt.Errorf("unknown role %q", msg.Role)
}

// native is an answer's own items when they may be sent back: whole, to who can read them, and only while they make the calls that the
// message makes.
func (m *Responses) native(msg session.Message) []json.RawMessage {
	n := msg.Native
	if n == nil || n.Provider != m.identity.Provider || n.Model != m.identity.Name || n.Before != m.reader() {
		return nil
	}
	calls, last := 0, ""
	for _, raw := range n.Blocks {
		var o outputItem
		if json.Unmarshal(raw, &o) != nil {
			return nil
		}
		if o.Type == "function_call" {
			if calls >= len(msg.Calls) || msg.Calls[calls].ID != o.CallID || wireID(o.CallID) != o.CallID || wireName(o.Name) != o.Name {
				return nil
			}
			calls++
		}
		last = o.Type
	}
	if calls != len(msg.Calls) || last == "reasoning" { // the wire takes no thought without what it led to
		return nil
	}
	return n.Blocks
}

func inputMessage(role string, content any) json.RawMessage {
	return encodeJSON(struct {
		Type    string `json:"type"`
		Role    string `json:"role"`
		Content any    `json:"content"`
	}{"message", role, content})
}

type inputPart struct {
	Type   string `json:"type"`
	Text   string `json:"text,omitempty"`
	Image  string `json:"image_url,omitempty"`
	Detail string `json:"detail,omitempty"`
}

func inputParts(text string, images []session.Image) []inputPart {
	var out []inputPart
	if !blank(text) {
		out = append(out, inputPart{Type: "input_text", Text: text})
	}
	for _, i := range images {
		out = append(out, inputPart{Type: "input_image", Detail: "auto",
			Image: "data:" + i.MIME + ";base64," + base64.StdEncoding.EncodeToString(i.Data)})
	}
	return out
}

// responsesFunction keeps the schema's bytes: the SDK's own type would lose the order of its members, which models read. Strict is said
// because the wire takes it for granted, and then refuses most schemas.
type responsesFunction struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

func responsesTool(t session.ToolSpec) (responsesFunction, error) {
	schema := t.Schema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if !isObject(schema) {
		return responsesFunction{}, errors.New("the schema is not a JSON object")
	}
	return responsesFunction{Type: "function", Name: wireName(t.Name), Description: t.Description, Parameters: schema}, nil
}

// plainNames begin the names of models that do not reason, and refuse to be asked for their reasoning.
var plainNames = []string{"gpt-3", "gpt-4", "chatgpt-", "text-", "davinci", "babbage", "ft:gpt-3", "ft:gpt-4"}

// reasons tells whether a model may be asked for its reasoning.
func reasons(model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, begin := range plainNames {
		if strings.HasPrefix(name, begin) {
			return false
		}
	}
	return !strings.Contains(name, "-chat")
}
