package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/rs/zerolog"
)

// Whatever comes, each line is a piece of it and none is longer than allowed, however the bytes are cut.
func FuzzLines(f *testing.F) {
	f.Add([]byte("{\"id\":1}\nnoise\r\n\n{"), 20)
	f.Add([]byte(strings.Repeat("x", 200)), 100)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		limit = max(1, min(limit, 1000))
		a, c := newLines(bytes.NewReader(b), limit), newLines(iotest.OneByteReader(bytes.NewReader(b)), limit)
		rest := b
		for {
			line, err := a.next()
			other, oerr := c.next()
			if !bytes.Equal(line, other) || !errors.Is(oerr, err) {
				t.Fatalf("%q, %v and byte by byte %q, %v", line, err, other, oerr)
			}
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, errTooLong) {
					t.Fatal(err)
				}
				return
			}
			at := bytes.Index(rest, line)
			if len(line) > limit+1 || at < 0 || bytes.ContainsRune(line, '\n') {
				t.Fatalf("line %q of %q", line, rest)
			}
			rest = rest[at+len(line):]
			open(line)
		}
	})
}

func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte(`{"id":1,"result":{"content":[{"type":"text","text":"é"},{"type":"image","data":"AAAA"}],"structuredContent":[1]}}`), 50)
	f.Add([]byte(`{"id":1,"error":{"code":-1,"message":"m"}}`), 1)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		limit = max(1, min(limit, 10000))
		a := readAnswer(b, limit)
		if a.Kind == "" || a.Text == "" && a.Kind != KindOK && a.Kind != KindToolError || !utf8.ValidString(a.Text) || len(a.Text) > limit+100 || len(a.User) > limit+100 {
			t.Fatalf("%+v", a)
		}
	})
}

// A definition becomes a tool that every provider takes, or a reason.
func FuzzRebuild(f *testing.F) {
	for _, s := range []string{`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"anyOf":[{"$ref":"#"},true]}}}`,
		`{"allOf":[{"$ref":"#/allOf/0"}],"oneOf":[{"required":["a"]}],"properties":{"é":{"type":["null","x"],"items":[1]}}}`,
		`{"$ref":"#a","$defs":{"x":{"$anchor":"a","required":["é"]}}}`} {
		f.Add("a.b", s, `{"é":1}`)
	}
	f.Fuzz(func(t *testing.T, name, schema, args string) {
		def := `{"name":` + string(canonical(name)) + `,"inputSchema":` + schema + `}`
		tool, err := Rebuild("server", json.RawMessage(def))
		if err != nil {
			return
		}
		var v struct {
			Type       string
			Properties map[string]json.RawMessage
		}
		if json.Unmarshal(tool.Schema, &v) != nil || v.Type != "object" || v.Properties == nil || !legalName.MatchString(tool.Exposed) {
			t.Fatalf("%s becomes %q %s", def, tool.Exposed, tool.Schema)
		}
		for k := range v.Properties {
			if !legalKey.MatchString(k) {
				t.Fatalf("key %q of %s", k, tool.Schema)
			}
		}
		got, err := tool.Arguments(json.RawMessage(args))
		if err == nil && !json.Valid(got) || err != nil && !utf8.ValidString(err.Error()) {
			t.Fatalf("%s, %v", got, err)
		}
	})
}

// Nothing that a server says upsets the reader, and a call is answered exactly if its answer was kept.
func FuzzTake(f *testing.F) {
	for _, line := range []string{`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"id":"1","result":{}}`, `{"id":2,"result":{"tools":[]}}`, `{"id":9,"method":"ping"}`,
		`{"method":"notifications/progress","params":{"progressToken":"T","progress":1e400}}`, `{"method":"notifications/tools/list_changed"}`, "noise"} {
		f.Add([]byte(line + "\n" + line))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := New(Config{Name: "s"}, Options{Log: zerolog.Nop()})
		fed, feed := io.Pipe()
		c := &conn{s: s, open: map[string]*exchange{}, broken: make(chan struct{}), stale: make(chan struct{}, 1), replies: make(chan []byte, 4), feed: feed}
		x := newExchange()
		x.ticket, x.token = "T", "T"
		c.register(x, "1", "tools/call")
		c.register(newExchange(), "2", "tools/list")
		passed := make(chan []byte)
		go func() {
			all, _ := io.ReadAll(fed) // a pipe of ours ends without an error
			passed <- all
		}()
		for line := range bytes.SplitSeq(b, []byte("\n")) {
			c.take(line)
		}
		_ = feed.Close() // nor does this fail
		for line := range bytes.Lines(<-passed) {
			if !json.Valid(line) {
				t.Fatalf("the library is given %q", line)
			}
		}
		if isClosed(x.done) != (x.raw != nil) {
			t.Fatalf("answered %v with %q", isClosed(x.done), x.raw)
		}
	})
}
