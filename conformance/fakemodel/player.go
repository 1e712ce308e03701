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

// wire is how an answer is written. Its methods return false when the client is gone or the body is full.
type wire interface {
	begin(p *player) bool
	step(p *player, s Step) bool
	calls(p *player) bool
	// end sends the finish reason; marked adds the usage and the end mark.
	end(p *player, marked bool) bool
	// whole is the answer to a request that wants one document.
	whole(p *player, text string) any
	problem(status int, pr Problem) any
}

// player plays one reply. One goroutine uses it.
type player struct {
	wire  wire
	w     http.ResponseWriter
	ctx   context.Context
	req   Request
	reply Reply
	out   io.Writer
	zip   *gzip.Writer
	sent  int // bytes of the body so far
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
	if !p.wire.begin(p) || !p.steps() || !p.wire.calls(p) {
		if p.full() {
			p.close()
			return
		}
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
	kind, page := p.reply.Type, p.reply.Page
	if kind == "" {
		kind = "application/json"
	}
	if p.reply.Problem != nil {
		page = string(encode(p.wire.problem(p.reply.Status, *p.reply.Problem)))
	}
	p.w.Header().Set("Content-Type", kind)
	p.open()
	p.w.WriteHeader(max(p.reply.Status, http.StatusOK))
	_, _ = io.WriteString(p.out, page) // the client may be gone
	p.close()
}

func (p *player) steps() bool {
	for _, s := range p.reply.Steps {
		for range max(s.Count, 1) {
			if !p.wait(s) || s.Raw != "" && !p.write(s.Raw) || !p.wire.step(p, s) {
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

func (p *player) callID(i int) string {
	if id := p.reply.Calls[i].ID; id != "" {
		return id
	}
	return fmt.Sprintf("call_fake_%d_%d", p.req.N, i)
}

func (p *player) end() {
	switch p.reply.End {
	case EndCut:
	case EndAbort:
		panic(http.ErrAbortHandler) // the server closes the connection without the body's end
	case EndReset:
		p.reset()
		return
	case EndStall:
		<-p.ctx.Done()
		panic(http.ErrAbortHandler)
	case EndUnmarked:
		p.wire.end(p, false)
	default:
		p.wire.end(p, true)
	}
	p.close()
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

// whole answers a request that did not ask for a stream. Only a clean end exists there.
func (p *player) whole() {
	var text string
	for _, s := range p.reply.Steps {
		if !p.wait(s) {
			return
		}
		text += s.Text
	}
	writeJSON(p.w, http.StatusOK, p.wire.whole(p, text))
}

func (p *player) send(v any) bool { return p.write("data: " + string(encode(v)) + "\n\n") }

// full tells whether the body has reached the length at which the reply cuts it.
func (p *player) full() bool { return p.reply.CutAt > 0 && p.sent >= p.reply.CutAt }

// write sends bytes at once, in pieces if the reply says so; false means that nothing more can be sent.
func (p *player) write(text string) bool {
	if p.reply.CutAt > 0 {
		text = text[:min(len(text), p.reply.CutAt-p.sent)]
	}
	for len(text) > 0 {
		n := len(text)
		if p.reply.Chop > 0 {
			n = min(n, p.reply.Chop)
		}
		if _, err := io.WriteString(p.out, text[:n]); err != nil || !p.flush() {
			return false
		}
		p.sent += n
		text = text[n:]
	}
	return !p.full()
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
