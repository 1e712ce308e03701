package provider

import (
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/session"
)

// faultWires are the columns of the table in docs/models.md.
var faultWires = []struct {
	name string
	open func(base string, limits Limits) (session.Model, error)
	base func(*fakemodel.Server) string
}{
	{"OpenAI chat", func(base string, l Limits) (session.Model, error) { return NewOpenAI(faultConfig(base, l)) }, (*fakemodel.Server).URL},
	{"OpenAI responses", func(base string, l Limits) (session.Model, error) { return NewResponses(faultConfig(base, l)) }, (*fakemodel.Server).URL},
	{"Anthropic messages", func(base string, l Limits) (session.Model, error) { return NewAnthropic(faultConfig(base, l)) }, (*fakemodel.Server).Origin},
}

func faultConfig(base string, limits Limits) EndpointConfig {
	return EndpointConfig{Model: "fake", BaseURL: base, Key: testKey, CredKey: []byte("store"), Limits: limits, Now: func() time.Time { return faultNow }}
}

var faultNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// strayArguments is a fragment of a call that was never begun, on each wire.
var strayArguments = map[string]string{
	"OpenAI chat":        `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":7,"function":{"arguments":"{}"}}]}}]}`,
	"OpenAI responses":   `data: {"type":"response.function_call_arguments.delta","output_index":7,"delta":"{}"}`,
	"Anthropic messages": "event: content_block_delta\n" + `data: {"type":"content_block_delta","index":7,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
}

// halfEvent is the beginning of an event with text, on each wire.
var halfEvent = map[string]string{
	"OpenAI chat":        `data: {"choices":[{"index":0,"delta":{"content":"wo`,
	"OpenAI responses":   `data: {"type":"response.output_text.delta","output_index":0,"delta":"wo`,
	"Anthropic messages": "event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"wo`,
}

// fault is one row of the table. A cell says what comes of it: a kind of error, or "answer".
type fault struct {
	name    string
	cell    string
	reply   func(wire string) fakemodel.Reply
	limits  Limits
	message string        // part of the error's
	after   time.Duration // how long the provider asks to wait
	partial string        // what was shown before the error
	calls   []string      // ids of an answer's calls
	past    bool          // an earlier answer made the call "call_old"
}

func same(r fakemodel.Reply) func(string) fakemodel.Reply {
	return func(string) fakemodel.Reply { return r }
}

func after(end fakemodel.End, calls ...fakemodel.Call) func(string) fakemodel.Reply {
	return same(fakemodel.Reply{Steps: []fakemodel.Step{{Text: "par"}, {Text: "tial"}}, Calls: calls, End: end})
}

func answerCalls(calls ...fakemodel.Call) func(string) fakemodel.Reply {
	return same(fakemodel.Calls(calls...))
}

// faults are the rows, in the order of the document.
var faults = []fault{
	{name: "400", cell: "bad_request", reply: same(fakemodel.Error(400, "Invalid schema for function 'x'", "")), message: "Invalid schema for function 'x'"},
	{name: "401", cell: "auth", reply: same(fakemodel.Error(401, "Incorrect API key provided: "+testKey, "invalid_api_key")), message: "provided: ***"},
	{name: "403", cell: "auth", reply: same(fakemodel.Error(403, "Country not supported", "")), message: "Country not supported"},
	{name: "404 for the model", cell: "model_not_found", reply: same(fakemodel.Error(404, "The model does not exist", "model_not_found")), message: "does not exist"},
	{name: "408", cell: "overloaded", reply: same(fakemodel.Error(408, "Timed out", "")), message: "Timed out"},
	{name: "409", cell: "overloaded", reply: same(fakemodel.Error(409, "Conflict", "")), message: "Conflict"},
	{name: "413", cell: "context_overflow", reply: same(fakemodel.Error(413, "Request too large", "")), message: "Request too large"},
	{name: "400 for a context that is too long", cell: "context_overflow",
		reply: func(wire string) fakemodel.Reply {
			if wire == "Anthropic messages" {
				return fakemodel.Error(400, "prompt is too long: 300000 tokens > 200000 maximum", "")
			}
			return fakemodel.Error(400, "Your input exceeds the limit", "context_length_exceeded")
		}},
	{name: "429 with `Retry-After`", cell: "rate_limit", reply: same(fakemodel.Error(429, "Slow down", "").With("Retry-After", "20")), message: "Slow down", after: 20 * time.Second},
	{name: "429 without", cell: "rate_limit", reply: same(fakemodel.Error(429, "Slow down", "")), message: "Slow down"},
	{name: "429 with reset times", cell: "rate_limit", after: 90 * time.Second,
		reply: func(wire string) fakemodel.Reply {
			if wire == "Anthropic messages" {
				return fakemodel.Error(429, "x", "").With("Anthropic-Ratelimit-Requests-Remaining", "9").With("Anthropic-Ratelimit-Requests-Reset", "2026-01-02T03:04:06Z").
					With("Anthropic-Ratelimit-Input-Tokens-Remaining", "0").With("Anthropic-Ratelimit-Input-Tokens-Reset", "2026-01-02T03:05:35Z")
			}
			return fakemodel.Error(429, "x", "").With("X-Ratelimit-Remaining-Requests", "9").With("X-Ratelimit-Reset-Requests", "20ms").
				With("X-Ratelimit-Remaining-Tokens", "0").With("X-Ratelimit-Reset-Tokens", "1m30s")
		}},
	{name: "500", cell: "overloaded", reply: same(fakemodel.Error(500, "Internal error", "")), message: "Internal error"},
	{name: "503", cell: "overloaded", reply: same(fakemodel.Error(503, "Unavailable", "").With("Retry-After", "2")), message: "Unavailable", after: 2 * time.Second},
	{name: "529", cell: "overloaded", reply: same(fakemodel.Error(529, "Overloaded", "")), message: "Overloaded"},
	{name: "connection refused", cell: "network", message: "refuses connections"},
	{name: "connection reset", cell: "network", reply: same(fakemodel.Reply{End: fakemodel.EndReset})},
	{name: "connection lost in mid-text", cell: "network", reply: after(fakemodel.EndAbort), partial: "partial", message: "broke in the middle"},
	{name: "stall", cell: "network", reply: after(fakemodel.EndStall), limits: Limits{Idle: 300 * time.Millisecond}, partial: "partial", message: "sent nothing more"},
	{name: "cut in mid-text", cell: "cut_off", partial: "partial",
		reply: func(wire string) fakemodel.Reply {
			return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "par"}, {Text: "tial"}, {Raw: halfEvent[wire]}}, End: fakemodel.EndCut}
		}},
	{name: "closed cleanly before the end mark", cell: "cut_off", reply: after(fakemodel.EndUnmarked, fakemodel.Call{ID: "a", Name: "write", Args: "{}"}), partial: "partial",
		message: "before the answer's end mark"},
	{name: "cut in mid-arguments", cell: "cut_off",
		reply: func(wire string) fakemodel.Reply {
			return fakemodel.Reply{Calls: []fakemodel.Call{{ID: "a", Name: "write", Args: `{"path":"x","content":"` + strings.Repeat("half a file ", 1000) + `"}`, Pieces: 9}}, CutAt: 6000}
		}},
	{name: "arguments that are no JSON", cell: "answer", reply: answerCalls(fakemodel.Call{ID: "a", Name: "read", Args: `{"path`}), calls: []string{"a"}},
	{name: "unknown tool", cell: "answer", reply: answerCalls(fakemodel.Call{ID: "a", Name: "no such tool!", Args: "{}"}), calls: []string{"a"}},
	{name: "two calls with one id", cell: "bad_request", reply: answerCalls(fakemodel.Call{ID: "a", Name: "x", Args: "{}"}, fakemodel.Call{ID: "a", Name: "y", Args: "{}"}),
		message: "ambiguous"},
	{name: "an id of an earlier call", cell: "answer", reply: answerCalls(fakemodel.Call{ID: "call_old", Name: "x", Args: "{}"}), calls: []string{"call_old"}, past: true},
	{name: "calls without ids", cell: "answer", reply: answerCalls(fakemodel.Call{NoID: true, Name: "x", Args: "{}"}, fakemodel.Call{NoID: true, Name: "x", Args: "{}"}),
		calls: []string{"call_1", "call_2"}},
	{name: "empty answer", cell: "answer", reply: same(fakemodel.Reply{})},
	{name: "endless answer", cell: "cut_off", reply: same(fakemodel.Reply{Steps: []fakemodel.Step{{Text: strings.Repeat("x", 4<<20), Count: 1 << 20}}}), message: "larger than any model's"},
	{name: "events in the wrong order", cell: "cut_off",
		reply: func(wire string) fakemodel.Reply {
			return fakemodel.Reply{Steps: []fakemodel.Step{{Raw: strayArguments[wire] + "\n\n"}}, Calls: []fakemodel.Call{{ID: "a", Name: "x", Args: "{}"}}}
		}},
	{name: "an event that is no JSON", cell: "cut_off", reply: same(fakemodel.Reply{Steps: []fakemodel.Step{{Text: "partial"}, fakemodel.Broken()}}), partial: "partial"},
	{name: "an error in mid-answer", cell: "overloaded", reply: same(fakemodel.Reply{Steps: []fakemodel.Step{{Text: "partial"},
		fakemodel.ErrorEvent("The server had an error", "overloaded_error", "server_error")}}), partial: "partial", message: "The server had an error"},
	{name: "compressed though nobody asked", cell: "answer", reply: same(fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}}, Gzip: true})},
	{name: "a proxy's page with 502", cell: "overloaded", reply: same(fakemodel.HTML(502)), message: "web page"},
	{name: "a proxy's page with 200", cell: "bad_request", reply: same(fakemodel.HTML(200)), message: "web page"},
}

// TestFaults has one test for each cell. Whatever the fault, one request is made, an error brings no call, and the conversation goes on.
func TestFaults(t *testing.T) {
	for w := range faultWires {
		for _, f := range faults {
			t.Run(faultWires[w].name+"/"+f.name, func(t *testing.T) { f.test(t, w) })
		}
	}
}

func (f fault) test(t *testing.T, w int) {
	wire := faultWires[w]
	var reply fakemodel.Reply
	s := fakemodel.New(func(fakemodel.Request) fakemodel.Reply { return reply })
	t.Cleanup(s.Close)
	base := wire.base(s)
	if f.reply == nil {
		base = closedPort(t)
	} else {
		reply = f.reply(wire.name)
	}
	limits := testLimits()
	if f.limits.Idle > 0 {
		limits.Idle = f.limits.Idle
	}
	m, err := wire.open(base, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.(interface{ Close() }).Close)
	req := hello()
	if f.past {
		req = answered(t, req, session.ModelResponse{Calls: []session.Call{{ID: "call_old", Name: "x", Args: "{}"}}})
	}
	h := ask(t.Context(), m, req)
	if n := len(s.Requests()); f.reply != nil && n != 1 {
		t.Errorf("%d requests were made", n)
	}
	if f.cell != "answer" {
		f.failed(t, h)
		return
	}
	if h.err != nil {
		t.Fatal(h.err)
	}
	var ids []string
	for _, c := range h.resp.Calls {
		ids = append(ids, c.ID)
	}
	if !reflect.DeepEqual(ids, f.calls) {
		t.Errorf("the calls are %v, want %v", ids, f.calls)
	}
	reply = fakemodel.Text("ok")
	if h := ask(t.Context(), m, goesOn(t, m, h.resp, f.past)); h.err != nil {
		t.Errorf("the conversation does not go on: %v", h.err)
	}
}

func (f fault) failed(t *testing.T, h heard) {
	me := modelError(t, h.err)
	if string(me.Kind) != f.cell || me.RetryAfter != f.after || !strings.Contains(me.Message, f.message) {
		t.Errorf("got  %s %v %q\nwant %s %v …%q…", me.Kind, me.RetryAfter, me.Message, f.cell, f.after, f.message)
	}
	if f.name != "endless answer" && h.text != f.partial {
		t.Errorf("the deltas say %q, want %q", h.text, f.partial)
	}
	if !reflect.DeepEqual(h.resp, session.ModelResponse{}) {
		t.Errorf("an answer came beside the error: %s", mustJSON(t, h.resp))
	}
	lasting := []string{"bad_request", "auth", "model_not_found", "context_overflow"}
	if me.Temporary() == slices.Contains(lasting, f.cell) {
		t.Errorf("worth another try: %v", me.Temporary())
	}
}

// goesOn is the next request as the session makes it from what it stored.
func goesOn(t *testing.T, m session.Model, resp session.ModelResponse, past bool) session.ModelRequest {
	t.Helper()
	items := []session.Item{{Kind: session.ItemUser, State: session.ItemComplete, Body: session.ItemBody{Text: "hello"}}}
	add := func(response string, r session.ModelResponse) {
		items = append(items, session.Item{Kind: session.ItemAgent, State: session.ItemComplete, Body: session.ItemBody{Text: r.Text, Response: response, Native: through(t, r.Native)}})
		for _, c := range r.Calls {
			items = append(items, session.Item{Kind: session.ItemTool, State: session.ItemComplete,
				Body: session.ItemBody{Response: response, Tool: &session.ToolCall{CallID: c.ID, Name: c.Name, Args: c.Args}}})
		}
	}
	if past {
		add("r0", session.ModelResponse{Calls: []session.Call{{ID: "call_old", Name: "x", Args: "{}"}}})
	}
	add("r1", resp)
	items = append(items, session.Item{Kind: session.ItemUser, State: session.ItemComplete, Body: session.ItemBody{Text: "more"}})
	messages, err := session.Project(items, m.Identity())
	if err != nil {
		t.Fatal(err)
	}
	return session.ModelRequest{Messages: messages}
}

// closedPort is an address on which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return "http://" + l.Addr().String() + "/v1"
}

// TestFaults_TableIsThatOfTheDocument: each cell of the document is tested, and each test stands in the document.
func TestFaults_TableIsThatOfTheDocument(t *testing.T) {
	doc, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(doc), "## What each fault becomes\n")
	if !ok {
		t.Fatal("the document has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	head := "| Fault |"
	for _, w := range faultWires {
		head += " " + w.name + " |"
	}
	want := []string{head, "|---" + strings.Repeat("|---", len(faultWires)) + "|"}
	for _, f := range faults {
		want = append(want, "| "+f.name+" |"+strings.Repeat(" `"+f.cell+"` |", len(faultWires)))
	}
	var got []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "|") {
			got = append(got, strings.TrimRight(line, "\n"))
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("the document lacks\n%s", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("no test stands behind\n%s", line)
		}
	}
}

// TestFaults_NativeForm: what services say when they do not take back their own reasoning is told from other refusals.
func TestFaults_NativeForm(t *testing.T) {
	for message, want := range map[string]bool{
		"messages.1.content.0: Invalid `signature` in `thinking` block":                                                      true,
		"messages.3.content.0: Invalid `data` in `redacted_thinking` block":                                                  true,
		"messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.": true,
		"Item 'rs_1' of type 'reasoning' was provided without its required following item.":                                  true,
		"Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.":                    true,
		"The encrypted content gAAA... could not be verified. Reason: Encrypted content could not be decrypted or parsed.":   true,
		"Invalid schema for function 'x'":                                                false,
		"max_tokens must be greater than thinking.budget_tokens":                         false,
		"The signature of the request is invalid":                                        false,
		"Unsupported value: 'reasoning.effort' does not support 'none' with this model.": false,
	} {
		for w := range faultWires {
			s := fakemodel.New(func(fakemodel.Request) fakemodel.Reply { return fakemodel.Error(400, message, "") })
			m, err := faultWires[w].open(faultWires[w].base(s), testLimits())
			if err != nil {
				t.Fatal(err)
			}
			me := modelError(t, ask(t.Context(), m, hello()).err)
			if me.Native != want || me.Kind != session.ModelBadRequest || me.Temporary() {
				t.Errorf("%s: %q is %+v", faultWires[w].name, message, me)
			}
			m.(interface{ Close() }).Close()
			s.Close()
		}
	}
	for status, want := range map[int]bool{400: true, 401: false, 500: false} {
		m, _ := serve(t, testLimits(), always(fakemodel.Error(status, "no", "invalid_encrypted_content")))
		if me := modelError(t, ask(t.Context(), m, hello()).err); me.Native != want {
			t.Errorf("with %d it is %+v", status, me)
		}
	}
}
