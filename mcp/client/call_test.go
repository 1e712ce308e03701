//go:build linux

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestCall_Answered(t *testing.T) {
	w := start(t, nil)
	o := w.act(map[string]any{"do": "ok", "text": "grüße"})
	w.wantText(o, KindOK, "grüße")
	if o.Era != "legacy" || o.Protocol != "2025-11-25" || o.RPCID == "" || o.Written == 0 || w.sent() != 1 {
		t.Errorf("outcome %+v, sent %d", o, w.sent())
	}
	if o.Answer.Digest == "" || !json.Valid(o.Answer.Raw) || !strings.Contains(string(o.Answer.Raw), `"id":`+o.RPCID) {
		t.Errorf("the answer was not kept as it came: %s", o.Answer.Raw)
	}
}

// A server that dies in a call fails the call at once with its status, and the next call has a new server. Nothing is repeated.
func TestCall_ExitInMidCall(t *testing.T) {
	for _, do := range []string{"exit", "half"} {
		t.Run(do, func(t *testing.T) {
			w := start(t, nil)
			w.wantUnknown(w.act(map[string]any{"do": do, "n": 7}), "exited (status 7) before it answered")
			w.wantText(w.act(map[string]any{"do": "ok"}), KindOK, "")
			if w.sent() != 2 || w.State().Generation != 2 {
				t.Errorf("sent %d, state %+v", w.sent(), w.State())
			}
		})
	}
}

// What was written before the end is still read.
func TestCall_AnswerRightBeforeTheEnd(t *testing.T) {
	w := start(t, nil)
	for i := range 4 {
		w.wantText(w.act(map[string]any{"do": "answer_exit"}, string(rune('a'+i))), KindOK, "last words")
		eventually(t, "the end is noticed", func() bool { return w.State().Phase == BackingOff })
	}
}

func TestCall_OutputClosed(t *testing.T) {
	w := start(t, nil)
	w.wantUnknown(w.act(map[string]any{"do": "close"}), "the server closed its output before it answered")
}

func TestCall_NoAnswer(t *testing.T) {
	quick := func(c *Config, o *Options) { o.Limits.Idle = 300 * time.Millisecond }
	w := start(t, nil, quick)
	w.wantUnknown(w.act(map[string]any{"do": "hang"}), "no answer and no progress within 300ms")
	eventually(t, "the server is told", func() bool { _, err := os.Stat(w.log + ".cancelled"); return err == nil })
	w.wantText(w.act(map[string]any{"do": "ok"}), KindOK, "")
	if w.State().Generation != 1 {
		t.Error("a slow call cost the server its life")
	}
}

// Progress keeps a call alive, but not for ever.
func TestCall_ProgressAndCap(t *testing.T) {
	w := start(t, nil, func(c *Config, o *Options) { o.Limits.Idle = 500 * time.Millisecond })
	var seen []string
	o := w.actWith(t.Context(), func(s string) { seen = append(seen, s) }, map[string]any{"do": "progress", "n": 60})
	w.wantText(o, KindOK, "all done")
	if len(seen) == 0 || !strings.HasPrefix(seen[0], "step ") {
		t.Errorf("progress %q", seen)
	}
	w = start(t, nil, func(c *Config, o *Options) { o.Limits.Idle, o.Limits.Call = 500*time.Millisecond, 700*time.Millisecond })
	w.wantUnknown(w.act(map[string]any{"do": "progress", "n": 500}), "no answer within 700ms")
}

// A cancel is told to the server; an answer within the grace counts, a later one comes as evidence.
func TestCall_Cancelled(t *testing.T) {
	w := start(t, nil)
	cancelIn := func(ticket string, n int) Outcome {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		before := w.sent()
		go func() {
			eventually(t, "the call arrives", func() bool { return w.sent() > before })
			cancel()
		}()
		return w.actWith(ctx, nil, map[string]any{"do": "late", "n": n}, ticket)
	}
	w.wantText(cancelIn("in time", 10), KindOK, "too late")
	w.wantUnknown(cancelIn("late", 1000), "cancelled")
	eventually(t, "the late answer", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.late["late"].Text == "too late"
	})
	if len(w.late) != 1 || w.sent() != 2 {
		t.Errorf("late %v, sent %d", w.late, w.sent())
	}
}

