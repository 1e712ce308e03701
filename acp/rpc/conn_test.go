package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deadline bounds every wait of a test; reaching it is a failure.
const deadline = 20 * time.Second

// funcs is a handler of two functions.
type funcs struct {
	request func(context.Context, *Request)
	notify  func(string, json.RawMessage)
}

func (f funcs) Request(ctx context.Context, r *Request) { f.request(ctx, r) }
func (f funcs) Notification(_ context.Context, m string, p json.RawMessage) {
	if f.notify != nil {
		f.notify(m, p)
	}
}

// echo answers with the parameters.
var echo = funcs{request: func(_ context.Context, r *Request) { r.Reply(r.Params) }}

// peer is the other end, over real pipes of the system.
type peer struct {
	t     *testing.T
	conn  *Conn
	in    *os.File // what the connection reads
	out   *os.File // what it writes
	outW  *os.File
	lines *bufio.Reader
}

func connect(t *testing.T, h Handler, opts ...Option) *peer {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, in: inW, out: outR, outW: outW, lines: bufio.NewReaderSize(outR, 1<<20)}
	p.conn = New(inR, outW, h, opts...)
	t.Cleanup(func() {
		_ = p.in.Close()
		_ = p.out.Close() // ends a blocked write
		p.ended()
		_, _ = inR.Close(), outW.Close()
	})
	return p
}

func (p *peer) ended() {
	p.t.Helper()
	wait(p.t, p.conn.Done(), "the end of the connection")
}

func wait[T any](t *testing.T, ch <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(deadline):
		t.Fatalf("waited in vain for %s", what)
	}
	return v
}

// send writes in the background when the message may be longer than a pipe holds.
func (p *peer) send(text string) {
	p.t.Helper()
	if err := p.in.SetWriteDeadline(time.Now().Add(deadline)); err != nil {
		p.t.Fatal(err)
	}
	if _, err := io.WriteString(p.in, text); err != nil {
		p.t.Fatalf("write to the connection: %v", err)
	}
}

func (p *peer) line() string {
	p.t.Helper()
	if err := p.out.SetReadDeadline(time.Now().Add(deadline)); err != nil {
		p.t.Fatal(err)
	}
	s, err := p.lines.ReadString('\n')
	if err != nil {
		p.t.Fatalf("read from the connection: %v (%q)", err, s)
	}
	return strings.TrimSuffix(s, "\n")
}

// rest ends the input and returns all lines that still came.
func (p *peer) rest() []string {
	p.t.Helper()
	if err := p.in.Close(); err != nil {
		p.t.Fatal(err)
	}
	p.ended()
	if err := p.out.SetReadDeadline(time.Now().Add(deadline)); err != nil {
		p.t.Fatal(err)
	}
	if err := p.outW.Close(); err != nil { // the connection does not close what is not its own
		p.t.Fatal(err)
	}
	left, err := io.ReadAll(p.lines)
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.FieldsFunc(string(left), func(r rune) bool { return r == '\n' })
}

func TestConn_NotificationsGoOutBeforeTheAnswerThatFollows(t *testing.T) {
	p := connect(t, nil)
	const n = 2000
	p.conn.h = funcs{request: func(_ context.Context, r *Request) {
		go func() {
			for i := range n {
				if err := p.conn.Notify("u", map[string]int{"i": i}); err != nil {
					t.Errorf("notify %d: %v", i, err)
				}
			}
			r.Reply("done")
		}()
	}}
	p.send(`{"jsonrpc":"2.0","id":7,"method":"x"}` + "\n")
	for i := range n {
		if got, want := p.line(), fmt.Sprintf(`{"jsonrpc":"2.0","method":"u","params":{"i":%d}}`, i); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	if got := p.line(); got != `{"jsonrpc":"2.0","id":7,"result":"done"}` {
		t.Errorf("got %s", got)
	}
}

func TestConn_HandlersRunInOrderOfArrival(t *testing.T) {
	var got []string
	p := connect(t, funcs{request: func(_ context.Context, r *Request) { got = append(got, r.Method); r.Reply(nil) },
		notify: func(m string, _ json.RawMessage) { got = append(got, m) }})
	var want []string
	for i := range 500 {
		m := fmt.Sprintf("m%d", i)
		want = append(want, m)
		if i%2 == 0 {
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q}`+"\n", m))
		} else {
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`+"\n", i, m))
		}
	}
	p.rest()
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("handlers ran in another order: %v", got)
	}
}

