package fakemodel

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// player plays one reply. One goroutine uses it.
type player struct {
	w     http.ResponseWriter
	ctx   context.Context
	req   Request
	reply Reply
	out   io.Writer
	zip   *gzip.Writer
}

func (p *player) play() {
	for name, values := range p.reply.Header {
		p.w.Header()[name] = values
	}
	if p.reply.Status != 0 || p.reply.Page != "" {
		p.page()
		return
	}
	if !p.req.Stream {
		p.whole()
		return
	}
	p.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	p.w.Header().Set("Cache-Control", "no-cache")
	p.open()
	p.w.WriteHeader(http.StatusOK)
	p.flush()
	if !p.steps() || !p.calls() {
		// The client is gone or the server closes. Returning would end the body as if the answer had ended.
		panic(http.ErrAbortHandler)
	}
	p.end()
}

// open sets up compression.
func (p *player) open() {
	p.out = p.w
	if p.reply.Gzip {
		p.w.Header().Set("Content-Encoding", "gzip")
		p.zip = gzip.NewWriter(p.w)
		p.out = p.zip
	}
}

func (p *player) page() {
	kind := p.reply.Type
	if kind == "" {
		kind = "application/json"
	}
	p.w.Header().Set("Content-Type", kind)
	p.open()
	p.w.WriteHeader(max(p.reply.Status, http.StatusOK))
	_, _ = io.WriteString(p.out, p.reply.Page) // the client may be gone
	p.close()
}

func (p *player) steps() bool {
	if !p.send(p.chunk(map[string]any{"role": "assistant", "content": ""}, nil)) {
		return false
	}
	for _, s := range p.reply.Steps {
		for range max(s.Count, 1) {
			if !p.wait(s) || !p.step(s) {
				return false
			}
		}
	}
	return true
}

// wait holds the stream; false means that the client is gone.
func (p *player) wait(s Step) bool {
	if s.Delay > 0 {
		t := time.NewTimer(s.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-p.ctx.Done():
			return false
		}
	}
	if s.Gate != nil {
		select {
		case <-s.Gate:
		case <-p.ctx.Done():
			return false
		}
	}
	return true
}

func (p *player) step(s Step) bool {
	if s.Comment != "" && !p.write(": "+s.Comment+"\n\n") || s.Raw != "" && !p.write(s.Raw) {
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
	return len(delta) == 0 || p.send(p.chunk(delta, nil))
}

// calls sends the calls side by side: the first delta of each, then the pieces of their arguments in turn.
func (p *player) calls() bool {
	pieces := make([][]string, len(p.reply.Calls))
	for i, c := range p.reply.Calls {
		f := map[string]any{"name": c.Name, "arguments": ""}
		if c.Whole {
			f["arguments"] = c.Args
		} else {
			pieces[i] = cut(c.Args, max(c.Pieces, 1))
		}
		if !p.send(p.call(i, map[string]any{"type": "function", "function": f}, true)) {
			return false
		}
	}
	for k := 0; ; k++ {
		sent := false
		for i := range pieces {
			if k < len(pieces[i]) {
				sent = true
				if !p.send(p.call(i, map[string]any{"function": map[string]any{"arguments": pieces[i][k]}}, false)) {
					return false
				}
			}
		}
		if !sent {
			return true
		}
	}
}

func (p *player) call(i int, part map[string]any, first bool) map[string]any {
	c := p.reply.Calls[i]
	part["index"] = i
	if c.Index != nil {
		part["index"] = *c.Index
	}
	if first && !c.NoID {
		part["id"] = p.callID(i)
	}
	return p.chunk(map[string]any{"tool_calls": []any{part}}, nil)
}

func (p *player) callID(i int) string {
	if id := p.reply.Calls[i].ID; id != "" {
		return id
	}
	return fmt.Sprintf("call_fake_%d_%d", p.req.N, i)
}

func (p *player) end() {
	switch p.reply.End {
	case EndCut:
		p.close()
	case EndAbort:
		panic(http.ErrAbortHandler) // the server closes the connection without the body's end
	case EndReset:
		p.reset()
	case EndStall:
		<-p.ctx.Done()
		panic(http.ErrAbortHandler)
	case EndUnmarked:
		p.send(p.chunk(map[string]any{}, p.finish()))
		p.close()
	default:
		_ = p.send(p.chunk(map[string]any{}, p.finish())) && p.usage() && p.write("data: [DONE]\n\n")
		p.close()
	}
}

func (p *player) finish() string {
	switch {
	case p.reply.Finish != "":
		return p.reply.Finish
	case len(p.reply.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (p *player) usage() bool {
	if p.reply.Usage == nil || !p.req.IncludeUsage {
		return true
	}
	c := p.chunk(nil, nil)
	c["choices"], c["usage"] = []any{}, p.counts()
	return p.send(c)
}

func (p *player) counts() map[string]any {
	u := p.reply.Usage
	return map[string]any{"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion}
}

// reset makes the kernel send a reset instead of an orderly close.
func (p *player) reset() {
	h, ok := p.w.(http.Hijacker)
	if !ok {
		panic("fakemodel: the connection cannot be taken over")
	}
	conn, _, err := h.Hijack()
	if err != nil {
		panic(fmt.Sprintf("fakemodel: take the connection over: %v", err))
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// chunk is one event as the service sends it.
func (p *player) chunk(delta map[string]any, finish any) map[string]any {
	c := map[string]any{"id": fmt.Sprintf("chatcmpl-%d", p.req.N), "object": "chat.completion.chunk", "created": 1700000000, "model": p.req.Model,
		"system_fingerprint": "fp_fake", "choices": []any{map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}}
	if p.req.IncludeUsage {
		c["usage"] = nil
	}
	return c
}

// whole answers a request that did not ask for a stream. Only a clean end exists there.
func (p *player) whole() {
	var text string
	for _, s := range p.reply.Steps {
		if !p.wait(s) {
			return
		}
		text += s.Text
	}
	msg := map[string]any{"role": "assistant", "content": text, "refusal": nil}
	var calls []any
	for i, c := range p.reply.Calls {
		calls = append(calls, map[string]any{"id": p.callID(i), "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Args}})
	}
	if calls != nil {
		msg["tool_calls"] = calls
	}
	body := map[string]any{"id": fmt.Sprintf("chatcmpl-%d", p.req.N), "object": "chat.completion", "created": 1700000000, "model": p.req.Model,
		"choices": []any{map[string]any{"index": 0, "message": msg, "logprobs": nil, "finish_reason": p.finish()}}}
	if p.reply.Usage != nil {
		body["usage"] = p.counts()
	}
	writeJSON(p.w, http.StatusOK, body)
}

func (p *player) send(v any) bool { return p.write("data: " + string(encode(v)) + "\n\n") }

// write sends bytes at once; false means that the client is gone.
func (p *player) write(text string) bool {
	if _, err := io.WriteString(p.out, text); err != nil {
		return false
	}
	return p.flush()
}

func (p *player) flush() bool {
	if p.zip != nil && p.zip.Flush() != nil {
		return false
	}
	return http.NewResponseController(p.w).Flush() == nil
}

func (p *player) close() {
	if p.zip != nil {
		_ = p.zip.Close()
	}
}

// cut divides a text into n parts at any byte that begins a character.
func cut(text string, n int) []string {
	runes := []rune(text)
	var parts []string
	for i := range n {
		parts = append(parts, string(runes[i*len(runes)/n:(i+1)*len(runes)/n]))
	}
	return parts
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fakemodel: encode an event: %v", err))
	}
	return b
}