// An answered call is over: its server is not told to cancel it.
func TestCall_NoCancelAfterTheAnswer(t *testing.T) {
	w := start(t, nil)
	for i := range 300 {
		w.wantText(w.act(map[string]any{"do": "ok"}, fmt.Sprint(i)), KindOK, "")
	}
	if b, err := os.ReadFile(w.log + ".cancelled"); err == nil {
		t.Errorf("%d cancels", strings.Count(string(b), "\n"))
	}
}

// What cannot be written at all is said at once, with the proof that nothing has left.
func TestCall_NotJSON(t *testing.T) {
	w := start(t, nil)
	sl, err := w.Acquire(soon(t), w.tool("act"))
	if err != nil {
		t.Fatal(err)
	}
	defer sl.Release()
	o := sl.Call(t.Context(), "T", json.RawMessage(`{"do"`), nil)
	w.wantUnknown(o, "nothing of it was written")
	if o.Offered || w.sent() != 0 {
		t.Errorf("%+v", o)
	}
}

// The server is killed while a message is half in its pipe.
func TestCall_KilledInTheWrite(t *testing.T) {
	w := start(t, nil, func(c *Config, o *Options) { o.Limits.Write = limit })
	w.wantText(w.act(map[string]any{"do": "deaf"}), KindOK, "")
	pid := w.State().PID
	go func() {
		w.offered("stuck")
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}()
	o := w.act(map[string]any{"do": "ok", "text": strings.Repeat("x", 1<<20)}, "stuck")
	w.wantUnknown(o, "exited (killed by SIGKILL)")
	if !o.Offered || o.Written > 1<<20 || w.sent() != 1 {
		t.Errorf("offered %v, written %d, sent %d", o.Offered, o.Written, w.sent())
	}
}

