package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/rs/zerolog"
)

// How long the end of a process and the end of its output wait for each other, so that an answer that was written before the end is still
// read: exitPause without a new byte, and lastWords in all, as somebody else may have inherited the output and write on.
const (
	exitPause = 300 * time.Millisecond
	lastWords = 5 * time.Second
)

// conn is one generation of a server: a process and what is said with it. Its goroutines end before gone is closed.
type conn struct {
	s     *Server
	gen   int64
	child *child
	err   *tail
	log   zerolog.Logger
	lib   *mcpclient.Client
	out   *writer
	feed  *io.PipeWriter // the library reads here what our reader lets through
	wg    sync.WaitGroup

	era, version string // set before it is ready

	eof     chan struct{} // its output has ended, or is not read any more
	broken  chan struct{} // nothing more is sent
	gone    chan struct{} // the process and all goroutines have ended
	stale   chan struct{} // the list may have changed
	replies chan []byte
	waiting atomic.Int64 // since when the reader waits for a byte; 0 while it does not

	mu       sync.Mutex
	reason   string // why it is broken
	open     map[string]*exchange
	answered int  // answers read
	alone    bool // it ended without us
	over     bool // no goroutine may join
	noise    int
	notified int64 // notices of a changed list
	listed   int64 // how many of them the newest list covers
}

// connect launches the process and its goroutines. Whoever gets a conn closes it.
func connect(s *Server, gen int64) (*conn, error) {
	c := &conn{s: s, gen: gen, err: &tail{mask: s.mask}, open: map[string]*exchange{}, log: s.opts.Log.With().Int64("generation", gen).Logger(),
		eof: make(chan struct{}), broken: make(chan struct{}), gone: make(chan struct{}), stale: make(chan struct{}, 1),
		replies: make(chan []byte, 64)}
	child, err := spawn(s.cfg, s.opts, s.lim)
	if err != nil {
		return nil, err
	}
	c.child = child
	c.out = &writer{c: c, f: child.stdin}
	var fed *io.PipeReader
	fed, c.feed = io.Pipe()
	c.wg.Add(3)
	go func() { defer c.wg.Done(); c.child.drain(io.MultiWriter(c.err, newStderrLog(c.log, s.mask))) }()
	go func() { defer c.wg.Done(); c.read() }()
	go func() { defer c.wg.Done(); c.reply() }()
	go c.watch()
	c.lib = mcpclient.NewClient(&wire{c: c, inner: transport.NewIO(fed, c.out, nil)}, s.libOptions()...)
	return c, nil
}

// watch notices the end of the process or of its output, and takes everything down.
func (c *conn) watch() {
	select {
	case <-c.child.exited:
		c.hearOut()
		c.fail("the server exited (" + c.child.status + ")")
	case <-c.eof:
		if within(c.child.exited, exitPause) {
			c.fail("the server exited (" + c.child.status + ")")
		} else {
			c.fail("the server closed its output")
		}
	case <-c.broken:
	}
	c.mu.Lock()
	c.alone = isClosed(c.child.exited)
	c.mu.Unlock()
	c.child.end()
	<-c.eof
	_ = c.feed.Close()
	_ = c.lib.Close() // stops the library's reader; the pipes are closed already
	close(c.replies)
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.wg.Wait()
	close(c.gone)
}

// enter lets one more goroutine in, unless all of them are being waited for.
func (c *conn) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.wg.Add(1)
	}
	return !c.over
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// hearOut waits until everything that was written is read.
func (c *conn) hearOut() {
	for end := time.Now().Add(lastWords); time.Now().Before(end) && !within(c.eof, exitPause/10); {
		if since := c.waiting.Load(); since != 0 && time.Since(time.Unix(0, since)) > exitPause {
			return
		}
	}
}

// output is the server's stdout for our reader, which leaves a note while it waits for a byte.
type output struct{ c *conn }

func (o output) Read(p []byte) (int, error) {
	o.c.waiting.Store(time.Now().UnixNano())
	defer o.c.waiting.Store(0)
	return o.c.child.stdout.Read(p)
}

// fail ends the use of this process; the first reason counts.
func (c *conn) fail(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(reason)
}

func (c *conn) failLocked(reason string) {
	if c.reason == "" {
		c.reason = reason
		close(c.broken)
	}
}

func (c *conn) isBroken() bool { return isClosed(c.broken) }

func (c *conn) why() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// read takes everything the server says until its output ends.
func (c *conn) read() {
	defer close(c.eof)
	in := newLines(output{c}, c.s.lim.Line)
	for {
		line, err := in.next()
		if errors.Is(err, errTooLong) {
			c.fail(fmt.Sprintf("the server sent a message of more than %d bytes", c.s.lim.Line))
			c.child.kill()
			return
		}
		if err != nil {
			return
		}
		c.take(line)
	}
}

