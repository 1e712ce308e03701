package provider

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"holdfast/session"
)

// encode turns a request into the wire's. The same request always gives the same bytes, which lets endpoints cache its beginning.
func (m *OpenAI) encode(req session.ModelRequest) (openai.ChatCompletionNewParams, error) {
	p := openai.ChatCompletionNewParams{Model: m.config.Model, ReasoningEffort: shared.ReasoningEffort(m.config.effort.of(req))}
	if !m.dialect.noUsage {
		p.StreamOptions.IncludeUsage = openai.Bool(true)
	}
	if name := m.dialect.cacheName(req.Conversation); name != "" {
		p.PromptCacheKey = openai.String(name)
	}
	switch {
	case m.config.MaxTokens <= 0:
	case m.dialect.newLimit:
		p.MaxCompletionTokens = openai.Int(m.config.MaxTokens)
	default:
		p.MaxTokens = openai.Int(m.config.MaxTokens)
	}
	if req.System != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(req.System))
	}
	var below []openai.ChatCompletionContentPartUnionParam // images of results: they come behind the last result
	for i, msg := range req.Messages {
		msg = m.forModel(msg)
		wire, err := m.dialect.message(msg)
		if err != nil {
			return p, fmt.Errorf("encode message %d of the model request: %w", i, err)
		}
		p.Messages = append(p.Messages, wire)
		if msg.Role == session.RoleTool && len(msg.Images) > 0 {
			below = append(below, parts(fmt.Sprintf(textBelow, m.dialect.callID(msg.CallID)), msg.Images)...)
		}
		if last := i+1 == len(req.Messages) || req.Messages[i+1].Role != session.RoleTool; last && len(below) > 0 {
			p.Messages, below = append(p.Messages, openai.UserMessage(below)), nil
		}
	}
	for _, t := range req.Tools {
		tool, err := encodeTool(t)
		if err != nil {
			return p, fmt.Errorf("encode tool %s of the model request: %w", t.Name, err)
		}
		p.Tools = append(p.Tools, tool)
	}
	return p, nil
}

func (d dialect) message(msg session.Message) (openai.ChatCompletionMessageParamUnion, error) {
	switch msg.Role {
	case session.RoleUser:
		if len(msg.Images) > 0 {
			return openai.UserMessage(parts(msg.Text, msg.Images)), nil
		}
		return openai.UserMessage(msg.Text), nil
	case session.RoleTool:
		return openai.ToolMessage(msg.Text, d.callID(msg.CallID)), nil
	case session.RoleAssistant:
		var a openai.ChatCompletionAssistantMessageParam
		if msg.Text != "" || len(msg.Calls) == 0 {
			a.Content.OfString = openai.String(msg.Text)
		}
		for _, c := range msg.Calls {
			a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{ID: d.callID(c.ID),
					Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: wireName(c.Name), Arguments: c.Args}}})
		}
		return openai.ChatCompletionMessageParamUnion{OfAssistant: &a}, nil
	}
	return openai.ChatCompletionMessageParamUnion{}, fmt.Errorf("unknown role %q", msg.Role)
}

// wireTool keeps the schema's bytes: the SDK's own type would lose the order of its members, which models read.
type wireTool struct {
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

func encodeTool(t session.ToolSpec) (openai.ChatCompletionToolUnionParam, error) {
	schema := t.Schema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	var obj map[string]json.RawMessage
	if err := json.Unmarshal(schema, &obj); err != nil {
		return openai.ChatCompletionToolUnionParam{}, fmt.Errorf("read the schema: %w", err)
	}
	if obj == nil {
		return openai.ChatCompletionToolUnionParam{}, errors.New("the schema is null")
	}
	f := param.Override[openai.ChatCompletionFunctionToolParam](wireTool{"function",
		wireFunction{Name: wireName(t.Name), Description: t.Description, Parameters: schema}})
	return openai.ChatCompletionToolUnionParam{OfFunction: &f}, nil
}
