package rpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// FuzzClassify checks classify against encoding/json, which it does not use to take messages apart.
func FuzzClassify(f *testing.F) {
	for _, c := range inputs {
		if len(c.in) < 1000 {
			f.Add([]byte(c.in))
		}
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"\\\"","params":{"a":"}\\","b":["]\"",{}]} }`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m := classify(line)
		trimmed := bytes.Trim(bytes.TrimPrefix(line, bom), space)
		var members map[string]json.RawMessage
		isObject := json.Unmarshal(trimmed, &members) == nil && members != nil
		switch m.kind {
		case refused:
			if m.refusal == nil || m.refusal.Message == "" || strings.ContainsAny(m.refusal.Message, "\r\n") || !json.Valid(m.id) {
				t.Errorf("refused with %+v and id %q", m.refusal, m.id)
			}
			if m.refusal.Code == CodeParseError && json.Valid(trimmed) && utf8.Valid(trimmed) {
				t.Error("valid JSON is called malformed")
			}
		case request, notification, response:
			if !isObject {
				t.Fatalf("no object passes as a message: %q", line)
			}
			kept := map[string]json.RawMessage{"id": m.id, "params": m.params}
			if m.kind == response {
				kept = map[string]json.RawMessage{"id": m.id, "result": m.result, "error": m.err}
			}
			for name, got := range kept {
				if want, ok := members[name]; ok != (got != nil) || !bytes.Equal(got, want) {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			var method string
			if m.kind != response && (json.Unmarshal(members["method"], &method) != nil || method != m.method) {
				t.Errorf("method %q, want %q", m.method, members["method"])
			}
		}
	})
}

// FuzzLines checks the line reader against bufio.Scanner, whatever pieces the input comes in.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbb\n\n"+strings.Repeat("c", 200)+"\nd"), uint8(20))
	f.Add([]byte(strings.Repeat("c", 70_000)+"\nd\n"), uint8(255))
	f.Fuzz(func(t *testing.T, input []byte, limit uint8) {
		type result struct {
			line string
			long bool
		}
		var want []result
		sc := bufio.NewScanner(bytes.NewReader(input))
		sc.Buffer(nil, len(input)+2)
		sc.Split(func(data []byte, atEOF bool) (int, []byte, error) { // unlike ScanLines, keeps CR
			if i := bytes.IndexByte(data, '\n'); i >= 0 {
				return i + 1, data[:i], nil
			}
			if atEOF && len(data) > 0 {
				return len(data), data, nil
			}
			return 0, nil, nil
		})
		for sc.Scan() {
			r := result{line: sc.Text()}
			if len(r.line) > int(limit) {
				r = result{long: true}
			}
			want = append(want, r)
		}
		for name, in := range map[string]io.Reader{"whole": bytes.NewReader(input), "pieces": iotest.HalfReader(bytes.NewReader(input)),
			"end with data": iotest.DataErrReader(bytes.NewReader(input))} {
			l := newLines(in, int(limit))
			var got []result
			for {
				line, err := l.next()
				if errors.Is(err, errTooLong) {
					got = append(got, result{long: true})
					continue
				}
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Fatal(err)
					}
					break
				}
				got = append(got, result{line: string(line)})
			}
			if len(got) != len(want) {
				t.Fatalf("%s: %d lines, want %d", name, len(got), len(want))
			}
			for i := range got {
				if got[i] != want[i] {
					t.Errorf("%s: line %d is %+v, want %+v", name, i, got[i], want[i])
				}
			}
		}
	})
}

func TestLines_ErrorOfTheReaderEnds(t *testing.T) {
	l := newLines(io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(io.ErrClosedPipe)), 10)
	if line, err := l.next(); string(line) != "a" || err != nil {
		t.Errorf("got %q, %v", line, err)
	}
	if _, err := l.next(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

// oneLong is an endless line that counts what is read of it.
type oneLong struct{ left int }

func (o *oneLong) Read(b []byte) (int, error) {
	if o.left == 0 {
		return 0, io.EOF
	}
	n := min(len(b), o.left)
	for i := range b[:n] {
		b[i] = 'x'
	}
	o.left -= n
	return n, nil
}

func TestLines_LongLineIsNotStored(t *testing.T) {
	const limit = 1 << 20
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			l := newLines(&oneLong{left: 64 << 20}, limit)
			if _, err := l.next(); !errors.Is(err, errTooLong) {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 8*limit {
		t.Errorf("%d bytes allocated for a line that may have %d", allocated, limit)
	}
}
