package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"holdfast/internal/fault"
)

// point is fault.Point; tests of this package replace it.
var point = fault.Point

var (
	errNoTicket  = errors.New("a call without an unused ticket is not sent")
	errNotModern = errors.New("the answer to the probe names no protocol that we speak")
)

type ticketKey struct{}

// exchange is one request whose answer our reader keeps. Its fields are guarded by the lock of the conn.
type exchange struct {
	id       string
	method   string
	ticket   string
	token    string        // of its progress
	progress chan string   // the newest message only
	done     chan struct{} // closed once raw is set
	raw      []byte
	offered  bool          // to the pipe: it is never offered again
	written  int64         // bytes the pipe took
	gaveUp   bool          // the outcome was given as unknown; an answer now is late
	echo     string        // the id as it came back, with another type
	mismatch chan struct{} // closed when it did
}

func newExchange() *exchange {
	return &exchange{done: make(chan struct{}), mismatch: make(chan struct{}), progress: make(chan string, 1)}
}

// wire stands between the library and its transport: it sees each request before the library's transport has it.
type wire struct {
	c     *conn
	inner *transport.Stdio
}

var _ transport.Interface = (*wire)(nil)

func (w *wire) Start(ctx context.Context) error { return w.inner.Start(ctx) }
func (w *wire) Close() error                    { return w.inner.Close() }
func (w *wire) GetSessionId() string            { return "" }

// SetNotificationHandler does nothing: our reader keeps notifications, a handler inside the library could stop its reading.
func (w *wire) SetNotificationHandler(func(mcp.JSONRPCNotification)) {}

// SendNotification sends what the library wants to tell, which is that it is initialized or has cancelled.
func (w *wire) SendNotification(ctx context.Context, n mcp.JSONRPCNotification) error {
	if !w.c.enter() {
		return transport.ErrTransportClosed
	}
	defer w.c.wg.Done()
	return w.inner.SendNotification(ctx, n)
}

// SendRequest records the request before it can be written. A call needs the ticket from the context, and uses it up.
func (w *wire) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	id, err := json.Marshal(r.ID)
	if err != nil {
		return nil, err
	}
	x, _ := ctx.Value(ticketKey{}).(*exchange)
	if r.Method == string(mcp.MethodToolsCall) {
		if x == nil || !w.c.s.use(x.ticket) {
			return nil, errNoTicket
		}
	}
	if x == nil {
		x = newExchange()
	}
	w.c.register(x, string(id), r.Method)
	res, err := w.inner.SendRequest(ctx, r)
	if r.Method != string(mcp.MethodToolsCall) {
		w.c.forget(x)
	}
	if err == nil && r.Method == string(mcp.MethodServerDiscover) && res.Error == nil && !modern(res.Result) {
		return nil, errNotModern
	}
	return res, err
}

// modern tells whether the answer to a probe says that the server speaks the newest protocol we speak. An empty object does not.
func modern(result json.RawMessage) bool {
	var r struct {
		Versions []string `json:"supportedVersions"`
	}
	return json.Unmarshal(result, &r) == nil && slices.Contains(r.Versions, mcp.LATEST_PROTOCOL_VERSION)
}

// writer is the only way into the server's stdin: one Write is one whole message.
type writer struct {
	c *conn
	f *os.File

	mu sync.Mutex
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.c.isBroken() {
		return 0, os.ErrClosed
	}
	id, method := peek(p)
	var x *exchange
	if method == string(mcp.MethodToolsCall) {
		if x = w.c.offer(id); x == nil {
			return 0, errNoTicket
		}
		point("mcp.sending")
	}
	_ = w.f.SetWriteDeadline(time.Now().Add(w.c.s.lim.Write)) // a pipe of ours has deadlines
	n, err := w.f.Write(p)
	if x != nil {
		w.c.wrote(x, n)
	}
	if err != nil {
		w.c.writeFailed(n, len(p), err)
		return n, err
	}
	if x != nil {
		point("mcp.written")
	}
	return n, nil
}

func (w *writer) Close() error { return w.f.Close() }

// peek reads the id and the method of a message without reading all of it.
func peek(p []byte) (id, method string) {
	d := json.NewDecoder(bytes.NewReader(p))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return "", ""
	}
	for d.More() && (id == "" || method == "") {
		key, err := d.Token()
		if err != nil {
			return id, method
		}
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return id, method
		}
		switch key {
		case "id":
			id = string(v)
		case "method":
			_ = json.Unmarshal(v, &method) // what is no text is no method
		}
	}
	return id, method
}

func (c *conn) register(x *exchange, id, method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x.id, x.method = id, method
	c.open[id] = x
}

func (c *conn) forget(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[x.id] == x {
		delete(c.open, x.id)
	}
}

func (c *conn) raw(x *exchange) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return x.raw
}

// offer gives a call to the pipe, once.
func (c *conn) offer(id string) *exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.open[id]
	if x == nil || x.ticket == "" || x.offered {
		return nil
	}
	x.offered = true
	return x
}

func (c *conn) wrote(x *exchange, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x.written = int64(n)
}

func (c *conn) writeFailed(n, of int, err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.fail(fmt.Sprintf("the server stopped reading: it took %d of %d bytes within %s", n, of, c.s.lim.Write))
		c.child.kill()
		return
	}
	// It closed its stdin or has ended; the watcher knows more in a moment.
	if !within(c.child.exited, exitPause) {
		c.fail("the server closed its input")
		return
	}
	c.fail("the server exited (" + c.child.status + ")")
}
