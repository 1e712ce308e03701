package fakemodel

import "fmt"

// messages writes the wire of Anthropic messages: an answer is a list of content blocks. It belongs to one answer.
type messages struct {
	index  int    // of the open block, or of the next one
	kind   string // of the open block; "" when none is
	text   string // of the open block
	signed int    // thoughts so far
	thinks bool   // begin with a thought
}

func (m *messages) begin(p *player) bool {
	msg := map[string]any{"id": fmt.Sprintf("msg_fake_%d", p.req.N), "type": "message", "role": "assistant", "model": p.req.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil}
	if p.reply.Usage != nil {
		msg["usage"] = messageUsage(p, 1)
	}
	return event(p, "message_start", map[string]any{"message": msg}) &&
		(!m.thinks || m.open(p, false, "thinking", map[string]any{"thinking": "", "signature": ""}))
}

func (m *messages) step(p *player, s Step) bool {
	switch {
	case s.Comment != "" && !event(p, "ping", map[string]any{}):
		return false
	case s.Problem != nil && !event(p, "error", messageProblem(*s.Problem)):
		return false
	case s.Broken && !p.write("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"ind\n\n"):
		return false
	}
	words := s.Text + s.Refusal
	switch {
	case s.Redacted != "":
		return m.close(p) && m.redacted(p, s.Redacted)
	case s.Reasoning != "":
		return m.open(p, s.Apart, "thinking", map[string]any{"thinking": "", "signature": ""}) &&
			m.delta(p, map[string]any{"type": "thinking_delta", "thinking": s.Reasoning}, s.Reasoning)
	case words != "":
		return m.open(p, s.Apart, "text", map[string]any{"text": ""}) && m.delta(p, map[string]any{"type": "text_delta", "text": words}, words)
	case s.Apart:
		return m.open(p, true, "text", map[string]any{"text": ""}) // an empty block, as models make them
	}
	return true
}

// open begins a block, unless one of its kind is open and goes on.
func (m *messages) open(p *player, apart bool, kind string, block map[string]any) bool {
	if m.kind == kind && !apart {
		return true
	}
	if !m.close(p) {
		return false
	}
	m.kind, m.text, block["type"] = kind, "", kind
	return event(p, "content_block_start", map[string]any{"index": m.index, "content_block": block})
}

func (m *messages) delta(p *player, delta map[string]any, text string) bool {
	m.text += text
	return event(p, "content_block_delta", map[string]any{"index": m.index, "delta": delta})
}

// close ends the open block; a thought gets its signature first.
func (m *messages) close(p *player) bool {
	if m.kind == "" {
		return true
	}
	if m.kind == "thinking" {
		signature := sign(p.req.Model, p.req.prefix, m.signed, m.text)
		m.signed++
		if !m.delta(p, map[string]any{"type": "signature_delta", "signature": signature}, "") {
			return false
		}
	}
	m.kind = ""
	m.index++
	return event(p, "content_block_stop", map[string]any{"index": m.index - 1})
}

func (m *messages) redacted(p *player, text string) bool {
	m.signed++
	return m.open(p, true, "redacted_thinking", map[string]any{"data": seal(p.req.Model, p.req.prefix, m.signed-1, text)}) && m.close(p)
}

// calls sends the calls one after the other, as this wire does.
func (m *messages) calls(p *player) bool {
	for i, c := range p.reply.Calls {
		block := map[string]any{"id": "", "name": c.Name, "input": map[string]any{}}
		if !c.NoID {
			block["id"] = p.callID(i)
		}
		pieces := cut(c.Args, max(c.Pieces, 1))
		if c.Whole {
			block["input"], pieces = rawJSON(c.Args), nil
		}
		if !m.open(p, true, "tool_use", block) {
			return false
		}
		for _, piece := range pieces {
			if !m.delta(p, map[string]any{"type": "input_json_delta", "partial_json": piece}, "") {
				return false
			}
		}
		if !m.close(p) {
			return false
		}
	}
	return true
}

func (m *messages) end(p *player, marked bool) bool {
	e := map[string]any{"delta": map[string]any{"stop_reason": stopReason(p), "stop_sequence": nil}}
	if marked && p.reply.Usage != nil {
		e["usage"] = messageUsage(p, p.reply.Usage.Completion)
	}
	return m.close(p) && event(p, "message_delta", e) && (!marked || event(p, "message_stop", map[string]any{}))
}

func stopReason(p *player) string {
	translated := map[string]string{"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
	if r := translated[chatFinish(p)]; r != "" {
		return r
	}
	return p.reply.Finish
}

func messageUsage(p *player, out int64) map[string]any {
	u := p.reply.Usage
	counts := map[string]any{"input_tokens": u.Prompt, "output_tokens": out}
	if !u.Bare {
		counts["cache_read_input_tokens"], counts["cache_creation_input_tokens"] = u.CacheRead, u.CacheWrite
	}
	return counts
}

func (m *messages) whole(p *player, text string) any {
	content := []any{}
	if text != "" {
		content = append(content, map[string]any{"type": "text", "text": text})
	}
	for i, c := range p.reply.Calls {
		content = append(content, map[string]any{"type": "tool_use", "id": p.callID(i), "name": c.Name, "input": rawJSON(c.Args)})
	}
	body := map[string]any{"id": fmt.Sprintf("msg_fake_%d", p.req.N), "type": "message", "role": "assistant", "model": p.req.Model, "content": content,
		"stop_reason": stopReason(p), "stop_sequence": nil}
	if p.reply.Usage != nil {
		body["usage"] = messageUsage(p, p.reply.Usage.Completion)
	}
	return body
}

// kinds says what the service calls a refusal with this status.
var kinds = map[int]string{400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
	413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}

func (m *messages) problem(status int, pr Problem) any {
	pr.Kind = kinds[status]
	if pr.Kind == "" {
		pr.Kind = "api_error"
	}
	return messageProblem(pr)
}

func messageProblem(pr Problem) map[string]any {
	return map[string]any{"type": "error", "error": map[string]any{"type": pr.Kind, "message": pr.Message}, "request_id": "req_fake"}
}

// event sends one event of this wire, whose name stands twice.
func event(p *player, name string, v map[string]any) bool {
	v["type"] = name
	return p.write("event: " + name + "\ndata: " + string(encode(v)) + "\n\n")
}
