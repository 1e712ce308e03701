package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// refusal is the answer to what is no message.
func refusal(id string, code int) string { return fmt.Sprintf("id %s code %d", id, code) }

// answered is the answer of the echo handler.
func answered(id string) string { return "id " + id + " result" }

// brief shortens an answer to what a row is about, and checks that it is a response of one line with a text.
func brief(t *testing.T, line string) string {
	t.Helper()
	var m struct {
		V      string          `json:"jsonrpc"`
		ID     json.RawMessage `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  *Error          `json:"error"`
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil || m.V != "2.0" || (m.Error == nil) == (m.Result == nil) {
		t.Fatalf("not a response: %s", line)
	}
	if m.Error == nil {
		return answered(string(m.ID))
	}
	if m.Error.Message == "" {
		t.Errorf("an error without a message: %s", line)
	}
	return refusal(string(m.ID), m.Error.Code)
}

const testMaxLine = 4096

// inputs has a case for each row of the table in docs/protocol.md, under the row's name.
var inputs = []struct {
	name string
	in   string // without the last line feed
	want []string
}{
	{"malformed", `{"jsonrpc":"2.0","id":1,`, []string{refusal("null", -32700)}},
	{"malformed", `starting up...`, []string{refusal("null", -32700)}},
	{"malformed", `{"jsonrpc":"2.0","id":1,"method":"x"} {"jsonrpc":"2.0","id":2,"method":"x"}`, []string{refusal("null", -32700)}},
	{"malformed", `[{"jsonrpc":"2.0","method":"x"}`, []string{refusal("null", -32700)}},
	{"malformed", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\tb\"}", []string{refusal("null", -32700)}},
	{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", []string{refusal("null", -32700)}},
	{"array", `[]`, []string{refusal("null", -32600)}},
	{"array", `[{"jsonrpc":"2.0","id":1,"method":"x"},{"jsonrpc":"2.0","id":2,"method":"x"}]`, []string{refusal("null", -32600)}},
	{"array", `[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2,"method":"x"}]`, []string{refusal("null", -32600)}},
	{"array", `[{"jsonrpc":"2.0","method":"x"},1]`, []string{refusal("null", -32600)}},
	{"array", `[[]]`, []string{refusal("null", -32600)}},
	{"array of notifications", ` [ {"jsonrpc":"2.0","method":"x"} , {"jsonrpc":"2.0","method":"y","params":{"a":[1,"]}"]}} ] `, nil},
	{"no object", `1`, []string{refusal("null", -32600)}},
	{"no object", `"text"`, []string{refusal("null", -32600)}},
	{"no object", `null`, []string{refusal("null", -32600)}},
	{"no object", `true`, []string{refusal("null", -32600)}},
	{"no method", `{}`, []string{refusal("null", -32600)}},
	{"no method", `{"jsonrpc":"2.0","id":3}`, []string{refusal("3", -32600)}},
	{"no method", `{"jsonrpc":"2.0","id":3,"Method":"x"}`, []string{refusal("3", -32600)}},
	{"method is no string", `{"jsonrpc":"2.0","id":4,"method":1}`, []string{refusal("4", -32600)}},
	{"method is no string", `{"jsonrpc":"2.0","method":null}`, []string{refusal("null", -32600)}},
	{"method beside a result", `{"jsonrpc":"2.0","id":5,"method":"x","result":1}`, []string{refusal("5", -32600)}},
	{"method beside a result", `{"jsonrpc":"2.0","id":5,"method":"x","error":null}`, []string{refusal("5", -32600)}},
	{"jsonrpc member", `{"id":6,"method":"x"}`, []string{refusal("6", -32600)}},
	{"jsonrpc member", `{"jsonrpc":"1.0","id":6,"method":"x"}`, []string{refusal("6", -32600)}},
	{"jsonrpc member", `{"jsonrpc":2.0,"id":6,"method":"x"}`, []string{refusal("6", -32600)}},
	{"jsonrpc member", `{"method":"x"}`, []string{refusal("null", -32600)}},
	{"member twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}`, []string{refusal("null", -32600)}},
	{"member twice", `{"jsonrpc":"2.0","id":1,"method":"x","m\u0065thod":"y"}`, []string{refusal("null", -32600)}},
	{"id is no id", `{"jsonrpc":"2.0","id":{},"method":"x"}`, []string{refusal("null", -32600)}},
	{"id is no id", `{"jsonrpc":"2.0","id":[1],"method":"x"}`, []string{refusal("null", -32600)}},
	{"id is no id", `{"jsonrpc":"2.0","id":true,"method":"x"}`, []string{refusal("null", -32600)}},
	{"any string or number as id", `{"jsonrpc":"2.0","id":-1,"method":"x"}`, []string{answered("-1")}},
	{"any string or number as id", `{"jsonrpc":"2.0","id":0,"method":"x"}`, []string{answered("0")}},
	{"any string or number as id", `{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"x"}`, []string{answered("123456789012345678901234567890")}},
	{"any string or number as id", `{"jsonrpc":"2.0","id":1.50,"method":"x"}`, []string{answered("1.50")}},
	{"any string or number as id", `{"jsonrpc":"2.0","id":1E3,"method":"x"}`, []string{answered("1E3")}},
	{"any string or number as id", `{"jsonrpc":"2.0","id":"1","method":"x"}`, []string{answered(`"1"`)}},
	{"any string or number as id", `{"jsonrpc":"2.0","id":"","method":"x"}`, []string{answered(`""`)}},
	{"any string or number as id", `{"jsonrpc":"2.0","id":"\u00e9<&>\ud800","method":"x"}`, []string{answered(`"\u00e9<&>\ud800"`)}},
	{"id null", `{"jsonrpc":"2.0","id":null,"method":"x"}`, []string{answered("null")}},
	{"id in use", `{"jsonrpc":"2.0","id":7,"method":"hold"}` + "\n" + `{"jsonrpc":"2.0","id":7,"method":"x"}` + "\n" + `{"jsonrpc":"2.0","method":"release"}`,
		[]string{refusal("7", -32600), answered("7")}},
	{"id in use", `{"jsonrpc":"2.0","id":"a","method":"hold"}` + "\n" + `{"jsonrpc":"2.0","id":"\u0061","method":"x"}` + "\n" + `{"jsonrpc":"2.0","method":"release"}`,
		[]string{refusal(`"\u0061"`, -32600), answered(`"a"`)}},
	{"id used again", `{"jsonrpc":"2.0","id":7,"method":"x"}` + "\n" + `{"jsonrpc":"2.0","id":7,"method":"x"}`, []string{answered("7"), answered("7")}},
	{"id used again", `{"jsonrpc":"2.0","id":null,"method":"hold"}` + "\n" + `{"jsonrpc":"2.0","id":null,"method":"x"}` + "\n" + `{"jsonrpc":"2.0","method":"release"}`,
		[]string{answered("null"), answered("null")}},
	{"blank", "\n \t \n\r\n", nil},
	{"CR before the line feed", `{"jsonrpc":"2.0","id":8,"method":"x"}` + "\r", []string{answered("8")}},
	{"byte order mark", "\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":9,"method":"x"}`, []string{answered("9")}},
	{"other members", `{"jsonrpc":"2.0","id":10,"method":"x","trace":{"id":99},"Id":5}`, []string{answered("10")}},
	{"stray response", `{"jsonrpc":"2.0","id":77,"result":1}`, nil},
	{"stray response", `{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}`, nil},
	{"stray response", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`, nil},
	{"stray response", `{"result":1}`, nil},
	{"too long", `{"jsonrpc":"2.0","id":11,"method":"x","params":["` + strings.Repeat("a", testMaxLine) + `"]}`, []string{refusal("null", -32600)}},
	{"as long as allowed", long(testMaxLine), []string{answered("12")}},
	{"too deep", `{"jsonrpc":"2.0","id":13,"method":"x","params":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}`, []string{refusal("null", -32600)}},
	{"deep", `{"jsonrpc":"2.0","id":14,"method":"x","params":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + `}`, []string{answered("14")}},
}

// long returns a request with n bytes.
func long(n int) string {
	head, tail := `{"jsonrpc":"2.0","id":12,"method":"x","params":["`, `"]}`
	return head + strings.Repeat("a", n-len(head)-len(tail)) + tail
}

func TestInput_Table(t *testing.T) {
	for i, c := range inputs {
		t.Run(fmt.Sprintf("%s/%d", c.name, i), func(t *testing.T) {
			var held *Request
			opts := []Option{WithMaxLine(testMaxLine)}
			if strings.HasSuffix(c.name, "deep") {
				opts = nil
			}
			p := connect(t, funcs{
				request: func(_ context.Context, r *Request) {
					if r.Method == "hold" {
						held = r
						return
					}
					r.Reply(1)
				},
				notify: func(m string, _ json.RawMessage) {
					if m != "release" {
						t.Errorf("a notification %q came through", m)
						return
					}
					held.Reply(1)
				},
			}, opts...)
			p.send(c.in + "\n")
			// The connection goes on (I1).
			p.send(`{"jsonrpc":"2.0","id":"alive","method":"x"}` + "\n")
			var got []string
			for _, line := range p.rest() {
				got = append(got, brief(t, line))
			}
			if want := append(slices.Clone(c.want), answered(`"alive"`)); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

var row = regexp.MustCompile(`(?m)^\| ([^|]+?) \|`)

func TestInput_TableIsThatOfTheDocument(t *testing.T) {
	doc, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(doc), "## What each bad input gets\n")
	if !ok {
		t.Fatal("the document has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(section, -1) {
		documented[m[1]] = true
	}
	delete(documented, "row")
	delete(documented, "---")
	tested := map[string]bool{}
	for _, c := range inputs {
		tested[c.name] = true
		if !documented[c.name] {
			t.Errorf("%q is not in the document", c.name)
		}
	}
	for name := range documented {
		if !tested[name] {
			t.Errorf("the row %q has no test", name)
		}
	}
}

func TestInput_LimitIsNamed(t *testing.T) {
	p := connect(t, echo, WithMaxLine(testMaxLine))
	p.send(long(testMaxLine+1) + "\n")
	if got := p.line(); !strings.Contains(got, "4096 bytes") {
		t.Errorf("got %s", got)
	}
}

func TestInput_ParametersKeepTheirBytes(t *testing.T) {
	for _, params := range []string{`{"b":1, "a":2,"a":3 ,"x":"<>\u003c\/","n":1.0e+2,"bad":"\ud800"}`, `[ ]`, `null`, `[]`, `5`, `{"deep":{"id":9,"method":"y"}}`} {
		got := make(chan string, 2)
		p := connect(t, funcs{request: func(_ context.Context, r *Request) { got <- string(r.Params); r.Reply(nil) },
			notify: func(_ string, raw json.RawMessage) { got <- string(raw) }})
		p.send(`{ "params" :  ` + params + ` ,"jsonrpc":"2.0","method":"x","id":1}` + "\n" + `{"jsonrpc":"2.0","method":"x","params":` + params + "}\n")
		for range 2 {
			if g := wait(t, got, "parameters"); g != params {
				t.Errorf("got %s, want %s", g, params)
			}
		}
	}
}

func TestInput_LargestLineIsAccepted(t *testing.T) {
	size := make(chan int, 1)
	p := connect(t, funcs{request: func(_ context.Context, r *Request) { size <- len(r.Params); r.Reply("ok") }})
	line := long(DefaultMaxLine)
	p.send(line + "\n")
	if got := p.line(); got != `{"jsonrpc":"2.0","id":12,"result":"ok"}` {
		t.Errorf("got %.200s", got)
	}
	if got, want := wait(t, size, "the request"), len(line)-len(`{"jsonrpc":"2.0","id":12,"method":"x","params":}`); got != want {
		t.Errorf("%d bytes of parameters, want %d", got, want)
	}
	p.send(line[:1] + " " + line[1:] + "\n" + `{"jsonrpc":"2.0","id":1,"method":"x"}` + "\n")
	if got := brief(t, p.line()); got != refusal("null", -32600) {
		t.Errorf("one byte more got %s", got)
	}
	if got := p.line(); got != `{"jsonrpc":"2.0","id":1,"result":"ok"}` {
		t.Errorf("after it, got %s", got)
	}
}
