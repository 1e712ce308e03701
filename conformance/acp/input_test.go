package acp_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

const mib = 1 << 20

// padded is a request of exactly size bytes.
func padded(id string, size int) []byte {
	head := `{"jsonrpc":"2.0","id":` + id + `,"method":"session/list","params":{"_meta":{"pad":"`
	const tail = `"}}}`
	return []byte(head + strings.Repeat("x", size-len(head)-len(tail)) + tail)
}

// Nothing that a client sends ends the connection: each bad line gets one answer, or none where none is due, and the next request works.
func TestInput_BadLinesAreAnswered(t *testing.T) {
	const none = 0
	for name, c := range map[string]struct {
		line string
		code int
		id   string
	}{
		"half an object":              {`{"jsonrpc":"2.0","id":1,`, -32700, "null"},
		"no JSON":                     {`Content-Length: 20`, -32700, "null"},
		"two objects":                 {`{"jsonrpc":"2.0","method":"x"}{}`, -32700, "null"},
		"invalid UTF-8":               {"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"session/list\",\"params\":{\"cwd\":\"\xff\xfe\"}}", -32700, "null"},
		"bytes":                       {"\x00\x01\x02\xfe", -32700, "null"},
		"an empty array":              {`[]`, -32600, "null"},
		"a batch":                     {`[{"jsonrpc":"2.0","id":1,"method":"session/list"},{"jsonrpc":"2.0","id":2,"method":"session/list"}]`, -32600, "null"},
		"a batch of notifications":    {`[{"jsonrpc":"2.0","method":"session/cancel"}]`, none, ""},
		"a number":                    {`17`, -32600, "null"},
		"text":                        {`"initialize"`, -32600, "null"},
		"null":                        {`null`, -32600, "null"},
		"an empty object":             {`{}`, -32600, "null"},
		"no method":                   {`{"jsonrpc":"2.0","id":"m"}`, -32600, `"m"`},
		"a method that is a number":   {`{"jsonrpc":"2.0","id":"m","method":4}`, -32600, `"m"`},
		"another version":             {`{"jsonrpc":"1.0","id":"v","method":"session/list"}`, -32600, `"v"`},
		"an id that is an object":     {`{"jsonrpc":"2.0","id":{},"method":"session/list"}`, -32600, "null"},
		"a member twice":              {`{"jsonrpc":"2.0","id":1,"id":2,"method":"session/list"}`, -32600, "null"},
		"too deep":                    {`{"jsonrpc":"2.0","id":1,"method":"x","params":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, -32600, "null"},
		"blank":                       {" \t ", none, ""},
		"an answer nobody waits for":  {`{"jsonrpc":"2.0","id":4711,"result":{}}`, none, ""},
		"an answer with a strange id": {`{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"y"}}`, none, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newWorld(t, nil).start()
			before := len(a.Log())
			a.SendLine([]byte(c.line))
			a.Must("session/list", map[string]any{}, nil)
			got := a.Log()[before:]
			got = got[:len(got)-1]
			switch {
			case c.code == none && len(got) != 0:
				t.Errorf("answered %s", got[0].Raw)
			case c.code != none && (len(got) != 1 || got[0].Error == nil || got[0].Error.Code != c.code || !bytes.Contains(got[0].Raw, []byte(`"id":`+c.id+`,`))):
				t.Errorf("got %s, want code %d with id %s", sent(a), c.code, c.id)
			}
		})
	}
}

// A message of 32 MiB is taken. A longer one is refused, and the line behind it is read.
func TestInput_LongLines(t *testing.T) {
	a := newWorld(t, nil).start()
	a.SendLine(padded(`"long"`, 32*mib))
	message(t, a, `"long"`, `"sessions"`)
	for _, size := range []int{32*mib + 1, 40 * mib} {
		before := len(a.Log())
		a.SendLine(padded(`"longer"`, size))
		a.Must("session/list", map[string]any{}, nil)
		got := a.Log()[before:]
		if len(got) != 2 || got[0].Error == nil || got[0].Error.Code != -32600 || !bytes.Contains(got[0].Raw, []byte(`"id":null`)) {
			t.Errorf("a line of %d bytes: %s", size, sent(a))
		}
	}
}

// A large prompt reaches the model whole.
func TestInput_LargePrompt(t *testing.T) {
	w := newWorld(t, nil)
	a := w.start()
	text := strings.Repeat("words and \"quotes\" \u00e9\u4e16\n", mib/8) + "the end"
	if got := stop(t, a, a.Prompt(a.NewSession(w.work), text)); got != "end_turn" {
		t.Errorf("stopped with %s", got)
	}
	if got := w.requests(1)[0].LastUser(); got != text {
		t.Errorf("the model got %d of %d bytes", len(got), len(text))
	}
}

// An id belongs to one request until that is answered; then it is free.
func TestInput_DuplicateID(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "begun "}, fakemodel.Gate(gate), {Text: "ended"}}}
	})
	a := w.start()
	session := a.NewSession(w.work)
	prompt := []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":"same","method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"hi"}]}}`, session))
	a.SendLine(prompt)
	message(t, a, "begun")
	a.SendLine(prompt)
	if m := message(t, a, `"same"`, `"error"`); m.Error.Code != -32600 {
		t.Errorf("got %s", m.Raw)
	}
	close(gate)
	if m := message(t, a, `"same"`, `"result"`); !bytes.Contains(m.Result, []byte("end_turn")) {
		t.Errorf("got %s", m.Raw)
	}
	a.SendLine([]byte(`{"jsonrpc":"2.0","id":"same","method":"session/list","params":{}}`))
	message(t, a, `"same"`, `"sessions"`)
	if n := len(w.model.Requests()); n != 1 {
		t.Errorf("the refused prompt ran: %d requests", n)
	}
}

// Some clients end a line with CR LF, and the last one not at all.
func TestInput_LineEnds(t *testing.T) {
	w := newWorld(t, nil)
	a := w.raw(nil)
	a.SendLine([]byte("{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\r"))
	message(t, a, `"i"`, `"protocolVersion":1`)
	a.SendLine([]byte("\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"session/list\"}"))
	if _, ok := a.Find(func(m harness.Message) bool { return string(m.ID) == `"b"` && m.Error == nil }); !ok {
		t.Errorf("got %s", sent(a))
	}
}
