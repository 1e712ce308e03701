package provider

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/session"
	"holdfast/usage"
)

func index(i int) *int { return &i }

// TestOpenAI_Answers lists answers that are complete, however the endpoint spells them.
func TestOpenAI_Answers(t *testing.T) {
	two := []fakemodel.Call{{ID: "a", Name: "read", Args: `{"path":"x/ü"}`, Pieces: 5}, {ID: "b", Name: "shell", Args: `{"command":"ls"}`, Pieces: 3}}
	wantTwo := []session.Call{{ID: "a", Name: "read", Args: `{"path":"x/ü"}`}, {ID: "b", Name: "shell", Args: `{"command":"ls"}`}}
	known := usage.Tokens{Input: 10, Output: 5, Known: true}
	cases := []struct {
		name  string
		reply fakemodel.Reply
		want  session.ModelResponse
	}{
		{"text", fakemodel.Text("Hel", "lo"), session.ModelResponse{Text: "Hello", Finish: session.FinishStop,
			Usage: usage.Tokens{Input: 10, Output: 2, Known: true}}},
		{"text, compressed", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "Hel"}, {Text: "lo"}}, Gzip: true},
			session.ModelResponse{Text: "Hello", Finish: session.FinishStop}},
		{"no usage", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}}}, session.ModelResponse{Text: "x", Finish: session.FinishStop}},
		{"usage of zero is no usage", fakemodel.Reply{Usage: &fakemodel.Usage{}}, session.ModelResponse{Finish: session.FinishStop}},
		{"empty", fakemodel.Reply{}, session.ModelResponse{Finish: session.FinishStop}},
		{"parallel calls, side by side", fakemodel.Calls(two...), session.ModelResponse{Calls: wantTwo, Finish: session.FinishCalls, Usage: known}},
		{"calls that end with stop", fakemodel.Reply{Calls: two, Finish: "stop"}, session.ModelResponse{Calls: wantTwo, Finish: session.FinishCalls}},
		{"whole calls that all have index 0", fakemodel.Reply{Calls: []fakemodel.Call{
			{ID: "a", Name: "read", Args: `{"path":"x/ü"}`, Whole: true, Index: index(0)},
			{ID: "b", Name: "shell", Args: `{"command":"ls"}`, Whole: true, Index: index(0)}}},
			session.ModelResponse{Calls: wantTwo, Finish: session.FinishCalls}},
		{"calls without ids", fakemodel.Reply{Calls: []fakemodel.Call{{NoID: true, Name: "read", Args: "{}"}, {NoID: true, Name: "read", Args: "{}"}}},
			session.ModelResponse{Calls: []session.Call{{ID: "call_1", Name: "read", Args: "{}"}, {ID: "call_2", Name: "read", Args: "{}"}},
				Finish: session.FinishCalls}},
		{"a call without id beside one that has the made-up id", fakemodel.Reply{Calls: []fakemodel.Call{
			{NoID: true, Name: "read", Args: "{}"}, {ID: "call_1", Name: "read", Args: "{}"}}},
			session.ModelResponse{Calls: []session.Call{{ID: "call_2", Name: "read", Args: "{}"}, {ID: "call_1", Name: "read", Args: "{}"}},
				Finish: session.FinishCalls}},
		{"arguments that are no JSON", fakemodel.Reply{Calls: []fakemodel.Call{{ID: "a", Name: "read", Args: `{"path`}}},
			session.ModelResponse{Calls: []session.Call{{ID: "a", Name: "read", Args: `{"path`}}, Finish: session.FinishCalls}},
		{"output limit reached inside a call", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "so"}}, Calls: two, Finish: "length"},
			session.ModelResponse{Text: "so", Finish: session.FinishLength}},
		{"filtered inside a call", fakemodel.Reply{Calls: two, Finish: "content_filter"}, session.ModelResponse{Finish: session.FinishRefusal}},
		{"refusal", fakemodel.Reply{Steps: []fakemodel.Step{{Refusal: "I will "}, {Refusal: "not."}}},
			session.ModelResponse{Text: "I will not.", Finish: session.FinishRefusal}},
		{"reasoning_content", fakemodel.Reply{Steps: []fakemodel.Step{{Reasoning: "hm "}, {Reasoning: "\"so\"\n"}, {Text: "x"}}},
			session.ModelResponse{Text: "x", Thought: "hm \"so\"\n", Finish: session.FinishStop}},
		{"reasoning", fakemodel.Reply{Steps: []fakemodel.Step{{Reasoning: "hm", Member: "reasoning"}, {Text: "x"}}},
			session.ModelResponse{Text: "x", Thought: "hm", Finish: session.FinishStop}},
		{"both reasoning members", fakemodel.Reply{Steps: []fakemodel.Step{
			{Raw: `data: {"choices":[{"index":0,"delta":{"reasoning":"hm","reasoning_content":"hm"}}]}` + "\n\n"}}},
			session.ModelResponse{Thought: "hm", Finish: session.FinishStop}},
		{"comments and unknown events", fakemodel.Reply{Steps: []fakemodel.Step{{Comment: "keep-alive"}, {Raw: "event: ping\ndata: {}\n\n"}, {Text: "x"},
			{Raw: "id: 7\nretry: 10\n\n"}, {Text: "y"}}}, session.ModelResponse{Text: "xy", Finish: session.FinishStop}},
		{"other choices are not ours", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"},
			{Raw: `data: {"choices":[{"index":1,"delta":{"content":"z"},"finish_reason":"stop"}]}` + "\n\n"}}},
			session.ModelResponse{Text: "x", Finish: session.FinishStop}},
		{"growing usage", fakemodel.Reply{Steps: []fakemodel.Step{
			{Raw: `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n"},
			{Raw: `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":9}}` + "\n\n"}}},
			session.ModelResponse{Finish: session.FinishStop, Usage: usage.Tokens{Input: 3, Output: 9, Known: true}}},
		{"usage but no [DONE], reset behind it", fakemodel.Reply{End: fakemodel.EndAbort, Steps: []fakemodel.Step{{Text: "x"},
			{Raw: `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n"}}},
			session.ModelResponse{Text: "x", Finish: session.FinishStop, Usage: usage.Tokens{Input: 3, Output: 1, Known: true}}},
		{"CRLF lines, no blank behind the colon", fakemodel.Reply{End: fakemodel.EndCut, Steps: []fakemodel.Step{
			{Raw: "data:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\r\n\r\ndata:[DONE]\r\n\r\n"}}},
			session.ModelResponse{Text: "x", Finish: session.FinishStop}},
		{"a large chunk", fakemodel.Text(strings.Repeat("0123456789", 200_000)), session.ModelResponse{Text: strings.Repeat("0123456789", 200_000),
			Finish: session.FinishStop, Usage: usage.Tokens{Input: 10, Output: 1, Known: true}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, s := serve(t, testLimits(), always(c.reply))
			h := ask(t.Context(), m, hello())
			c.want.Usage.Parts = partsOf(c.reply, "chat")
			if h.err != nil {
				t.Fatal(h.err)
			}
			if !reflect.DeepEqual(h.resp, c.want) {
				t.Errorf("got  %.500s\nwant %.500s", mustJSON(t, h.resp), mustJSON(t, c.want))
			}
			if h.text != h.resp.Text || h.thought != h.resp.Thought {
				t.Errorf("the deltas say %.200q and %.200q, the answer %.200q and %.200q", h.text, h.thought, h.resp.Text, h.resp.Thought)
			}
			if err := fakemodel.ResultsPerCall(s.Requests()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOpenAI_Faults lists what may go wrong. No fault gives a call (I3), and each makes exactly one request (I1).
func TestOpenAI_Faults(t *testing.T) {
	calls := []fakemodel.Call{{ID: "a", Name: "write", Args: `{"path":"x","content":"half a file"}`, Pieces: 4}}
	step := []fakemodel.Step{{Text: "par"}, {Text: "tial"}}
	gate := make(chan struct{}) // never opened
	cases := []struct {
		name    string
		reply   fakemodel.Reply
		limits  Limits
		kind    session.ModelErrorKind
		status  int
		text    string // of the deltas
		message string // part of the message
		after   time.Duration
	}{
		{name: "clean close before the end", reply: fakemodel.Reply{Steps: step, End: fakemodel.EndCut}, kind: session.ModelCutOff, text: "partial"},
		{name: "clean close after whole calls", reply: fakemodel.Reply{Steps: step, Calls: calls, End: fakemodel.EndCut}, kind: session.ModelCutOff, text: "partial"},
		{name: "clean close after the first chunk", reply: fakemodel.Reply{End: fakemodel.EndCut}, kind: session.ModelCutOff},
		{name: "compressed, clean close", reply: fakemodel.Reply{Steps: step, Gzip: true, End: fakemodel.EndCut}, kind: session.ModelCutOff, text: "partial"},
		{name: "finish reason without end mark", reply: fakemodel.Reply{Steps: step, Calls: calls, End: fakemodel.EndUnmarked}, kind: session.ModelCutOff, text: "partial"},
		{name: "usage before the finish reason is no end mark", reply: fakemodel.Reply{Steps: append(step[:2:2],
			fakemodel.Step{Raw: `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n"}), End: fakemodel.EndUnmarked},
			kind: session.ModelCutOff, text: "partial"},
		{name: "[DONE] without finish reason", reply: fakemodel.Reply{Steps: append(step[:2:2], fakemodel.Step{Raw: "data: [DONE]\n\n"}), Calls: calls,
			End: fakemodel.EndCut}, kind: session.ModelCutOff, text: "partial"},
		{name: "usage without finish reason", reply: fakemodel.Reply{Steps: append(step[:2:2],
			fakemodel.Step{Raw: `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n"}), End: fakemodel.EndCut},
			kind: session.ModelCutOff, text: "partial"},
		{name: "connection closed in mid stream", reply: fakemodel.Reply{Steps: step, Calls: calls, End: fakemodel.EndAbort}, kind: session.ModelNetwork, text: "partial"},
		{name: "compressed, connection closed", reply: fakemodel.Reply{Steps: step, Gzip: true, End: fakemodel.EndAbort}, kind: session.ModelNetwork, text: "partial"},
		{name: "silent stream", reply: fakemodel.Reply{Steps: step, End: fakemodel.EndStall}, limits: Limits{Idle: 300 * time.Millisecond},
			kind: session.ModelNetwork, text: "partial", message: "sent nothing more for 300ms"},
		{name: "stream that is only kept alive", reply: fakemodel.Reply{Steps: append(step[:2:2], fakemodel.KeepAlive(20*time.Millisecond, 1<<20))},
			limits: Limits{Idle: 300 * time.Millisecond}, kind: session.ModelNetwork, text: "partial", message: "sent nothing more"},
		{name: "silent from the first chunk", reply: fakemodel.Reply{Steps: []fakemodel.Step{fakemodel.Gate(gate)}}, limits: Limits{Idle: 300 * time.Millisecond},
			kind: session.ModelNetwork, message: "sent nothing more"},
		{name: "broken chunk", reply: fakemodel.Reply{Steps: append(step[:2:2], fakemodel.Broken()), Calls: calls}, kind: session.ModelCutOff, text: "partial",
			message: "cannot be read"},
		{name: "error event", reply: fakemodel.Reply{Steps: append(step[:2:2], fakemodel.ErrorEvent("The server had an error", "server_error", ""))},
			kind: session.ModelOverloaded, status: 200, text: "partial", message: "The server had an error"},
		{name: "error event with a number", reply: fakemodel.Reply{Steps: []fakemodel.Step{{Raw: `data: {"error":{"code":429,"message":"slow down"}}` + "\n\n"}}},
			kind: session.ModelRateLimit, status: 200, message: "slow down"},
		{name: "error event: too long", reply: fakemodel.Reply{Steps: []fakemodel.Step{fakemodel.ErrorEvent("too long", "invalid_request_error", "context_length_exceeded")}},
			kind: session.ModelOverflow, status: 200, message: "too long"},
		{name: "error event with the key in it", reply: fakemodel.Reply{Steps: []fakemodel.Step{fakemodel.ErrorEvent("bad key "+testKey, "authentication_error", "")}},
			kind: session.ModelAuth, status: 200, message: "bad key ***"},
		{name: "error as finish reason", reply: fakemodel.Reply{Steps: step, Calls: calls, Finish: "error"}, kind: session.ModelOverloaded, text: "partial"},
		{name: "two calls with one id", reply: fakemodel.Reply{Calls: []fakemodel.Call{{ID: "a", Name: "x", Args: "{}"}, {ID: "a", Name: "y", Args: "{}"}}},
			kind: session.ModelBadRequest, message: "ambiguous"},
		{name: "a call without a name", reply: fakemodel.Reply{Calls: []fakemodel.Call{{ID: "a", Args: "{}"}}}, kind: session.ModelCutOff, message: "without a name"},

		{name: "429 with seconds", reply: fakemodel.Error(429, "Rate limit reached", "rate_limit_exceeded").With("Retry-After", "3600"),
			kind: session.ModelRateLimit, status: 429, message: "Rate limit reached", after: time.Hour},
		{name: "429 with a date", reply: fakemodel.Error(429, "x", "").With("Retry-After", "Fri, 02 Jan 2026 03:05:05 GMT"),
			kind: session.ModelRateLimit, status: 429, after: time.Minute},
		{name: "429 with a date that is over", reply: fakemodel.Error(429, "x", "").With("Retry-After", "Fri, 02 Jan 2026 03:03:05 GMT"),
			kind: session.ModelRateLimit, status: 429},
		{name: "503 with milliseconds", reply: fakemodel.Error(503, "x", "").With("Retry-After", "9").With("Retry-After-Ms", "1500"),
			kind: session.ModelOverloaded, status: 503, after: 1500 * time.Millisecond},
		{name: "no credit", reply: fakemodel.Error(429, "You exceeded your current quota", "insufficient_quota"), kind: session.ModelAuth, status: 429},
		{name: "401 that echoes the key", reply: fakemodel.Error(401, "Incorrect API key provided: "+testKey+".", "invalid_api_key"),
			kind: session.ModelAuth, status: 401, message: "Incorrect API key provided: ***."},
		{name: "401 that echoes half the key", reply: fakemodel.Error(401, "Incorrect API key: sk-test-****ghij", ""), kind: session.ModelAuth, status: 401,
			message: "Incorrect API key: ***"},
		{name: "403", reply: fakemodel.Error(403, "no", ""), kind: session.ModelAuth, status: 403},
		{name: "404", reply: fakemodel.Error(404, "The model `fake` does not exist", "model_not_found"), kind: session.ModelNotFound, status: 404},
		{name: "408", reply: fakemodel.Error(408, "x", ""), kind: session.ModelOverloaded, status: 408},
		{name: "409", reply: fakemodel.Error(409, "x", ""), kind: session.ModelOverloaded, status: 409},
		{name: "413", reply: fakemodel.Error(413, "x", ""), kind: session.ModelOverflow, status: 413},
		{name: "500", reply: fakemodel.Error(500, "x", ""), kind: session.ModelOverloaded, status: 500},
		{name: "529", reply: fakemodel.Error(529, "Overloaded", ""), kind: session.ModelOverloaded, status: 529, message: "Overloaded"},
		{name: "too long by code", reply: fakemodel.Error(400, "x", "context_length_exceeded"), kind: session.ModelOverflow, status: 400},
		{name: "too long by words", reply: fakemodel.Reply{Status: 400, Page: `{"message":"This model's maximum context length is 4096 tokens"}`},
			kind: session.ModelOverflow, status: 400},
		{name: "400", reply: fakemodel.Error(400, "Invalid schema", "invalid_function_parameters"), kind: session.ModelBadRequest, status: 400, message: "Invalid schema"},
		{name: "422 with detail", reply: fakemodel.Reply{Status: 422, Page: `{"detail":"field required"}`}, kind: session.ModelBadRequest, status: 422, message: "field required"},
		{name: "error as text", reply: fakemodel.Reply{Status: 400, Page: `{"error":"model is loading"}`}, kind: session.ModelBadRequest, status: 400, message: "model is loading"},
		{name: "plain text", reply: fakemodel.Reply{Status: 500, Type: "text/plain", Page: "upstream\n\n connect\terror"}, kind: session.ModelOverloaded, status: 500,
			message: "upstream connect error"},
		{name: "no body", reply: fakemodel.Reply{Status: 502}, kind: session.ModelOverloaded, status: 502, message: "502 Bad Gateway"},
		{name: "proxy page", reply: fakemodel.HTML(502), kind: session.ModelOverloaded, status: 502, message: "502 Bad Gateway with a web page"},
		{name: "proxy page with 200", reply: fakemodel.HTML(200), kind: session.ModelBadRequest, status: 200, message: "a web page"},
		{name: "no stream", reply: fakemodel.Reply{Page: `{"object":"chat.completion","choices":[]}`}, kind: session.ModelBadRequest, status: 200,
			message: "one JSON document"},
		{name: "error with 200", reply: fakemodel.Reply{Page: `{"error":{"message":"Rate limit","type":"rate_limit_error"}}`}, kind: session.ModelRateLimit,
			status: 200, message: "Rate limit"},
		{name: "redirect", reply: fakemodel.Reply{Status: 307}.With("Location", "http://other.invalid/v1?key="+testKey), kind: session.ModelBadRequest, status: 307,
			message: "to http://other.invalid;"},
		{name: "long message", reply: fakemodel.Error(500, strings.Repeat("ü", 496)+testKey+strings.Repeat("x", 100_000), ""), kind: session.ModelOverloaded, status: 500,
			message: "ü"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			limits := testLimits()
			if c.limits.Idle > 0 {
				limits.Idle = c.limits.Idle
			}
			m, s := serve(t, limits, always(c.reply))
			h := ask(t.Context(), m, hello())
			me := modelError(t, h.err)
			if me.Kind != c.kind || me.Status != c.status || me.RetryAfter != c.after || !strings.Contains(me.Message, c.message) {
				t.Errorf("got  %s %d %v %q\nwant %s %d %v …%q…", me.Kind, me.Status, me.RetryAfter, me.Message, c.kind, c.status, c.after, c.message)
			}
			if h.text != c.text {
				t.Errorf("the deltas say %q, want %q", h.text, c.text)
			}
			if !reflect.DeepEqual(h.resp, session.ModelResponse{}) {
				t.Errorf("an answer came beside the error: %s", mustJSON(t, h.resp))
			}
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%d requests were made", n)
			}
		})
	}
}

// TestOpenAI_Reset: a reset may overtake data that was already sent, so only the end is certain.
func TestOpenAI_Reset(t *testing.T) {
	m, _ := serve(t, testLimits(), always(fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}}, End: fakemodel.EndReset}))
	h := ask(t.Context(), m, hello())
	if me := modelError(t, h.err); me.Kind != session.ModelNetwork || !me.Temporary() {
		t.Errorf("got %s: %s", me.Kind, me.Message)
	}
}

// TestOpenAI_CutEverywhere cuts an answer after every chunk: until the last one no cut may look like an answer.
func TestOpenAI_CutEverywhere(t *testing.T) {
	const whole = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\",\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"w\",\"arguments\":\"{}\"}}]}}]}\n\n" +
		"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"
	end := strings.Index(whole, "[DONE]\n") + len("[DONE]\n")
	var n int
	m, _ := serve(t, testLimits(), func(fakemodel.Request) fakemodel.Reply {
		return fakemodel.Reply{Status: 200, Type: "text/event-stream", Page: whole[:n]}
	})
	for n = 1; n <= len(whole); n++ {
		h := ask(t.Context(), m, hello())
		if complete := n >= end; complete != (h.err == nil) || complete != (len(h.resp.Calls) == 1) {
			t.Errorf("cut after %d of %d bytes (%q): error %v, %d calls", n, len(whole), whole[max(0, n-20):n], h.err, len(h.resp.Calls))
		}
	}
}

func TestOpenAI_NoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + l.Addr().String() + "/v1"
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := NewOpenAI(OpenAIConfig{Model: "fake", BaseURL: base, Limits: testLimits()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	me := modelError(t, ask(t.Context(), m, hello()).err)
	if me.Kind != session.ModelNetwork || !strings.Contains(me.Message, "refuses connections") || me.Err == nil {
		t.Errorf("got %s %q, cause %v", me.Kind, me.Message, me.Err)
	}
}

// TestOpenAI_NoHeaders: an endpoint that takes the request and never answers.
func TestOpenAI_NoHeaders(t *testing.T) {
	free := make(chan struct{})
	limits := testLimits()
	limits.Header = 300 * time.Millisecond
	m, _ := serve(t, limits, func(fakemodel.Request) fakemodel.Reply { <-free; return fakemodel.Reply{} })
	h := ask(t.Context(), m, hello())
	close(free)
	if me := modelError(t, h.err); me.Kind != session.ModelNetwork || !strings.Contains(me.Message, "sent no response for 300ms") {
		t.Errorf("got %s %q", me.Kind, me.Message)
	}
}

// TestOpenAI_RefusalThatStalls: the status is known even if the body never ends.
func TestOpenAI_RefusalThatStalls(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	limits := testLimits()
	limits.Header = 300 * time.Millisecond
	m, err := NewOpenAI(OpenAIConfig{Model: "fake", BaseURL: s.URL, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	me := modelError(t, ask(t.Context(), m, hello()).err)
	if me.Kind != session.ModelOverloaded || me.Status != http.StatusServiceUnavailable {
		t.Errorf("got %s %d %q", me.Kind, me.Status, me.Message)
	}
}

// TestOpenAI_TailAfterTheEnd: an endpoint that does not close its stream does not hold a complete answer back for long.
func TestOpenAI_TailAfterTheEnd(t *testing.T) {
	gate := make(chan struct{})
	limits := testLimits()
	limits.Idle = 300 * time.Millisecond
	m, _ := serve(t, limits, always(fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"},
		{Raw: `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n"},
		fakemodel.Gate(gate)}}))
	h := ask(t.Context(), m, hello())
	if h.err != nil || h.resp.Text != "x" || !h.resp.Usage.Known {
		t.Errorf("got %s, error %v", mustJSON(t, h.resp), h.err)
	}
}

// TestOpenAI_Cancel ends a stream that waits, in each phase (I6).
func TestOpenAI_Cancel(t *testing.T) {
	t.Run("before the request", func(t *testing.T) {
		m, s := serve(t, testLimits(), always(fakemodel.Text("x")))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if h := ask(ctx, m, hello()); !errors.Is(h.err, context.Canceled) || len(s.Requests()) != 0 {
			t.Errorf("got %v and %d requests", h.err, len(s.Requests()))
		}
	})
	t.Run("before the headers", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		free := make(chan struct{})
		m, _ := serve(t, testLimits(), func(fakemodel.Request) fakemodel.Reply { cancel(); <-free; return fakemodel.Reply{} })
		h := ask(ctx, m, hello())
		close(free)
		if h.err != context.Canceled { //nolint:errorlint // the bare error is promised
			t.Errorf("got %v", h.err)
		}
	})
	t.Run("in the stream", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		m, _ := serve(t, testLimits(), always(fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}}, End: fakemodel.EndStall}))
		_, err := m.Stream(ctx, hello(), func(session.Delta) error { cancel(); return nil })
		if err != context.Canceled { //nolint:errorlint // the bare error is promised
			t.Errorf("got %v", err)
		}
	})
	t.Run("by a deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		m, _ := serve(t, testLimits(), always(fakemodel.Reply{End: fakemodel.EndStall}))
		if h := ask(ctx, m, hello()); h.err != context.DeadlineExceeded { //nolint:errorlint // the bare error is promised
			t.Errorf("got %v", h.err)
		}
	})
	t.Run("by the receiver of deltas", func(t *testing.T) {
		full := errors.New("disk full")
		m, _ := serve(t, testLimits(), always(fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}, {Text: "y"}}, End: fakemodel.EndStall}))
		n := 0
		_, err := m.Stream(t.Context(), hello(), func(session.Delta) error { n++; return full })
		if err != full || n != 1 { //nolint:errorlint // the receiver's own error comes back as it is
			t.Errorf("got %v after %d deltas", err, n)
		}
	})
}

// TestOpenAI_DeltasInTime: a delta is passed on when it arrives, not when the answer ends.
func TestOpenAI_DeltasInTime(t *testing.T) {
	gate := make(chan struct{})
	m, _ := serve(t, testLimits(), always(fakemodel.Reply{Steps: []fakemodel.Step{{Text: "first"}, fakemodel.Gate(gate), {Text: "second"}}}))
	resp, err := m.Stream(t.Context(), hello(), func(d session.Delta) error {
		if d.Text == "first" {
			close(gate)
		}
		return nil
	})
	if err != nil || resp.Text != "firstsecond" {
		t.Errorf("got %q, error %v", resp.Text, err)
	}
}
