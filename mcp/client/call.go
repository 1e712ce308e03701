package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// Outcome is what is known about one call.
type Outcome struct {
	Answered bool
	Answer   Answer
	Reason   string // why it is unknown; a safe sentence
	RPCID    string
	Offered  bool   // to the pipe; if not, no byte of it has left, and none will
	Open     bool   // not answered, and the process lives: an answer may still come
	Written  int64  // bytes that the pipe took
	Stderr   string // the masked end of what the process wrote there, if the process is why it is unknown
	Era      string
	Protocol string
}

// Slot is the right to send one call of one tool to one process.
type Slot struct {
	s    *Server
	c    *conn
	tool Tool
	held bool
}

// Acquire waits until the server is ready, the tool is the one that was shown, and there is a place for one more call. Nothing of the
// call has left the process when it returns.
func (s *Server) Acquire(ctx context.Context, tool Tool) (*Slot, error) {
	s.mu.Lock()
	budget := s.lim.budget(s.cfg.Command, s.wasReady)
	s.mu.Unlock()
	select {
	case s.places <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.ctx.Done():
		return nil, ErrClosed
	}
	ctx, cancel := context.WithTimeoutCause(ctx, budget+s.lim.List, errors.New("the MCP server was not ready in time"))
	defer cancel()
	c, err := s.fit(ctx, tool)
	if err != nil {
		<-s.places
		return nil, err
	}
	return &Slot{s: s, c: c, tool: tool, held: true}, nil
}

// fit waits for a process whose list covers every notice so far, and compares the tool.
func (s *Server) fit(ctx context.Context, tool Tool) (*conn, error) {
	covers := map[*conn]int64{}
	for asked := false; ; {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, ErrClosed
		}
		c, moved := s.conn, s.moved
		if c == nil && !s.wanted {
			if _, ok := s.past.next(s.opts.Now(), s.lim, 0); !ok || asked {
				err := s.startError()
				s.mu.Unlock()
				return nil, err
			}
			s.want()
			asked = true
		}
		if c != nil && !c.isBroken() {
			if _, ok := covers[c]; !ok {
				covers[c] = c.notices()
			}
			if c.covered() >= covers[c] {
				err := s.same(tool)
				s.mu.Unlock()
				return c, err
			}
		}
		s.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (c *conn) covered() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listed
}

// same looks for the tool as it was shown. The lock is held.
func (s *Server) same(tool Tool) error {
	for _, t := range s.tools {
		if t.Exposed == tool.Exposed && t.Name == tool.Name && t.Hash == tool.Hash {
			return nil
		}
	}
	return ErrChanged
}

// Release gives the place back. It may be called twice.
func (sl *Slot) Release() {
	sl.s.mu.Lock()
	defer sl.s.mu.Unlock()
	if sl.held {
		sl.held = false
		<-sl.s.places
	}
}

// Call sends once, and returns when there is an answer or none can be expected any more. progress is called from Call itself.
func (sl *Slot) Call(ctx context.Context, ticket string, args json.RawMessage, progress func(string)) Outcome {
	c, l := sl.c, sl.s.lim
	x := newExchange()
	x.ticket, x.token = ticket, ticket
	r := mcp.CallToolRequest{}
	r.Params.Name, r.Params.Arguments = sl.tool.Name, args
	r.Params.Meta = &mcp.Meta{ProgressToken: x.token}
	if ctx.Err() != nil {
		return sl.unknown(x, "it was stopped before it was written")
	}
	if !c.enter() {
		return sl.unknown(x, sl.s.mask.hide(c.why())+" before it was written")
	}
	sending, stop := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), ticketKey{}, x))
	sent := make(chan error, 1)
	go func() {
		defer c.wg.Done()
		_, err := c.lib.CallTool(sending, r)
		sent <- err
	}()
	defer stop()
	cap, idle := time.NewTimer(l.Call), time.NewTimer(l.Idle)
	defer cap.Stop()
	defer idle.Stop()
	var reason string
	for reason == "" {
		select {
		case <-x.done:
			sl.release(sent)
			return sl.answered(x)
		case text := <-x.progress:
			idle.Reset(l.Idle)
			if progress != nil {
				progress(text)
			}
		case <-x.mismatch:
			o := sl.unknown(x, "the server answered with an id of another type ("+head(x.echo, 40)+"), which may belong to anything")
			o.Open = false
			return o
		case <-c.broken:
			return sl.unknown(x, sl.s.mask.hide(c.why())+" before it answered")
		case err := <-sent:
			sent = nil
			if err != nil && !sl.offered(x) {
				return sl.unknown(x, "nothing of it was written: "+clean(sl.s.mask.hide(err.Error()), 200))
			}
		case <-cap.C:
			reason = fmt.Sprintf("no answer within %s", l.Call)
		case <-idle.C:
			reason = fmt.Sprintf("no answer and no progress within %s", l.Idle)
		case <-ctx.Done():
			reason = "it was cancelled, and the server did not say what became of it"
		}
	}
	stop() // the library tells the server
	return sl.grace(x, reason)
}

// release waits until the library knows of the answer as well: it would tell the server that the call was cancelled.
func (sl *Slot) release(sent <-chan error) {
	if sent == nil {
		return
	}
	select {
	case <-sent:
	case <-sl.c.broken:
	}
}

func (sl *Slot) offered(x *exchange) bool {
	sl.c.mu.Lock()
	defer sl.c.mu.Unlock()
	return x.offered
}

// grace waits a little for the answer of a call that was given up.
func (sl *Slot) grace(x *exchange, reason string) Outcome {
	t := time.NewTimer(sl.s.lim.Grace)
	defer t.Stop()
	select {
	case <-x.done:
		return sl.answered(x)
	case <-sl.c.broken:
	case <-x.mismatch:
	case <-t.C:
	}
	return sl.unknown(x, reason)
}

// unknown gives up, unless an answer was read in the same moment.
func (sl *Slot) unknown(x *exchange, reason string) Outcome {
	sl.c.mu.Lock()
	raw := x.raw
	x.gaveUp = true
	o := sl.outcome(x)
	sl.c.mu.Unlock()
	if raw != nil {
		<-x.done
		return sl.answered(x)
	}
	o.Reason, o.Open = reason, o.Offered
	if sl.c.isBroken() {
		o.Open, o.Stderr = false, sl.c.err.String()
	}
	return o
}

func (sl *Slot) answered(x *exchange) Outcome {
	sl.c.forget(x)
	sl.c.mu.Lock()
	o := sl.outcome(x)
	sl.c.mu.Unlock()
	o.Answered, o.Answer = true, readAnswer(x.raw, sl.s.lim.Text)
	sl.flag(&o.Answer)
	return o
}

// flag says if the structured part is not what the server itself has announced. The answer stays an answer.
func (sl *Slot) flag(a *Answer) {
	if sl.tool.output == nil || a.Kind != KindOK {
		return
	}
	var e struct {
		Result struct {
			Structured json.RawMessage `json:"structuredContent"`
		} `json:"result"`
	}
	if json.Unmarshal(a.Raw, &e) != nil || len(e.Result.Structured) == 0 {
		return
	}
	if v, err := decode(e.Result.Structured); err == nil && sl.tool.output.check(v) != nil {
		a.Text += "\n[The structured part of this answer does not fit the schema that the server itself gives for it.]"
	}
}

// outcome fills in what is known either way. The lock of the conn is held.
func (sl *Slot) outcome(x *exchange) Outcome {
	return Outcome{RPCID: x.id, Offered: x.offered, Written: x.written, Era: sl.c.era, Protocol: sl.c.version}
}
