package fakemodel

import "fmt"

// responses writes the wire of OpenAI responses: an answer is a list of output items. It belongs to one answer.
type responses struct {
	seq    int // of the events
	output []any
	kind   string // of the open item: "message", "refusal" or "reasoning"; "" when none is
	id     string // of the open item
	text   string // of the open item
	after  string // id of the reasoning that the next item follows
	thinks bool   // begin with a thought
}

func (r *responses) begin(p *player) bool {
	return r.event(p, "response.created", map[string]any{"response": r.response(p, "in_progress")}) &&
		r.event(p, "response.in_progress", map[string]any{"response": r.response(p, "in_progress")}) &&
		(!r.thinks || r.hidden(p, "thought"))
}

func (r *responses) step(p *player, s Step) bool {
	switch {
	case s.Comment != "" && !p.write(": "+s.Comment+"\n\n"):
		return false
	case s.Problem != nil && !r.event(p, "error", map[string]any{"code": s.Problem.Code, "message": s.Problem.Message, "param": nil}):
		return false
	case s.Broken && !p.write("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item\n\n"):
		return false
	}
	switch {
	case s.Redacted != "":
		return r.hidden(p, s.Redacted)
	case s.Reasoning != "":
		return r.open(p, s.Apart, "reasoning") && r.delta(p, "response.reasoning_summary_text.delta", "summary_index", s.Reasoning)
	case s.Refusal != "":
		return r.open(p, s.Apart, "refusal") && r.delta(p, "response.refusal.delta", "content_index", s.Refusal)
	case s.Text != "":
		return r.open(p, s.Apart, "message") && r.delta(p, "response.output_text.delta", "content_index", s.Text)
	case s.Apart:
		return r.open(p, true, "message")
	}
	return true
}

// open begins an item, unless one of its kind is open and goes on.
func (r *responses) open(p *player, apart bool, kind string) bool {
	if r.kind == kind && !apart {
		return true
	}
	if !r.close(p) {
		return false
	}
	r.kind, r.text = kind, ""
	if kind == "reasoning" {
		r.id = r.itemID(p, "rs")
		return r.added(p, r.reasoning(p, true)) && r.event(p, "response.reasoning_summary_part.added",
			map[string]any{"item_id": r.id, "output_index": len(r.output), "summary_index": 0, "part": map[string]any{"type": "summary_text", "text": ""}})
	}
	r.id = r.itemID(p, "msg")
	return r.added(p, r.message("in_progress", []any{})) && r.event(p, "response.content_part.added",
		map[string]any{"item_id": r.id, "output_index": len(r.output), "content_index": 0, "part": r.part()})
}

func (r *responses) delta(p *player, name, index, text string) bool {
	r.text += text
	return r.event(p, name, map[string]any{"item_id": r.id, "output_index": len(r.output), index: 0, "delta": text, "obfuscation": "x"})
}

// close ends the open item.
func (r *responses) close(p *player) bool {
	defer func() { r.kind = "" }()
	at := map[string]any{"item_id": r.id, "output_index": len(r.output)}
	with := func(more map[string]any) map[string]any {
		for k, v := range at {
			more[k] = v
		}
		return more
	}
	switch r.kind {
	case "":
		return true
	case "reasoning":
		part := map[string]any{"type": "summary_text", "text": r.text}
		return r.event(p, "response.reasoning_summary_text.done", with(map[string]any{"summary_index": 0, "text": r.text})) &&
			r.event(p, "response.reasoning_summary_part.done", with(map[string]any{"summary_index": 0, "part": part})) && r.thought(p)
	case "refusal":
		return r.event(p, "response.refusal.done", with(map[string]any{"content_index": 0, "refusal": r.text})) && r.said(p, with)
	}
	return r.event(p, "response.output_text.done", with(map[string]any{"content_index": 0, "text": r.text, "logprobs": []any{}})) && r.said(p, with)
}

func (r *responses) said(p *player, with func(map[string]any) map[string]any) bool {
	return r.event(p, "response.content_part.done", with(map[string]any{"content_index": 0, "part": r.part()})) && r.done(p, r.message("completed", []any{r.part()}))
}

// hidden is reasoning of which only the encrypted form is sent.
func (r *responses) hidden(p *player, text string) bool {
	if !r.close(p) {
		return false
	}
	r.id, r.text = r.itemID(p, "rs"), ""
	if !r.added(p, r.reasoning(p, true)) {
		return false
	}
	r.text = text
	item := r.reasoning(p, false)
	item["summary"] = []any{}
	r.after = r.id
	return r.done(p, item)
}

func (r *responses) thought(p *player) bool {
	ok := r.done(p, r.reasoning(p, false))
	r.after = r.id
	return ok
}

