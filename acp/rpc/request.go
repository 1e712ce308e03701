package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
)

// Request is one request of the peer. Reply or Fail answers it, from any goroutine; only the first of them counts. Neither waits for the
// peer to read.
type Request struct {
	Method string
	// Params are the peer's own bytes, nil when there are none. They share memory with the whole message: a handler that keeps the request
	// sets them to nil when it has read them.
	Params json.RawMessage

	conn   *Conn
	id     json.RawMessage
	once   sync.Once
	cancel context.CancelCauseFunc
}

type success struct {
	V      string          `json:"jsonrpc"`
	ID     json.RawMessage `json:"id"`
	Result any             `json:"result"`
}

type failure struct {
	V     string          `json:"jsonrpc"`
	ID    json.RawMessage `json:"id"`
	Error *Error          `json:"error"`
}

// Reply answers with a result. One that cannot be encoded becomes an internal error.
func (r *Request) Reply(result any) {
	r.answer(success{"2.0", r.id, result}, "The result could not be encoded.")
}

// Fail answers with an error. Data that cannot be encoded is left out.
func (r *Request) Fail(e *Error) {
	e = e.oneLine()
	if _, err := json.Marshal(e.Data); err != nil {
		e.Data = nil
	}
	r.answer(failure{"2.0", r.id, e}, e.Message)
}

func (r *Request) answer(msg any, otherwise string) {
	r.once.Do(func() {
		// The id is free before the answer is out: the peer may use it again as soon as it has read it.
		r.conn.closeRequest(r)
		if err := r.conn.send(msg); err != nil && !errors.Is(err, ErrClosed) {
			_ = r.conn.send(failure{"2.0", r.id, &Error{Code: CodeInternalError, Message: otherwise}}) // only fails with the connection
		}
		r.cancel(nil)
	})
}

// openRequest registers a request, unless another one with its id has no answer yet.
func (c *Conn) openRequest(m message) (*Request, context.Context, bool) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	r := &Request{Method: m.method, Params: m.params, conn: c, id: bytes.Clone(m.id), cancel: cancel}
	key, named := idKey(m.id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !named {
		return r, ctx, true
	}
	if _, taken := c.open[key]; taken {
		cancel(nil)
		return nil, nil, false
	}
	c.open[key] = r
	return r, ctx, true
}

func (c *Conn) closeRequest(r *Request) {
	if key, named := idKey(r.id); named {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, key)
	}
}

// cancelRequest ends the context of a request that the peer no longer wants; the handler still answers it.
func (c *Conn) cancelRequest(params json.RawMessage) {
	var id json.RawMessage
	if len(params) > 0 && params[0] == '{' {
		eachMember(params, func(name string, value []byte) {
			if name == "requestId" {
				id = value
			}
		})
	}
	key, named := idKey(id)
	if !named {
		return
	}
	c.mu.Lock()
	r := c.open[key]
	c.mu.Unlock()
	if r == nil {
		return
	}
	r.cancel(ErrCancelledByPeer)
	if h, ok := c.h.(Canceller); ok {
		c.guard(nil, func() { h.Cancelled(r) })
	}
}
