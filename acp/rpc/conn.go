package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"strconv"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

// Handler receives what the peer sends, in order, on the connection's reading goroutine: it hands long work elsewhere.
type Handler interface {
	Request(ctx context.Context, req *Request)
	Notification(ctx context.Context, method string, params json.RawMessage)
}

// Request is one request of the peer. Reply or Fail answers it, from any goroutine; only the first of them counts.
type Request struct {
	Method string
	Params json.RawMessage

	conn   *Conn
	id     json.RawMessage
	once   sync.Once
	cancel context.CancelCauseFunc
}

// Reply answers with a result.
func (r *Request) Reply(result any) {
	r.answer(struct {
		V      string          `json:"jsonrpc"`
		ID     json.RawMessage `json:"id"`
		Result any             `json:"result"`
	}{"2.0", r.id, result})
}

// Fail answers with an error.
func (r *Request) Fail(e *Error) {
	r.answer(failure{"2.0", r.id, e})
}

type failure struct {
	V     string          `json:"jsonrpc"`
	ID    json.RawMessage `json:"id"`
	Error *Error          `json:"error"`
}

func (r *Request) answer(msg any) {
	r.once.Do(func() {
		r.conn.finish(r)
		if err := r.conn.send(msg); err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrNotReading) {
			_ = r.conn.send(failure{"2.0", r.id, &Error{Code: CodeInternalError, Message: "The result could not be encoded."}})
		}
		r.cancel(nil)
	})
}

// Conn is one connection. It ends with the input or with Close.
type Conn struct {
	h   Handler
	w   *writer
	lib *jsonrpc2.Conn
	in  lines

	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}
	end    sync.Once

	mu     sync.Mutex
	open   map[string]*Request        // by the peer's id, byte for byte
	params map[uint64]json.RawMessage // what the library holds a reference to
	ids    map[uint64]json.RawMessage
	next   uint64
	calls  uint64
}

// New starts serving. The library reads in its own goroutine, which ends with the connection.
func New(in io.Reader, out io.Writer, h Handler) *Conn {
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &Conn{h: h, w: newWriter(out), in: newLines(in), ctx: ctx, cancel: cancel, done: make(chan struct{}), open: map[string]*Request{},
		params: map[uint64]json.RawMessage{}, ids: map[uint64]json.RawMessage{}}
	started := make(chan struct{})
	c.lib = jsonrpc2.NewConn(ctx, &stream{c: c, started: started}, dispatcher{c}, jsonrpc2.SetLogger(log.New(io.Discard, "", 0)))
	close(started)
	return c
}

// Done is closed when the connection has ended and everything queued is out.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Close ends the connection.
func (c *Conn) Close() error {
	c.finishAll()
	return nil
}

const flushLimit = 500 * time.Millisecond

func (c *Conn) finishAll() {
	c.end.Do(func() {
		c.cancel(ErrClosed)
		c.w.flush(flushLimit)
		c.w.end(ErrClosed)
		close(c.done)
	})
}

// Notify sends a notification, in order with everything else.
func (c *Conn) Notify(method string, params any) error {
	return c.send(struct {
		V      string `json:"jsonrpc"`
		Method string `json:"method"`
		Params any    `json:"params,omitempty"`
	}{"2.0", method, params})
}

// send encodes a message and queues it.
func (c *Conn) send(msg any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(msg); err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	return c.w.put(bytes.TrimRight(b.Bytes(), "\n"))
}

// Call asks the peer and waits for its answer. When ctx ends first, the peer is told so.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	c.mu.Lock()
	c.calls++
	id := jsonrpc2.ID{Num: c.calls}
	c.mu.Unlock()
	call, err := c.lib.DispatchCall(ctx, method, params, jsonrpc2.PickID(id))
	if err != nil {
		return fmt.Errorf("call %s: %w", method, err)
	}
	err = call.Wait(ctx, result)
	if ctx.Err() != nil {
		if e := c.Notify("$/cancel_request", map[string]any{"requestId": id.Num}); e != nil {
			return e
		}
		return context.Cause(ctx)
	}
	var theirs *jsonrpc2.Error
	if errors.As(err, &theirs) {
		return &Error{Code: int(theirs.Code), Message: theirs.Message}
	}
	return err
}

// finish forgets an answered request.
func (c *Conn) finish(r *Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[string(r.id)] == r {
		delete(c.open, string(r.id))
	}
}