func (c *conn) take(line []byte) {
	switch e, k := open(line); k {
	case noise:
		c.noted(line)
	case answer:
		c.takeAnswer(e, line)
	case notification:
		c.takeNotification(e)
	case request:
		c.takeRequest(e)
	}
}

// noted counts what is no message, and logs the beginning of the first few.
func (c *conn) noted(line []byte) {
	if len(line) == 0 {
		return
	}
	c.mu.Lock()
	c.noise++
	n := c.noise
	c.mu.Unlock()
	if n <= 20 {
		c.log.Warn().Int("count", n).Str("line", head(c.s.mask.hide(string(line[:min(len(line), 4096)])), 200)).Msg("the server's output holds something that is no message")
	}
}

// takeAnswer finds the request of an answer. Answers to calls stay here, and the library is told that there was one; others go to it.
func (c *conn) takeAnswer(e envelope, line []byte) {
	c.mu.Lock()
	x := c.open[string(e.ID)]
	c.answered++
	if x == nil {
		x = c.echoed(string(e.ID))
		c.mu.Unlock()
		if x == nil {
			c.log.Debug().Str("rpc_id", head(string(e.ID), 40)).Msg("an answer to nothing")
		}
		return
	}
	if x.raw != nil {
		c.mu.Unlock()
		c.log.Debug().Str("rpc_id", x.id).Msg("a second answer")
		return
	}
	x.raw = line
	late := x.gaveUp
	if late {
		delete(c.open, x.id)
	}
	c.mu.Unlock()
	if x.method != "tools/call" {
		close(x.done)
		c.pass(x, e, line)
		return
	}
	point("mcp.answer_read")
	close(x.done)
	if late {
		c.s.late(x.ticket, line)
		return
	}
	c.pass(x, e, line)
}

// echoed finds the request whose id came back as another type. Nobody can be sure what such an answer belongs to.
func (c *conn) echoed(id string) *exchange {
	var text string
	if json.Unmarshal([]byte(id), &text) != nil {
		return nil
	}
	x := c.open[text]
	if x == nil || x.echo != "" || x.raw != nil {
		return x
	}
	x.echo = id
	if x.method == "tools/call" {
		close(x.mismatch)
	} else {
		c.failLocked("the server answers with ids of another type (" + head(id, 40) + ")")
	}
	return x
}

// pass lets the library go on. Results that it would decode in its own way are replaced: we have them as they came.
func (c *conn) pass(x *exchange, e envelope, line []byte) {
	switch {
	case x.method == "tools/call":
		line = []byte(`{"jsonrpc":"2.0","id":` + x.id + `,"result":{"content":[]}}`)
	case x.method == "tools/list" && len(e.Error) == 0:
		line = []byte(`{"jsonrpc":"2.0","id":` + x.id + `,"result":{"tools":[]}}`)
	}
	_, _ = c.feed.Write(append(line, '\n')) // a library that is closed does not want it
}

func (c *conn) takeNotification(e envelope) {
	switch *e.Method {
	case "notifications/tools/list_changed":
		c.mu.Lock()
		c.notified++
		c.mu.Unlock()
		select {
		case c.stale <- struct{}{}:
		default:
		}
	case "notifications/progress":
		c.takeProgress(e.Params)
	}
}

func (c *conn) takeProgress(params json.RawMessage) {
	var p struct {
		Token    any         `json:"progressToken"`
		Progress json.Number `json:"progress"`
		Total    json.Number `json:"total"`
		Message  string      `json:"message"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	token, _ := p.Token.(string)
	text := p.Message
	if text == "" {
		text = p.Progress.String()
		if p.Total != "" {
			text += "/" + p.Total.String()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.open { // there are few
		if x.token != "" && x.token == token && x.raw == nil {
			select {
			case <-x.progress: // an older one that nobody has taken
			default:
			}
			x.progress <- head(c.s.mask.hide(text), 500) // before it is cut
		}
	}
}

// takeRequest answers what a server may ask of a client that offers nothing.
func (c *conn) takeRequest(e envelope) {
	body := `"error":{"code":-32601,"message":"not supported by this client"}`
	if *e.Method == "ping" {
		body = `"result":{}`
	}
	select {
	case c.replies <- []byte(`{"jsonrpc":"2.0","id":` + string(e.ID) + `,` + body + "}\n"):
	default: // it asks faster than it reads
	}
}

// reply writes the answers to the server's requests, apart from the reader, which must never wait for the server.
func (c *conn) reply() {
	for b := range c.replies {
		_, _ = c.out.Write(b) // a failure ends the conn
	}
}

func (c *conn) close(reason string) {
	c.fail(reason)
	<-c.gone
}

func within(done <-chan struct{}, limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
