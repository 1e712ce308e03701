package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpgo "github.com/mark3labs/mcp-go/server"
)

const (
	inFlight = 128         // requests that are worked on at once; more wait in the pipe
	letGo    = time.Second // how long answers of the last requests may take at the end
)

// message is what decides how a line is handled. Its id goes back as it came.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		RequestID json.RawMessage `json:"requestId"`
	} `json:"params"`
}

// answer is one line to the client.
type answer struct {
	JSONRPC string                   `json:"jsonrpc"`
	ID      json.RawMessage          `json:"id"`
	Result  any                      `json:"result,omitempty"`
	Error   *mcp.JSONRPCErrorDetails `json:"error,omitempty"`
}

// stream is one connection. Serve waits for the requests, not for the goroutine that reads: it ends with the input, or with the process.
type stream struct {
	s    *Server
	ctx  context.Context // of every request (I2)
	slot chan struct{}
	wg   sync.WaitGroup
	dead chan struct{} // closed at the first failed write

	mu   sync.Mutex // of the lines going out
	out  io.Writer
	once sync.Once

	openMu sync.Mutex
	open   map[string]*request // by id
}

// request is one that was not answered. It is also the client session that mcp-go wants, one for each request: what the library says in
// between is written before the answer (I1).
type request struct {
	cancelled bool // under openMu
	notes     chan mcp.JSONRPCNotification
}

// Serve answers until the end of input, the end of ctx, or a client that no longer reads.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) {
	t := &stream{s: s, ctx: context.WithoutCancel(ctx), out: out, slot: make(chan struct{}, inFlight), dead: make(chan struct{}), open: map[string]*request{}}
	type read struct {
		line []byte
		err  error
	}
	input := make(chan read)
	go func() { // ends with the input, or with the process
		l := &lines{bufio.NewReaderSize(in, 64<<10), maxLine}
		for {
			line, err := l.next()
			select {
			case input <- read{line, err}:
			case <-ctx.Done():
				return
			case <-t.dead:
				return
			}
			if err != nil && !errors.Is(err, errTooLong) {
				return
			}
		}
	}()
	for end := false; !end; {
		select {
		case r := <-input:
			switch {
			case errors.Is(r.err, errTooLong):
				t.refuse(nil, mcp.INVALID_REQUEST, fmt.Sprintf("the line is longer than %d bytes", maxLine))
			case r.err != nil:
				end = true
			default:
				t.take(r.line)
			}
		case <-ctx.Done():
			end = true
		case <-t.dead:
			end = true
		}
	}
	t.wait()
}

// wait gives the last requests time for their answers.
func (t *stream) wait() {
	idle := make(chan struct{})
	go func() { t.wg.Wait(); close(idle) }() // ends with the last request; the process ends with it at the latest
	select {
	case <-idle:
	case <-t.dead:
	case <-time.After(letGo):
	}
}

// take handles one line.
func (t *stream) take(line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	if !json.Valid(line) {
		t.refuse(nil, mcp.PARSE_ERROR, "the line is not JSON")
		return
	}
	var m message
	if line[0] != '{' {
		t.refuse(nil, mcp.INVALID_REQUEST, "one JSON object on a line; batches are not part of the protocol any more")
		return
	}
	_ = json.Unmarshal(line, &m) // members of a wrong kind are found by the library
	switch id := string(m.ID); {
	case m.Method == "notifications/cancelled":
		t.cancel(string(m.Params.RequestID))
	case m.Method == "" && isAnswer(line):
		return // nothing was asked
	case id == "":
		t.s.mcp.HandleMessage(t.ctx, line) // a notification has no answer
	case id == "null", id[0] == '{', id[0] == '[', id == "true", id == "false":
		t.refuse(nil, mcp.INVALID_REQUEST, "an id is a string or a number")
	default:
		t.begin(m.ID, line)
	}
}

func isAnswer(line []byte) bool {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(line, &members)
	return members["result"] != nil || members["error"] != nil
}

// begin works on a request beside the others.
func (t *stream) begin(id json.RawMessage, line []byte) {
	r := &request{notes: make(chan mcp.JSONRPCNotification, 16)}
	t.openMu.Lock()
	t.open[string(id)] = r
	t.openMu.Unlock()
	select {
	case t.slot <- struct{}{}:
	case <-t.dead:
		return
	}
	t.wg.Go(func() {
		defer func() { <-t.slot }()
		out := t.handle(r, line)
		t.openMu.Lock()
		if t.open[string(id)] == r {
			delete(t.open, string(id))
		}
		cancelled := r.cancelled
		t.openMu.Unlock()
		if cancelled {
			return // nothing may follow for this id; what was committed stands
		}
		for len(r.notes) > 0 {
			t.write(<-r.notes)
		}
		out.JSONRPC, out.ID = mcp.JSONRPC_VERSION, id
		t.write(out)
	})
}

func (t *stream) cancel(id string) {
	t.openMu.Lock()
	defer t.openMu.Unlock()
	if r := t.open[id]; r != nil {
		r.cancelled = true
	}
}

func (t *stream) handle(r *request, line []byte) (out answer) {
	fail := func(code int, message string) answer {
		d := mcp.NewJSONRPCErrorDetails(code, message, nil)
		return answer{Error: &d}
	}
	defer func() {
		if p := recover(); p != nil {
			t.s.o.Log.Error().Interface("panic", p).Msg("a request panicked")
			out = fail(mcp.INTERNAL_ERROR, "internal error; the log in the state directory has the cause")
		}
	}()
	switch a := t.s.mcp.HandleMessage(t.s.mcp.WithContext(t.ctx, r), line).(type) {
	case mcp.JSONRPCResponse:
		return answer{Result: a.Result}
	case mcp.JSONRPCError:
		if name, found := strings.CutSuffix(a.Error.Message, " not found: tool not found"); found { // the library says it twice
			a.Error.Message = "there is no " + name + "; tools/list has them all"
		}
		return answer{Error: &a.Error}
	}
	return fail(mcp.INVALID_REQUEST, "not a request")
}

func (t *stream) refuse(id json.RawMessage, code int, why string) {
	d := mcp.NewJSONRPCErrorDetails(code, why, nil)
	if id == nil {
		id = json.RawMessage("null")
	}
	t.write(answer{JSONRPC: mcp.JSONRPC_VERSION, ID: id, Error: &d})
}

// write sends one line. After a failed one the connection is over.
func (t *stream) write(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		t.s.o.Log.Error().Err(err).Msg("encoding an answer failed")
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.out.Write(append(b, '\n')); err != nil {
		t.once.Do(func() { close(t.dead) })
	}
}

var _ mcpgo.ClientSession = (*request)(nil)

// Initialize does nothing: a connection carries no state.
func (r *request) Initialize() {}

// Initialized is always true: a request of the newer era comes without a handshake.
func (r *request) Initialized() bool { return true }

// NotificationChannel takes what goes before the answer.
func (r *request) NotificationChannel() chan<- mcp.JSONRPCNotification { return r.notes }

// SessionID is the same for all: there is one client.
func (r *request) SessionID() string { return "stdio" }
