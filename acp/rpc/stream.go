package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/sourcegraph/jsonrpc2"
)

// stream is how the library sees the connection, and its handler. The library reads one object and handles it before it reads the next,
// on one goroutine; so the message that a stub stands for is simply the current one.
type stream struct {
	c       *Conn
	ready   <-chan struct{} // closed when c.lib is set
	current message
	request *Request
	ctx     context.Context // of request
}

// Stubs are what the library gets in place of a request or a notification.
var (
	requestStub      = []byte(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	notificationStub = []byte(`{"jsonrpc":"2.0","method":"m"}`)
)

func answerStub(id uint64) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":null}`, id)
}

// Close implements jsonrpc2.ObjectStream. Input and output belong to who made them.
func (s *stream) Close() error { return nil }

// WriteObject implements jsonrpc2.ObjectStream: it queues what the library sends, which is our calls.
func (s *stream) WriteObject(obj any) error { return s.c.send(obj) }

// ReadObject implements jsonrpc2.ObjectStream: it gives the library a stub of the next message.
func (s *stream) ReadObject(v any) error {
	<-s.ready
	for {
		var stub []byte
		if id, ok := s.c.takeForsaken(); ok {
			stub = answerStub(id)
		} else {
			select {
			case in := <-s.c.inbound:
				if in.err != nil && !errors.Is(in.err, errTooLong) {
					return s.end()
				}
				stub = s.take(in)
			case <-s.c.dropped:
			case <-s.c.ctx.Done():
				return s.end()
			}
		}
		if stub == nil {
			continue
		}
		if err := json.Unmarshal(stub, v); err != nil {
			panic("rpc: the library does not read a stub: " + err.Error())
		}
		return nil
	}
}

// end is the last thing the dispatcher does.
func (s *stream) end() error {
	close(s.c.idle)
	return io.EOF
}

// take classifies a line, answers what is no message, and returns the stub of one.
func (s *stream) take(in inbound) []byte {
	c := s.c
	if in.err != nil {
		c.reject(invalid(nil, fmt.Sprintf("a message may have at most %d bytes.", c.in.max)))
		return nil
	}
	m := classify(in.line)
	switch m.kind {
	case refused:
		c.reject(m)
	case response:
		if id, ok := c.settle(m); ok {
			return answerStub(id)
		}
	case notification:
		s.current = m
		return notificationStub
	case request:
		req, ctx, ok := c.openRequest(m)
		if !ok {
			c.reject(invalid(m.id, "this id belongs to a request that has no answer yet."))
			return nil
		}
		s.current, s.request, s.ctx = m, req, ctx
		return requestStub
	}
	return nil
}

// reject answers what is no message. It only fails with the connection.
func (c *Conn) reject(m message) { _ = c.send(failure{"2.0", m.id, m.refusal}) }

// Handle implements jsonrpc2.Handler.
func (s *stream) Handle(_ context.Context, _ *jsonrpc2.Conn, lib *jsonrpc2.Request) {
	c, m := s.c, s.current
	s.current = message{}
	if !lib.Notif {
		req, ctx := s.request, s.ctx
		s.request, s.ctx = nil, nil
		c.guard(req, func() { c.h.Request(ctx, req) })
		return
	}
	if m.method == methodCancel {
		c.cancelRequest(m.params)
		return
	}
	c.guard(nil, func() { c.h.Notification(c.ctx, m.method, m.params) })
}
