package fakemodel

import "fmt"

// chat writes the wire of OpenAI chat completions.
type chat struct{}

func (chat) begin(p *player) bool {
	return p.send(chatChunk(p, map[string]any{"role": "assistant", "content": ""}, nil))
}

func (chat) step(p *player, s Step) bool {
	switch {
	case s.Comment != "" && !p.write(": "+s.Comment+"\n\n"):
		return false
	case s.Problem != nil && !p.send(chat{}.problem(0, *s.Problem)):
		return false
	case s.Broken && !p.write("data: {\"id\":\"chatcmpl-1\",\"choices\":[{\"ind\n\n"):
		return false
	}
	delta := map[string]any{}
	if s.Text != "" {
		delta["content"] = s.Text
	}
	if s.Refusal != "" {
		delta["refusal"] = s.Refusal
	}
	if s.Reasoning != "" {
		member := s.Member
		if member == "" {
			member = "reasoning_content"
		}
		delta[member] = s.Reasoning
	}
	return len(delta) == 0 || p.send(chatChunk(p, delta, nil))
}

// calls sends the calls side by side: the first delta of each, then the pieces of their arguments in turn.
func (chat) calls(p *player) bool {
	pieces := make([][]string, len(p.reply.Calls))
	for i, c := range p.reply.Calls {
		f := map[string]any{"name": c.Name, "arguments": ""}
		if c.Whole {
			f["arguments"] = c.Args
		} else {
			pieces[i] = cut(c.Args, max(c.Pieces, 1))
		}
		if !p.send(chatCall(p, i, map[string]any{"type": "function", "function": f}, true)) {
			return false
		}
	}
	for k := 0; ; k++ {
		sent := false
		for i := range pieces {
			if k < len(pieces[i]) {
				sent = true
				if !p.send(chatCall(p, i, map[string]any{"function": map[string]any{"arguments": pieces[i][k]}}, false)) {
					return false
				}
			}
		}
		if !sent {
			return true
		}
	}
}

func chatCall(p *player, i int, part map[string]any, first bool) map[string]any {
	c := p.reply.Calls[i]
	part["index"] = i
	if c.Index != nil {
		part["index"] = *c.Index
	}
	if first && !c.NoID {
		part["id"] = p.callID(i)
	}
	return chatChunk(p, map[string]any{"tool_calls": []any{part}}, nil)
}

func (chat) end(p *player, marked bool) bool {
	return p.send(chatChunk(p, map[string]any{}, chatFinish(p))) && (!marked || chatUsage(p) && p.write("data: [DONE]\n\n"))
}

func chatFinish(p *player) string {
	switch {
	case p.reply.Finish != "":
		return p.reply.Finish
	case len(p.reply.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func chatUsage(p *player) bool {
	if p.reply.Usage == nil || !p.req.IncludeUsage {
		return true
	}
	c := chatChunk(p, nil, nil)
	c["choices"], c["usage"] = []any{}, chatCounts(p)
	return p.send(c)
}

func chatCounts(p *player) map[string]any {
	u := p.reply.Usage
	in := u.Prompt + u.CacheRead + u.CacheWrite // this wire counts the cached ones in
	counts := map[string]any{"prompt_tokens": in, "completion_tokens": u.Completion, "total_tokens": in + u.Completion}
	if !u.Bare {
		counts["prompt_tokens_details"] = map[string]any{"cached_tokens": u.CacheRead, "audio_tokens": 0}
		counts["completion_tokens_details"] = map[string]any{"reasoning_tokens": u.Reasoning, "audio_tokens": 0}
	}
	return counts
}

// chatChunk is one event as the service sends it.
func chatChunk(p *player, delta map[string]any, finish any) map[string]any {
	c := map[string]any{"id": fmt.Sprintf("chatcmpl-%d", p.req.N), "object": "chat.completion.chunk", "created": 1700000000, "model": p.req.Model,
		"system_fingerprint": "fp_fake", "choices": []any{map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}}
	if p.req.IncludeUsage {
		c["usage"] = nil
	}
	return c
}

func (chat) whole(p *player, text string) any {
	msg := map[string]any{"role": "assistant", "content": text, "refusal": nil}
	var calls []any
	for i, c := range p.reply.Calls {
		calls = append(calls, map[string]any{"id": p.callID(i), "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Args}})
	}
	if calls != nil {
		msg["tool_calls"] = calls
	}
	body := map[string]any{"id": fmt.Sprintf("chatcmpl-%d", p.req.N), "object": "chat.completion", "created": 1700000000, "model": p.req.Model,
		"choices": []any{map[string]any{"index": 0, "message": msg, "logprobs": nil, "finish_reason": chatFinish(p)}}}
	if p.reply.Usage != nil {
		body["usage"] = chatCounts(p)
	}
	return body
}

func (chat) problem(_ int, pr Problem) any {
	e := map[string]any{"message": pr.Message, "type": pr.Kind, "param": nil, "code": nil}
	if pr.Code != "" {
		e["code"] = pr.Code
	}
	return map[string]any{"error": e}
}