// stream is how the library sees the connection.
type stream struct {
	c       *Conn
	started <-chan struct{}
}

func (s *stream) Close() error { return nil }

// WriteObject queues what the library sends: our calls.
func (s *stream) WriteObject(obj any) error { return s.c.send(obj) }

// ReadObject gives the library the next message as a stub: a private id, and a reference in place of the parameters.
func (s *stream) ReadObject(v any) error {
	<-s.started
	for {
		line, err := s.c.in.next()
		if errors.Is(err, errTooLong) {
			if s.c.reject(refuse(CodeInvalidRequest, nil, "Invalid request: a message may have at most "+strconv.Itoa(MaxLine)+" bytes.")) != nil {
				return io.EOF
			}
			continue
		}
		if err != nil {
			go s.c.finishAll() // waits for the writer; the library's goroutine must not
			return io.EOF
		}
		m := classify(line)
		if m.kind == nothing {
			continue
		}
		stub := s.c.stub(m)
		if stub == nil {
			continue
		}
		if err := json.Unmarshal(stub, v); err == nil {
			return nil
		}
	}
}

func (c *Conn) reject(m message) error { return c.send(failure{"2.0", m.id, m.refusal}) }

// stub registers a message and returns what the library gets of it, or nil when it was answered here.
func (c *Conn) stub(m message) []byte {
	switch m.kind {
	case refused:
		_ = c.reject(m) // a closed connection ends with the next read
		return nil
	case response:
		id, err := strconv.ParseUint(string(m.id), 10, 64)
		if err != nil {
			return nil // not one of ours: a stray answer
		}
		if m.err != nil && !bytes.Equal(m.err, null) {
			return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"error":%s}`, id, m.err)
		}
		if m.result == nil {
			m.result = null
		}
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":%s}`, id, m.result)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	ref := c.next
	c.params[ref] = bytes.Clone(m.params)
	name, err := json.Marshal(m.method)
	if err != nil {
		return nil
	}
	if m.kind == notification {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%s,"params":%d}`, name, ref)
	}
	if _, dup := c.open[string(m.id)]; dup {
		delete(c.params, ref)
		_ = c.reject(refuse(CodeInvalidRequest, bytes.Clone(m.id), "Invalid request: this id is in use by a request that has no answer yet."))
		return nil
	}
	c.ids[ref] = bytes.Clone(m.id)
	c.open[string(m.id)] = &Request{} // holds the id until the handler has its request
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%s,"params":%d}`, ref, name, ref)
}

// dispatcher is the library's handler.
type dispatcher struct{ c *Conn }

func (d dispatcher) Handle(_ context.Context, _ *jsonrpc2.Conn, lib *jsonrpc2.Request) {
	c := d.c
	ref, err := strconv.ParseUint(string(*lib.Params), 10, 64)
	if err != nil {
		panic("rpc: the library returned another reference than it was given: " + string(*lib.Params))
	}
	c.mu.Lock()
	params, id := c.params[ref], c.ids[ref]
	delete(c.params, ref)
	delete(c.ids, ref)
	c.mu.Unlock()
	if lib.Notif {
		if lib.Method == "$/cancel_request" {
			c.cancelOpen(params)
			return
		}
		c.guard(func() { c.h.Notification(c.ctx, lib.Method, params) }, nil)
		return
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	req := &Request{Method: lib.Method, Params: params, conn: c, id: id, cancel: cancel}
	c.mu.Lock()
	c.open[string(id)] = req
	c.mu.Unlock()
	c.guard(func() { c.h.Request(ctx, req) }, req)
}

// guard answers a request whose handler panics; the connection goes on.
func (c *Conn) guard(fn func(), req *Request) {
	defer func() {
		if p := recover(); p != nil && req != nil {
			req.Fail(&Error{Code: CodeInternalError, Message: "Internal error."})
		}
	}()
	fn()
}

// cancelOpen ends the context of a request that the peer no longer wants; the handler still answers it.
func (c *Conn) cancelOpen(params json.RawMessage) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil || p.RequestID == nil {
		return
	}
	c.mu.Lock()
	req := c.open[string(p.RequestID)]
	c.mu.Unlock()
	if req != nil && req.cancel != nil {
		req.cancel(ErrCancelledByPeer)
	}
}