// Many calls of all kinds at once, over several lives of the server: none arrives twice, an answer comes from a call that arrived, and what
// was not offered never arrives.
func TestCall_Storm(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := start(t, nil, func(_ *Config, o *Options) {
		o.Limits.Starts, o.Limits.Idle, o.Limits.MaxBackoff = 1000, 200*time.Millisecond, 20*time.Millisecond
	})
	var mu sync.Mutex
	outcomes := map[string]Outcome{}
	var wg sync.WaitGroup
	for g := range 12 {
		random := rand.New(rand.NewPCG(seed, uint64(g)))
		wg.Go(func() {
			for i := range 25 {
				ticket := fmt.Sprintf("%d-%d", g, i)
				dos := []string{"ok", "ok", "ok", "ok", "ok", "ok", "hang", "sleep", "late", "exit", "answer_exit", "string_id", "twice"}
				args, _ := json.Marshal(map[string]any{"do": dos[random.IntN(len(dos))], "n": random.IntN(50), "text": ticket})
				sl, err := w.Acquire(soon(t), w.tool("act"))
				if err != nil {
					t.Error(err)
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(200))*time.Millisecond)
				o := sl.Call(ctx, ticket, args, nil)
				sl.Release()
				cancel()
				mu.Lock()
				outcomes[ticket] = o
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	w.Close()
	b, err := os.ReadFile(w.log)
	if err != nil {
		t.Fatal(err)
	}
	arrived := map[string]int{}
	for line := range strings.Lines(string(b)) {
		var call struct{ Text string }
		if err := json.Unmarshal([]byte(line), &call); err != nil {
			t.Fatal(err)
		}
		arrived[call.Text]++
	}
	count := map[string]int{}
	for ticket, o := range outcomes {
		_, late := w.late[ticket]
		switch n := arrived[ticket]; {
		case n > 1:
			t.Errorf("%s arrived %d times", ticket, n)
		case n == 0 && (o.Answered || late):
			t.Errorf("%s was answered and never arrived: %+v", ticket, o)
		case n == 1 && !o.Offered:
			t.Errorf("%s arrived and was never offered: %+v", ticket, o)
		case o.Answered && late:
			t.Errorf("%s was answered twice", ticket)
		}
		count[fmt.Sprintf("offered %v, answered %v, late %v", o.Offered, o.Answered, late)]++
	}
	t.Logf("%v over %d lives", count, w.state.Generation)
	if len(outcomes) != 300 || count["offered true, answered true, late false"] < 30 || w.state.Generation < 3 {
		t.Error("the storm was a breeze")
	}
}

func TestCall_CancelledBefore(t *testing.T) {
	w := start(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.wantUnknown(w.actWith(ctx, nil, map[string]any{"do": "ok"}), "before it was written")
	w.wantText(w.act(map[string]any{"do": "ok"}), KindOK, "")
	if w.sent() != 1 {
		t.Errorf("sent %d", w.sent())
	}
}

// One ticket is one send, whoever asks for another.
func TestCall_TicketOnce(t *testing.T) {
	w := start(t, nil)
	w.wantText(w.act(map[string]any{"do": "ok"}, "T"), KindOK, "")
	w.wantUnknown(w.act(map[string]any{"do": "ok"}, "T"), "without an unused ticket")
	w.wantUnknown(w.act(map[string]any{"do": "ok"}, ""), "without an unused ticket")
	// The library itself, as its loop for required input would do it.
	if _, err := w.conn.lib.CallTool(t.Context(), callRequest("act")); !errors.Is(err, errNoTicket) {
		t.Errorf("without a ticket: %v", err)
	}
	// And past the library.
	line := []byte(`{"jsonrpc":"2.0","id":77,"params":{"name":"act","arguments":{"do":"ok"}},"method":"tools/call"}` + "\n")
	if n, err := w.conn.out.Write(line); n != 0 || !errors.Is(err, errNoTicket) {
		t.Errorf("raw: %d, %v", n, err)
	}
	w.wantText(w.act(map[string]any{"do": "ok"}, "U"), KindOK, "")
	if w.sent() != 2 {
		t.Errorf("sent %d", w.sent())
	}
}

// A server that wants input is answered by nobody, on either protocol.
func TestCall_InputRequired(t *testing.T) {
	for _, discover := range []string{"", "modern"} {
		for name, result := range map[string]string{
			"no requests": `{"resultType":"input_required"}`,
			"requests":    `{"resultType":"input_required","requestState":"s","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"?"}}}}`,
		} {
			t.Run(discover+" "+name, func(t *testing.T) {
				w := start(t, plan{"discover": discover})
				w.wantText(w.act(map[string]any{"do": "result", "result": json.RawMessage(result)}), KindInputRequired, "input")
				w.wantText(w.act(map[string]any{"do": "ok"}), KindOK, "")
				if w.sent() != 2 {
					t.Errorf("sent %d", w.sent())
				}
			})
		}
	}
}

func TestCall_OtherIDs(t *testing.T) {
	w := start(t, nil, func(c *Config, o *Options) { o.Limits.Idle = 500 * time.Millisecond })
	w.wantUnknown(w.act(map[string]any{"do": "string_id"}), "an id of another type")
	w.wantUnknown(w.act(map[string]any{"do": "wrong_id"}), "no answer and no progress")
	w.wantText(w.act(map[string]any{"do": "twice"}), KindOK, "one")
	w.wantText(w.act(map[string]any{"do": "ok"}), KindOK, "")
	if w.State().Generation != 1 || len(w.late) != 0 {
		t.Errorf("state %+v, late %v", w.State(), w.late)
	}
}

// An answer over the limit ends the process: nobody can find the next message.
func TestCall_TooLarge(t *testing.T) {
	w := start(t, nil)
	w.wantUnknown(w.act(map[string]any{"do": "big", "n": 50 << 20}), "a message of more than 16777216 bytes")
	w.wantText(w.act(map[string]any{"do": "ok"}), KindOK, "")
	o := w.act(map[string]any{"do": "big", "n": 5 << 20}, "smaller")
	w.wantText(o, KindOK, "bytes of the answer are left out here")
	if len(o.Answer.Raw) < 5<<20 || len(o.Answer.Text) > 110_000 || w.sent() != 3 || w.State().Generation != 2 {
		t.Errorf("raw %d, text %d, sent %d, state %+v", len(o.Answer.Raw), len(o.Answer.Text), w.sent(), w.State())
	}
}

// A full pipe holds nobody up: not the call, and not the others.
func TestCall_ServerStopsReading(t *testing.T) {
	w := start(t, nil, func(c *Config, o *Options) { o.Limits.Write = 500 * time.Millisecond })
	w.wantText(w.act(map[string]any{"do": "deaf"}), KindOK, "")
	o := w.act(map[string]any{"do": "ok", "text": strings.Repeat("x", 1<<20)})
	w.wantUnknown(o, "the server stopped reading")
	if o.Written == 0 || o.Written > 1<<20 {
		t.Errorf("written %d", o.Written)
	}
	w.wantText(w.act(map[string]any{"do": "ok", "text": strings.Repeat("x", 5<<20)}, "after"), KindOK, "")
	if w.sent() != 2 { // deaf and the last
		t.Errorf("sent %d", w.sent())
	}
}

// A cancel returns although the write does not.
func TestCall_CancelledInTheWrite(t *testing.T) {
	w := start(t, nil, func(c *Config, o *Options) { o.Limits.Write = limit })
	w.wantText(w.act(map[string]any{"do": "deaf"}), KindOK, "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		w.offered("stuck")
		cancel()
	}()
	w.wantUnknown(w.actWith(ctx, nil, map[string]any{"do": "ok", "text": strings.Repeat("x", 1<<20)}, "stuck"), "cancelled")
}

// offered waits until the first byte of a call may have left.
func (w *world) offered(ticket string) {
	w.Server.mu.Lock()
	c := w.conn
	w.Server.mu.Unlock()
	eventually(w.t, "the write has begun", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, x := range c.open {
			if x.ticket == ticket && x.offered {
				return true
			}
		}
		return false
	})
}

func TestCall_FloodOfNotifications(t *testing.T) {
	w := start(t, nil)
	w.wantText(w.act(map[string]any{"do": "flood", "n": 20000}), KindOK, "flooded")
	w.wantText(w.act(map[string]any{"do": "ok"}), KindOK, "")
}

func TestCall_ServerAsks(t *testing.T) {
	w := start(t, nil)
	for _, method := range []string{"ping", "roots/list", "sampling/createMessage"} {
		w.wantText(w.act(map[string]any{"do": "ask", "n": 2000, "text": method}, method), KindOK, "asked")
	}
	w.wantText(w.act(map[string]any{"do": "ok"}), KindOK, "")
}

func TestCall_Stderr(t *testing.T) {
	w := start(t, plan{"stderr": 1 << 20})
	w.wantText(w.act(map[string]any{"do": "stderr", "n": 1 << 20}), KindOK, "written")
}

func TestCall_ReleaseTwice(t *testing.T) {
	w := start(t, nil, func(c *Config, o *Options) { o.Limits.InFlight = 1 })
	sl, err := w.Acquire(soon(t), w.tool("act"))
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := w.Acquire(short, w.tool("act")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second place: %v", err)
	}
	sl.Release()
	sl.Release()
	w.wantText(w.act(map[string]any{"do": "ok"}), KindOK, "")
}

func TestCall_ServerClosed(t *testing.T) {
	w := start(t, nil)
	sl, err := w.Acquire(soon(t), w.tool("act"))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		eventually(t, "the call arrives", func() bool { return w.sent() == 1 })
		w.Close()
	}()
	o := sl.Call(t.Context(), "T", json.RawMessage(`{"do":"hang"}`), nil)
	sl.Release()
	w.wantUnknown(o, "the server was closed")
	if _, err := w.Acquire(soon(t), w.tool("act")); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	w.Close()
}
