package acp

import (
	"context"
	"encoding/json"
	"strings"

	v1 "holdfast/acp/v1"
	"holdfast/session"
)

// questioned puts a question to the client in the way that it has: a question of the model as a form where the client offers forms. It returns
// an empty option when nobody answered.
func (f *follower) questioned(ctx context.Context, p session.Approval, params v1.RequestPermissionRequest) (option, text string, err error) {
	f.a.mu.Lock()
	forms := f.a.forms
	f.a.mu.Unlock()
	if p.Question != "" && forms {
		return f.a.elicit(ctx, p, params)
	}
	option, err = f.a.askPermission(ctx, params)
	if p.Question != "" && p.Choice(option) == "" && option != session.OptionDecline {
		option = "" // what was not offered is no answer
	}
	return option, "", err
}

// elicit asks with a form of one choice and one line of text.
func (a *Agent) elicit(ctx context.Context, p session.Approval, params v1.RequestPermissionRequest) (option, text string, err error) {
	fields := map[string]any{"answer": map[string]any{"type": "string", "title": "In your own words"}}
	form := map[string]any{"type": "object", "properties": fields}
	if len(p.Choices) > 0 {
		fields["choice"] = map[string]any{"type": "string", "title": "Answer", "enum": p.Choices}
	} else {
		form["required"] = []string{"answer"}
	}
	var answer struct {
		Action  string                     `json:"action"`
		Content map[string]json.RawMessage `json:"content"`
	}
	if err := a.conn.Call(ctx, "elicitation/create", map[string]any{"mode": "form", "sessionId": params.SessionID, "toolCallId": params.ToolCall.ToolCallID,
		"message": p.Question, "requestedSchema": form}, &answer); err != nil {
		return "", "", err
	}
	word := func(name string) (s string) {
		_ = json.Unmarshal(answer.Content[name], &s) // what is no text is no answer
		return strings.TrimSpace(s)
	}
	switch answer.Action {
	case "decline":
		return session.OptionDecline, "", nil
	case "accept":
	default:
		return "", "", nil
	}
	if text := word("answer"); text != "" {
		return session.OptionAnswer, text, nil
	}
	for _, o := range session.Options(p) {
		if c := p.Choice(o); c != "" && c == word("choice") {
			return o, "", nil
		}
	}
	return "", "", nil
}
