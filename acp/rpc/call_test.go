package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// ask calls in the background and returns the id on the wire.
func (p *peer) ask(ctx context.Context, result any) (id string, done chan error) {
	p.t.Helper()
	done = make(chan error, 1)
	go func() { done <- p.conn.Call(ctx, "ask", map[string]string{"q": "<?>"}, result) }()
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Q string }
	}
	line := p.line()
	if err := json.Unmarshal([]byte(line), &m); err != nil || m.Method != "ask" || m.Params.Q != "<?>" {
		p.t.Fatalf("a call went out as %s", line)
	}
	return string(m.ID), done
}

func TestCall_Answers(t *testing.T) {
	cases := []struct{ name, answer, want, err string }{
		{"result", `"result":{"a":1}`, `{"a":1}`, ""},
		{"null result", `"result":null`, `null`, ""},
		{"error", `"error":{"code":-32000,"message":"no","data":{"k":1}}`, "", "no (code -32000)"},
		{"error and null result", `"result":null,"error":{"code":1,"message":"no"}`, "", "no (code 1)"},
		{"null error beside a result", `"result":2,"error":null`, "2", ""},
		{"error that is a text", `"error":"no"`, "", "cannot be read"},
		{"error without a code", `"error":{"message":"no"}`, "", "cannot be read"},
		{"error with a text for a code", `"error":{"code":"x"}`, "", "cannot be read"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := connect(t, echo)
			var got json.RawMessage
			id, done := p.ask(t.Context(), &got)
			p.send(`{"jsonrpc":"2.0","id":` + id + `,` + c.answer + "}\n")
			err := wait(t, done, "the answer")
			if c.err == "" && (err != nil || string(got) != c.want) {
				t.Errorf("got %s, %v", got, err)
			}
			var e *Error
			if c.err != "" && (!errors.As(err, &e) || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %v", err)
			}
			if c.name == "error" && fmt.Sprintf("%s", e.Data) != `{"k":1}` {
				t.Errorf("data %s", e.Data)
			}
		})
	}
}

func TestCall_IDsAreIntegersAndFloatsNameThem(t *testing.T) {
	p := connect(t, echo)
	id, done := p.ask(t.Context(), nil)
	if id != "1" {
		t.Errorf("the first id is %s", id)
	}
	p.send(`{"id":1.0,"result":1}` + "\n")
	if err := wait(t, done, "the answer"); err != nil {
		t.Error(err)
	}
}

func TestCall_ManyAtOnceGetTheirOwnAnswers(t *testing.T) {
	p := connect(t, echo)
	const n = 50
	done := make(chan error, n)
	for i := range n {
		go func() {
			var got int
			err := p.conn.Call(t.Context(), "ask", i, &got)
			if err == nil && got != i {
				err = fmt.Errorf("call %d got the answer %d", i, got)
			}
			done <- err
		}()
	}
	for range n {
		var m struct{ ID, Params int }
		if err := json.Unmarshal([]byte(p.line()), &m); err != nil {
			t.Fatal(err)
		}
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%d}`+"\n", m.ID, m.Params))
	}
	for range n {
		if err := wait(t, done, "an answer"); err != nil {
			t.Error(err)
		}
	}
}

func TestCall_EndOfContextTellsThePeerAndForgets(t *testing.T) {
	p := connect(t, echo)
	ctx, cancel := context.WithCancelCause(t.Context())
	id, done := p.ask(ctx, nil)
	why := errors.New("not wanted any more")
	cancel(why)
	if err := wait(t, done, "the call"); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if got, want := p.line(), `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":`+id+`}}`; got != want {
		t.Errorf("got %s", got)
	}
	p.send(`{"jsonrpc":"2.0","id":` + id + `,"result":"late"}` + "\n") // ignored
	p.send(`{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}` + "\n")
	if got := p.line(); got != `{"jsonrpc":"2.0","id":1,"result":[1]}` {
		t.Errorf("got %s", got)
	}
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	if len(p.conn.calls) != 0 || len(p.conn.forsaken) != 0 {
		t.Errorf("%d calls and %d forsaken ones are kept", len(p.conn.calls), len(p.conn.forsaken))
	}
}

func TestCall_EndedContextSendsNothing(t *testing.T) {
	p := connect(t, echo)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.conn.Call(ctx, "ask", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := p.rest(); len(got) != 0 {
		t.Errorf("sent %q", got)
	}
}

func TestCall_EndOfConnection(t *testing.T) {
	p := connect(t, echo)
	_, done := p.ask(t.Context(), nil)
	p.rest()
	if err := wait(t, done, "the call"); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestCall_UnreadableResult(t *testing.T) {
	p := connect(t, echo)
	var n int
	id, done := p.ask(t.Context(), &n)
	p.send(`{"jsonrpc":"2.0","id":` + id + `,"result":"text"}` + "\n")
	if err := wait(t, done, "the answer"); err == nil || !strings.Contains(err.Error(), "read the answer to ask") {
		t.Errorf("got %v", err)
	}
}

func TestCall_ParametersThatCannotBeEncoded(t *testing.T) {
	p := connect(t, echo)
	if err := p.conn.Call(t.Context(), "ask", func() {}, nil); err == nil {
		t.Error("no error")
	}
	if err := p.conn.Notify("n", func() {}); err == nil {
		t.Error("no error")
	}
}
