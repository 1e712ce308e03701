package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

// Handler receives what the peer sends, in order of arrival, on the connection's dispatching goroutine: it hands long work elsewhere, and
// does not wait there for Call. ctx ends with the connection; that of a request also with its answer, or when the peer cancels it (then
// its cause is ErrCancelledByPeer, and the request is still to be answered).
type Handler interface {
	Request(ctx context.Context, req *Request)
	Notification(ctx context.Context, method string, params json.RawMessage)
}

// Canceller is a Handler that is told when the peer cancels a request that has no answer yet: in order of arrival, on the dispatching
// goroutine, after the request's context has ended.
type Canceller interface{ Cancelled(req *Request) }

// Conn is one connection. It ends with the input, with a failed write, or with Close.
//
// Done waits for the goroutines that it started, but for two: the one that reads the input ends with its Read, and the one that writes with
// its Write, because neither can be interrupted from here.
type Conn struct {
	h       Handler
	w       *writer
	in      *lines
	lib     *jsonrpc2.Conn
	onPanic func(value any, stack []byte)

	ctx     context.Context
	cancel  context.CancelCauseFunc
	idle    chan struct{} // closed when the dispatcher has ended
	done    chan struct{}
	inbound chan inbound  // from the reader to the dispatcher
	dropped chan struct{} // holds one token when there are forsaken calls

	mu       sync.Mutex
	open     map[string]*Request // requests of the peer without an answer, by idKey
	calls    map[uint64]*call    // ours without an answer
	lastCall uint64
	forsaken []uint64 // calls that nobody waits for and the library still has
}

type inbound struct {
	line []byte
	err  error
}

type options struct {
	limits
	maxLine int
	onPanic func(any, []byte)
}

// Option changes a default.
type Option func(*options)

// WithMaxLine sets the longest line accepted, in bytes.
func WithMaxLine(n int) Option { return func(o *options) { o.maxLine = n } }

// WithStall sets how long a notification waits for a peer that does not read.
func WithStall(d time.Duration) Option { return func(o *options) { o.stall = d } }

// WithQueue sets from how many unread bytes on a notification waits, and from how many on reading does.
func WithQueue(soft, hard int) Option { return func(o *options) { o.soft, o.hard = soft, hard } }

// WithPanicHook sets what is told of a handler's panic, for the log.
func WithPanicHook(fn func(value any, stack []byte)) Option {
	return func(o *options) { o.onPanic = fn }
}

// New starts serving. h may be called before New returns.
func New(in io.Reader, out io.Writer, h Handler, opts ...Option) *Conn {
	o := options{limits: defaultLimits, maxLine: DefaultMaxLine, onPanic: func(any, []byte) {}}
	for _, opt := range opts {
		opt(&o)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &Conn{h: h, w: newWriter(out, o.limits), in: newLines(in, o.maxLine), onPanic: o.onPanic, ctx: ctx, cancel: cancel,
		idle: make(chan struct{}), done: make(chan struct{}), inbound: make(chan inbound), dropped: make(chan struct{}, 1), open: map[string]*Request{}, calls: map[uint64]*call{}}
	ready := make(chan struct{})
	s := &stream{c: c, ready: ready}
	c.lib = jsonrpc2.NewConn(ctx, s, s, jsonrpc2.SetLogger(log.New(io.Discard, "", 0)))
	close(ready)
	go c.read()
	go c.write()
	go c.finish()
	return c
}

// Done is closed when the connection has ended and what was queued is out, or could not be written in time.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Close ends the connection and waits for Done. It may be called twice, but not by a handler on the dispatching goroutine.
func (c *Conn) Close() error {
	c.cancel(ErrClosed)
	<-c.done
	return nil
}

// Flush waits until what was queued before is written.
func (c *Conn) Flush(ctx context.Context) error { return c.w.flush(ctx) }

// read hands lines to the dispatcher. It does not wait for the peer to read, short of the hard limit.
func (c *Conn) read() {
	for c.w.calm(c.ctx) == nil {
		line, err := c.in.next()
		select {
		case c.inbound <- inbound{line, err}:
		case <-c.ctx.Done():
			return
		}
		if err != nil && !errors.Is(err, errTooLong) {
			return
		}
	}
}

func (c *Conn) write() {
	if err := c.w.loop(); err != nil {
		c.cancel(fmt.Errorf("%w: write: %w", ErrClosed, err))
	}
}

// flushLimit bounds the end: a peer that has closed its side may not read any more.
const flushLimit = 500 * time.Millisecond

func (c *Conn) finish() {
	<-c.lib.DisconnectNotify()
	c.cancel(ErrClosed)
	ctx, cancel := context.WithTimeout(context.Background(), flushLimit)
	defer cancel()
	select {
	case <-c.idle: // what the last handler answered goes out, too
	case <-ctx.Done():
	}
	_ = c.w.flush(ctx) // nobody is left to be told
	c.w.end(ErrClosed)
	close(c.done)
}

// Notify is NotifyContext without a context.
func (c *Conn) Notify(method string, params any) error {
	return c.NotifyContext(context.Background(), method, params)
}

// NotifyContext queues a notification, in order with everything else; nil params are left out. When the peer does not read and much waits
// for it already, it waits for room: until ctx ends, or for the stall limit, and then returns ErrNotReading. From then on notifications
// fail at once until the peer reads again.
func (c *Conn) NotifyContext(ctx context.Context, method string, params any) error {
	return withLine(notice{"2.0", method, params}, func(line []byte) error { return c.w.offer(ctx, line) })
}

type notice struct {
	V      string `json:"jsonrpc"`
	Method string `json:"method"`
	Params any    `json:"params,omitempty"`
}

// send queues a message at once.
func (c *Conn) send(msg any) error { return withLine(msg, c.w.put) }

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// withLine encodes a message as a line, which fn must not keep.
func withLine(msg any, fn func(line []byte) error) error {
	b := buffers.Get().(*bytes.Buffer)
	defer func() {
		if b.Cap() <= keepBuffer {
			buffers.Put(b)
		}
	}()
	b.Reset()
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(msg); err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	return fn(b.Bytes())
}

// guard keeps a panic of the handler from ending the process (I5).
func (c *Conn) guard(req *Request, fn func()) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		c.onPanic(p, debug.Stack())
		if req != nil {
			req.Fail(&Error{Code: CodeInternalError, Message: "Internal error."})
		}
	}()
	fn()
}