func TestConn_FirstAnswerCounts(t *testing.T) {
	p := connect(t, funcs{request: func(_ context.Context, r *Request) {
		var wg sync.WaitGroup
		r.Fail(&Error{Code: CodeInvalidParams, Message: "two\nlines"})
		for range 8 {
			wg.Go(func() { r.Reply("late") })
			wg.Go(func() { r.Fail(&Error{Code: 1, Message: "late"}) })
		}
		wg.Wait()
	}})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"x"}` + "\n")
	if got := p.rest(); len(got) != 1 || got[0] != `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"two lines"}}` {
		t.Errorf("got %q", got)
	}
}

func TestConn_AnswersThatCannotBeEncoded(t *testing.T) {
	p := connect(t, funcs{request: func(_ context.Context, r *Request) {
		switch r.Method {
		case "result":
			r.Reply(func() {})
		case "data":
			r.Fail(&Error{Code: 5, Message: "m", Data: func() {}})
		case "nil":
			r.Fail(nil)
		}
	}})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"result"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"data"}` + "\n" + `{"jsonrpc":"2.0","id":3,"method":"nil"}` + "\n")
	want := []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The result could not be encoded."}}`,
		`{"jsonrpc":"2.0","id":2,"error":{"code":5,"message":"m"}}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"Internal error."}}`}
	if got := p.rest(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", got)
	}
}

func TestConn_PanicBecomesInternalErrorAndIsTold(t *testing.T) {
	told := make(chan any, 2)
	p := connect(t, funcs{request: func(context.Context, *Request) { panic("boom") }, notify: func(string, json.RawMessage) { panic("bang") }},
		WithPanicHook(func(v any, stack []byte) {
			if len(stack) == 0 {
				t.Error("no stack")
			}
			told <- v
		}))
	p.send(`{"jsonrpc":"2.0","method":"n"}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"x"}` + "\n")
	if got := p.line(); got != `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error."}}` {
		t.Errorf("got %s", got)
	}
	if a, b := wait(t, told, "a panic"), wait(t, told, "a panic"); a != "bang" || b != "boom" {
		t.Errorf("told %v, %v", a, b)
	}
}

func TestConn_PeerCancelsARequest(t *testing.T) {
	for _, id := range []string{`1`, `-1`, `"a"`, `123456789012345678901234567890`} {
		t.Run(id, func(t *testing.T) {
			p := connect(t, funcs{request: func(ctx context.Context, r *Request) {
				go func() {
					<-ctx.Done()
					if !errors.Is(context.Cause(ctx), ErrCancelledByPeer) {
						t.Errorf("cause %v", context.Cause(ctx))
					}
					r.Fail(&Error{Code: CodeRequestCancelled, Message: "Cancelled."})
				}()
			}})
			p.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"x"}` + "\n")
			for _, stray := range []string{`{"requestId":99}`, `{"requestId":null}`, `{}`, `[]`, `{"requestId":{}}`, `[1]`} {
				p.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":` + stray + "}\n")
			}
			p.send(`{"jsonrpc":"2.0","method":"$/cancel_request"}` + "\n")
			p.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"_meta":[],"requestId": ` + id + ` }}` + "\n")
			if got := p.line(); got != `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32800,"message":"Cancelled."}}` {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestConn_RequestContextEndsWithAnswerAndConnection(t *testing.T) {
	ctxs := make(chan context.Context, 2)
	p := connect(t, funcs{request: func(ctx context.Context, r *Request) {
		if r.Method == "answered" {
			r.Reply(1)
		}
		ctxs <- ctx
	}})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"answered"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"open"}` + "\n")
	answered, open := wait(t, ctxs, "a request"), wait(t, ctxs, "a request")
	if context.Cause(answered) != context.Canceled {
		t.Errorf("an answered request's context has the cause %v", context.Cause(answered))
	}
	if open.Err() != nil {
		t.Error("an open request's context has ended")
	}
	p.rest()
	if !errors.Is(context.Cause(open), ErrClosed) {
		t.Errorf("at the end the cause is %v", context.Cause(open))
	}
}

func TestConn_EndOfInputFlushesAndEnds(t *testing.T) {
	var conn *Conn
	ready := make(chan struct{})
	p := connect(t, funcs{request: func(_ context.Context, r *Request) {
		<-ready
		for range 100 {
			_ = conn.Notify("u", nil)
		}
		r.Reply(nil)
	}})
	conn = p.conn
	close(ready)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`) // no line feed: the end of input ends the line
	if got := p.rest(); len(got) != 101 || got[100] != `{"jsonrpc":"2.0","id":1,"result":null}` {
		t.Errorf("%d lines, the last %q", len(got), got[len(got)-1])
	}
	if err := p.conn.Notify("u", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("notify after the end: %v", err)
	}
	if err := p.conn.Call(t.Context(), "c", nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("call after the end: %v", err)
	}
	if err := p.conn.Flush(t.Context()); err != nil {
		t.Errorf("flush after the end with nothing left: %v", err)
	}
}

func TestConn_CloseEndsWhileTheInputStaysOpen(t *testing.T) {
	p := connect(t, echo)
	if err := p.conn.Notify("last", nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.line(); !strings.Contains(got, "last") {
		t.Errorf("got %s", got)
	}
}

func TestConn_FailedWriteEnds(t *testing.T) {
	p := connect(t, echo)
	if err := p.out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.conn.Notify("u", nil); err != nil {
		t.Fatal(err)
	}
	p.ended()
}