// calls sends the calls one after the other, as this wire does.
func (r *responses) calls(p *player) bool {
	if !r.close(p) {
		return false
	}
	for i, c := range p.reply.Calls {
		index := len(r.output)
		if c.Index != nil {
			index = *c.Index
		}
		item := map[string]any{"id": r.itemID(p, "fc"), "type": "function_call", "status": "in_progress", "call_id": "", "name": c.Name, "arguments": ""}
		if !c.NoID {
			item["call_id"] = p.callID(i)
		}
		at := func(more map[string]any) map[string]any {
			more["item_id"], more["output_index"] = item["id"], index
			return more
		}
		if !r.event(p, "response.output_item.added", map[string]any{"output_index": index, "item": item}) {
			return false
		}
		if !c.Whole {
			for _, piece := range cut(c.Args, max(c.Pieces, 1)) {
				if !r.event(p, "response.function_call_arguments.delta", at(map[string]any{"delta": piece, "obfuscation": "x"})) {
					return false
				}
			}
			if !r.event(p, "response.function_call_arguments.done", at(map[string]any{"arguments": c.Args, "name": c.Name})) {
				return false
			}
		}
		item["status"], item["arguments"] = "completed", c.Args
		if !r.event(p, "response.output_item.done", map[string]any{"output_index": index, "item": item}) {
			return false
		}
		r.output = append(r.output, item)
	}
	return true
}

// end sends the terminal event. This wire has no finish reason before it.
func (r *responses) end(p *player, marked bool) bool {
	if !r.close(p) || !marked {
		return false
	}
	switch finish := chatFinish(p); finish {
	case "length", "content_filter":
		res := r.response(p, "incomplete")
		res["incomplete_details"] = map[string]any{"reason": map[string]string{"length": "max_output_tokens", "content_filter": "content_filter"}[finish]}
		return r.event(p, "response.incomplete", map[string]any{"response": res})
	case "error":
		res := r.response(p, "failed")
		res["error"] = map[string]any{"code": "server_error", "message": "The server had an error while processing your request."}
		return r.event(p, "response.failed", map[string]any{"response": res})
	}
	return r.event(p, "response.completed", map[string]any{"response": r.response(p, "completed")})
}

func (r *responses) response(p *player, status string) map[string]any {
	res := map[string]any{"id": fmt.Sprintf("resp_fake_%d", p.req.N), "object": "response", "created_at": 1700000000, "model": p.req.Model, "status": status,
		"error": nil, "incomplete_details": nil, "store": false, "output": append([]any{}, r.output...), "usage": nil}
	if u := p.reply.Usage; u != nil && status != "in_progress" {
		in := u.Prompt + u.CacheRead + u.CacheWrite // this wire counts the cached ones in
		counts := map[string]any{"input_tokens": in, "output_tokens": u.Completion, "total_tokens": in + u.Completion}
		if !u.Bare {
			counts["input_tokens_details"] = map[string]any{"cached_tokens": u.CacheRead}
			counts["output_tokens_details"] = map[string]any{"reasoning_tokens": u.Reasoning}
		}
		res["usage"] = counts
	}
	return res
}

// itemID names an item. What follows reasoning carries its name, so that it can be told without it.
func (r *responses) itemID(p *player, kind string) string {
	id := fmt.Sprintf("%s_fake_%d_%d", kind, p.req.N, len(r.output))
	if kind != "rs" && r.after != "" {
		id += afterMark + r.after
	}
	return id
}

const afterMark = "_after_"

// reasoning is the open item. It is encrypted for who asked for that, and empty as long as it is begun.
func (r *responses) reasoning(p *player, begun bool) map[string]any {
	item := map[string]any{"id": r.id, "type": "reasoning", "summary": []any{}, "status": nil}
	if begun {
		return item
	}
	if r.text != "" {
		item["summary"] = []any{map[string]any{"type": "summary_text", "text": r.text}}
	}
	if p.req.encrypted {
		item["encrypted_content"] = seal(p.req.Model, r.id, 0, r.text)
	}
	return item
}

func (r *responses) part() map[string]any {
	if r.kind == "refusal" {
		return map[string]any{"type": "refusal", "refusal": r.text}
	}
	return map[string]any{"type": "output_text", "text": r.text, "annotations": []any{}, "logprobs": []any{}}
}

func (r *responses) message(status string, content []any) map[string]any {
	return map[string]any{"id": r.id, "type": "message", "role": "assistant", "status": status, "content": content}
}

func (r *responses) added(p *player, item map[string]any) bool {
	return r.event(p, "response.output_item.added", map[string]any{"output_index": len(r.output), "item": item})
}

func (r *responses) done(p *player, item map[string]any) bool {
	ok := r.event(p, "response.output_item.done", map[string]any{"output_index": len(r.output), "item": item})
	r.output = append(r.output, item)
	return ok
}

func (r *responses) whole(p *player, text string) any {
	if text != "" {
		r.kind, r.text, r.id = "message", text, r.itemID(p, "msg")
		r.output = append(r.output, r.message("completed", []any{r.part()}))
	}
	for i, c := range p.reply.Calls {
		r.output = append(r.output, map[string]any{"id": r.itemID(p, "fc"), "type": "function_call", "status": "completed", "call_id": p.callID(i), "name": c.Name, "arguments": c.Args})
	}
	return r.response(p, "completed")
}

func (r *responses) problem(status int, pr Problem) any { return chat{}.problem(status, pr) }

// event sends one event of this wire, whose name stands twice.
func (r *responses) event(p *player, name string, v map[string]any) bool {
	v["sequence_number"] = r.seq
	r.seq++
	return event(p, name, v)
}
