package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// kib is a notification's parameters; with the envelope about 1 KiB.
var kib = map[string]string{"t": strings.Repeat("x", 970)}

const bigLine = 300 << 10 // more than a pipe holds

// stuff queues one line that the writer cannot finish until the peer reads, then as many as fit, and returns how many those were.
func (p *peer) stuff() (n int) {
	p.t.Helper()
	if err := p.conn.Notify("big", strings.Repeat("x", bigLine)); err != nil {
		p.t.Fatal(err)
	}
	for {
		err := p.conn.NotifyContext(expired(p.t), "u", kib)
		if errors.Is(err, context.Canceled) {
			return n
		}
		if err != nil {
			p.t.Fatal(err)
		}
		if n++; n > 1<<20 {
			p.t.Fatal("the queue has no limit")
		}
	}
}

func expired(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestWriter_PeerThatDoesNotRead(t *testing.T) {
	release := make(chan *Request, 1)
	p := connect(t, funcs{request: func(_ context.Context, r *Request) {
		if r.Method == "later" {
			release <- r
			return
		}
		r.Reply(r.Method)
	}}, WithQueue(2*bigLine, 64<<20), WithStall(time.Millisecond))
	n := p.stuff()

	// A notification gives up after a while (I6), and the next one at once.
	for range 2 {
		if err := p.conn.Notify("u", kib); !errors.Is(err, ErrNotReading) {
			t.Fatalf("got %v", err)
		}
	}
	// Reading and answering go on: requests are taken and answered, cancels heard, calls end with their context.
	p.send(`{"jsonrpc":"2.0","id":1,"method":"first"}` + "\n" + `bad` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"later"}` + "\n")
	wait(t, release, "a request while nothing is read").Reply("second")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.conn.Call(ctx, "ask", nil, nil) }()
	cancel()
	if err := wait(t, done, "the call"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}

	// When the peer reads again, all that was taken comes in order, and notifications work again.
	p.line()
	for i := range n {
		if got := p.line(); !strings.Contains(got, `"method":"u"`) {
			t.Fatalf("line %d is %.80s", i, got)
		}
	}
	for _, want := range []string{`"first"`, `-32700`, `"second"`} {
		if got := p.line(); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for {
		err := p.conn.Notify("again", nil)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrNotReading) {
			t.Fatal(err)
		}
	}
	for !strings.Contains(p.line(), "again") { // the call may have gone out before its context ended
	}
}

func TestWriter_NotificationWaitsForRoom(t *testing.T) {
	p := connect(t, echo, WithQueue(2*bigLine, 64<<20))
	n := p.stuff()
	done := make(chan error, 1)
	go func() { done <- p.conn.NotifyContext(t.Context(), "last", nil) }()
	for range n + 1 {
		p.line()
	}
	if err := wait(t, done, "room"); err != nil {
		t.Error(err)
	}
	if got := p.line(); got != `{"jsonrpc":"2.0","method":"last"}` {
		t.Errorf("got %s", got)
	}
}

func TestWriter_WaitingNotificationEndsWithTheConnection(t *testing.T) {
	p := connect(t, echo, WithQueue(2*bigLine, 64<<20))
	p.stuff()
	done := make(chan error, 1)
	go func() { done <- p.conn.Notify("last", kib) }()
	if err := p.conn.Close(); err != nil { // gives up after the flush limit: nobody reads
		t.Fatal(err)
	}
	if err := wait(t, done, "the notification"); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestWriter_MessageLargerThanTheQueueGoesOut(t *testing.T) {
	p := connect(t, echo, WithQueue(10, 64<<20))
	go func() { _ = p.conn.Notify("u", kib) }()
	if got := p.line(); len(got) < 970 {
		t.Errorf("got %s", got)
	}
}

func TestWriter_HardLimitPausesReading(t *testing.T) {
	const answer, hard, n = 200 << 10, 300 << 10, 20
	var p *peer
	ready, most, full := make(chan struct{}), make(chan int, n), make(chan struct{}, n)
	p = connect(t, funcs{request: func(_ context.Context, r *Request) {
		<-ready
		r.Reply(strings.Repeat("x", answer))
		p.conn.w.mu.Lock()
		defer p.conn.w.mu.Unlock()
		most <- p.conn.w.waiting()
		if p.conn.w.waiting() >= hard {
			full <- struct{}{}
		}
	}}, WithQueue(1<<10, hard))
	close(ready)
	for i := range n {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x"}`+"\n", i))
	}
	wait(t, full, "the limit")
	for range n {
		if got := p.line(); len(got) < answer {
			t.Errorf("got %.100s", got)
		}
		// One request may have been read before the limit was reached, and one more was in hand.
		if w := wait(t, most, "a request"); w > hard+2*answer+1000 {
			t.Errorf("%d bytes waited although reading pauses at %d", w, hard)
		}
	}
}

func TestWriter_CalmUntilTheHardLimit(t *testing.T) {
	w := newWriter(&strings.Builder{}, limits{hard: 10})
	if err := w.put([]byte("123456789")); err != nil {
		t.Fatal(err)
	}
	if err := w.calm(expired(t)); err != nil {
		t.Errorf("below the limit: %v", err)
	}
	if err := w.put([]byte("0")); err != nil {
		t.Fatal(err)
	}
	if err := w.calm(expired(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("at the limit: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- w.loop() }()
	if err := w.calm(t.Context()); err != nil {
		t.Errorf("after writing: %v", err)
	}
	w.end(ErrClosed)
	if err := wait(t, done, "the end of the writer"); err != nil {
		t.Error(err)
	}
}

func TestWriter_FlushWaitsForWhatWasQueued(t *testing.T) {
	p := connect(t, echo)
	if err := p.conn.Notify("big", strings.Repeat("x", bigLine)); err != nil {
		t.Fatal(err)
	}
	if err := p.conn.Flush(expired(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("flushed although nobody reads: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- p.conn.Flush(t.Context()) }()
	p.line()
	if err := wait(t, done, "the flush"); err != nil {
		t.Error(err)
	}
}

// counter counts writes and lets each wait for a token.
type counter struct {
	tokens chan struct{}
	writes [][]byte
}

func (c *counter) Write(b []byte) (int, error) {
	<-c.tokens
	c.writes = append(c.writes, append([]byte(nil), b...))
	return len(b), nil
}

func TestWriter_WhatGathersGoesOutInOneWrite(t *testing.T) {
	out := &counter{tokens: make(chan struct{})}
	w := newWriter(out, defaultLimits)
	ended := make(chan error, 1)
	go func() { ended <- w.loop() }()
	if err := w.put([]byte("0\n")); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	out.tokens <- struct{}{} // the first line is being written, or about to be with those that follow
	for i := range 1000 {
		fmt.Fprintf(&want, "%d\n", i+1)
		if err := w.put(fmt.Appendf(nil, "%d\n", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	close(out.tokens)
	if err := w.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.end(ErrClosed)
	if err := wait(t, ended, "the end of the writer"); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, b := range out.writes {
		got.Write(b)
	}
	if got.String() != "0\n"+want.String() {
		t.Error("lines were lost or out of order")
	}
	if len(out.writes) > 900 {
		t.Errorf("%d writes for 1001 lines", len(out.writes))
	}
}
