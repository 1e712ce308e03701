package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/conformance/fakemodel"
	"holdfast/session"
	"holdfast/usage"
)

// serveMessages is serve for the messages wire.
func serveMessages(t testing.TB, limits Limits, handler func(fakemodel.Request) fakemodel.Reply) (*Anthropic, *fakemodel.Server) {
	t.Helper()
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_BASE_URL", "ANTHROPIC_PROFILE"} {
		if tt, ok := t.(*testing.T); ok {
			tt.Setenv(name, "http://from.the.process.invalid") // must not matter
		}
	}
	s := fakemodel.New(handler)
	t.Cleanup(s.Close)
	m, err := NewAnthropic(AnthropicConfig{Model: "claude-fake", BaseURL: s.Origin(), Key: testKey, CredKey: []byte("store"), Limits: limits,
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, s
}

func native(resp session.ModelResponse) []string {
	if resp.Native == nil {
		return nil
	}
	var out []string
	for _, b := range resp.Native.Blocks {
		out = append(out, string(b))
	}
	return out
}

func TestAnthropic_Answers(t *testing.T) {
	known := usage.Tokens{Input: 10, Output: 5, Known: true}
	two := []fakemodel.Call{{ID: "a", Name: "read", Args: `{"path": "ü<>&", "n": 1.0}`, Pieces: 5}, {ID: "b", Name: "shell", Args: `{}`}}
	wantTwo := []session.Call{{ID: "a", Name: "read", Args: two[0].Args}, {ID: "b", Name: "shell", Args: "{}"}}
	cases := []struct {
		name   string
		reply  fakemodel.Reply
		want   session.ModelResponse
		blocks []string // nil: no native form
	}{
		{"text", fakemodel.Text("Hel", "lo"), session.ModelResponse{Text: "Hello", Finish: session.FinishStop, Usage: usage.Tokens{Input: 10, Output: 2, Known: true}},
			[]string{`{"text":"Hello","type":"text"}`}},
		{"what the cache held is input", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}}, Usage: &fakemodel.Usage{Prompt: 1, Completion: 2, CacheRead: 30, CacheWrite: 400}},
			session.ModelResponse{Text: "x", Finish: session.FinishStop, Usage: usage.Tokens{Input: 431, Output: 2, Known: true}}, []string{`{"text":"x","type":"text"}`}},
		{"no usage", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}}}, session.ModelResponse{Text: "x", Finish: session.FinishStop}, []string{`{"text":"x","type":"text"}`}},
		{"parallel calls", fakemodel.Calls(two...), session.ModelResponse{Calls: wantTwo, Finish: session.FinishCalls, Usage: known},
			[]string{`{"id":"a","input":{"path":"ü<>&","n":1.0},"name":"read","type":"tool_use"}`, `{"id":"b","input":{},"name":"shell","type":"tool_use"}`}},
		{"calls that are not streamed", fakemodel.Calls(fakemodel.Call{ID: "a", Name: "read", Args: `{"path":"x"}`, Whole: true}),
			session.ModelResponse{Calls: []session.Call{{ID: "a", Name: "read", Args: `{"path":"x"}`}}, Finish: session.FinishCalls, Usage: known},
			[]string{`{"id":"a","input":{"path":"x"},"name":"read","type":"tool_use"}`}},
		{"calls behind end_turn", fakemodel.Reply{Calls: two[1:], Finish: "end_turn", Usage: &fakemodel.Usage{Prompt: 10, Completion: 5}},
			session.ModelResponse{Calls: wantTwo[1:], Finish: session.FinishCalls, Usage: known}, []string{`{"id":"b","input":{},"name":"shell","type":"tool_use"}`}},
		{"broken arguments are kept and not sent back", fakemodel.Calls(fakemodel.Call{ID: "a", Name: "read", Args: `{"path`}),
			session.ModelResponse{Calls: []session.Call{{ID: "a", Name: "read", Args: `{"path`}}, Finish: session.FinishCalls, Usage: known}, nil},
		{"limit in the middle of a call", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}}, Calls: two, Finish: "length"},
			session.ModelResponse{Text: "x", Finish: session.FinishLength}, nil},
		{"window full", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}}, Calls: two, Finish: "model_context_window_exceeded"},
			session.ModelResponse{Text: "x", Finish: session.FinishLength}, nil},
		{"refusal", fakemodel.Reply{Steps: []fakemodel.Step{{Refusal: "no"}}, Calls: two, Finish: "content_filter"},
			session.ModelResponse{Text: "no", Finish: session.FinishRefusal}, nil},
		{"kept alive in between", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "a"}, {Comment: "x", Count: 3}, {Text: "b"}}},
			session.ModelResponse{Text: "ab", Finish: session.FinishStop}, []string{`{"text":"ab","type":"text"}`}},
		{"an event nobody knows", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "a"}, {Raw: "event: news\ndata: {\"type\":\"news\",\"x\":[1]}\n\n"}, {Text: "b"}}},
			session.ModelResponse{Text: "ab", Finish: session.FinishStop}, []string{`{"text":"ab","type":"text"}`}},
		{"characters cut anywhere", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "ünï€😀"}, {Text: "漢字"}}, Chop: 1},
			session.ModelResponse{Text: "ünï€😀漢字", Finish: session.FinishStop}, []string{`{"text":"ünï€😀漢字","type":"text"}`}},
		{"empty", fakemodel.Reply{}, session.ModelResponse{Finish: session.FinishStop}, []string{}},
		{"empty block", fakemodel.Reply{Steps: []fakemodel.Step{{Apart: true}}, Calls: two[1:]}, session.ModelResponse{Calls: wantTwo[1:], Finish: session.FinishCalls},
			[]string{`{"text":"","type":"text"}`, `{"id":"b","input":{},"name":"shell","type":"tool_use"}`}},
		{"a large chunk", fakemodel.Text(strings.Repeat("0123456789", 200_000)), session.ModelResponse{Text: strings.Repeat("0123456789", 200_000),
			Finish: session.FinishStop, Usage: usage.Tokens{Input: 10, Output: 1, Known: true}}, []string{`{"text":"` + strings.Repeat("0123456789", 200_000) + `","type":"text"}`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, _ := serveMessages(t, testLimits(), always(c.reply))
			h := ask(t.Context(), m, hello())
			c.want.Usage.Parts = partsOf(c.reply, "messages")
			if h.err != nil {
				t.Fatal(h.err)
			}
			got := native(h.resp)
			if (h.resp.Native == nil) != (c.blocks == nil) || strings.Join(got, "\n") != strings.Join(c.blocks, "\n") {
				t.Errorf("blocks\n%.300s\nwant\n%.300s", strings.Join(got, "\n"), strings.Join(c.blocks, "\n"))
			}
			h.resp.Native = nil
			if !reflect.DeepEqual(h.resp, c.want) || h.text != c.want.Text {
				t.Errorf("got  %.300s\nwant %.300s", mustJSON(t, h.resp), mustJSON(t, c.want))
			}
		})
	}
}

// TestAnthropic_Ids: calls without an id get one; an id used twice in one answer is refused.
func TestAnthropic_Ids(t *testing.T) {
	m, _ := serveMessages(t, testLimits(), always(fakemodel.Calls(fakemodel.Call{NoID: true, Name: "f", Args: "{}"}, fakemodel.Call{NoID: true, Name: "f", Args: "{}"})))
	h := ask(t.Context(), m, hello())
	if h.err != nil || len(h.resp.Calls) != 2 || h.resp.Calls[0].ID != "call_1" || h.resp.Calls[1].ID != "call_2" {
		t.Errorf("got %s, error %v", mustJSON(t, h.resp), h.err)
	}
	m, _ = serveMessages(t, testLimits(), always(fakemodel.Calls(fakemodel.Call{ID: "a", Name: "f", Args: "{}"}, fakemodel.Call{ID: "a", Name: "g", Args: "{}"})))
	if me := modelError(t, ask(t.Context(), m, hello()).err); me.Kind != session.ModelBadRequest {
		t.Errorf("got %+v", me)
	}
}

func TestAnthropic_Faults(t *testing.T) {
	step := []fakemodel.Step{{Reasoning: "hm"}, {Text: "par"}, {Text: "tial"}}
	calls := []fakemodel.Call{{ID: "a", Name: "shell", Args: "{}"}}
	gate := make(chan struct{})
	t.Cleanup(func() { close(gate) })
	quick := Limits{Idle: 300 * time.Millisecond}
	cases := []struct {
		name    string
		reply   fakemodel.Reply
		limits  Limits
		kind    session.ModelErrorKind
		status  int
		retry   time.Duration
		message string
	}{
		{name: "clean end before the end mark", reply: fakemodel.Reply{Steps: step, Calls: calls, End: fakemodel.EndCut}, kind: session.ModelCutOff},
		{name: "stop reason without the end mark", reply: fakemodel.Reply{Steps: step, Calls: calls, End: fakemodel.EndUnmarked}, kind: session.ModelCutOff},
		{name: "end mark without a stop reason", reply: fakemodel.Reply{Steps: append(step[:3:3], fakemodel.Step{Raw: "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"}),
			End: fakemodel.EndCut}, kind: session.ModelCutOff},
		{name: "end mark in the middle of a call", reply: fakemodel.Reply{Steps: []fakemodel.Step{{Raw: "event: content_block_start\n" +
			"data: {\"type\":\"content_block_start\",\"index\":7,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"shell\",\"input\":{}}}\n\n"}}, Finish: "tool_calls"},
			kind: session.ModelCutOff},
		{name: "connection closed", reply: fakemodel.Reply{Steps: step, End: fakemodel.EndAbort}, kind: session.ModelNetwork},
		{name: "connection reset", reply: fakemodel.Reply{Steps: step, End: fakemodel.EndReset}, kind: session.ModelNetwork},
		{name: "silence", reply: fakemodel.Reply{Steps: step, End: fakemodel.EndStall}, limits: quick, kind: session.ModelNetwork, message: "sent nothing more"},
		{name: "only kept alive", reply: fakemodel.Reply{Steps: append(step[:3:3], fakemodel.KeepAlive(20*time.Millisecond, 1<<20))}, limits: quick,
			kind: session.ModelNetwork, message: "sent nothing more"},
		{name: "no response", reply: fakemodel.Reply{Steps: []fakemodel.Step{fakemodel.Gate(gate)}}, limits: quick, kind: session.ModelNetwork},
		{name: "broken event", reply: fakemodel.Reply{Steps: append(step[:3:3], fakemodel.Broken()), Calls: calls}, kind: session.ModelCutOff},
		{name: "error event: overloaded", reply: fakemodel.Reply{Steps: append(step[:3:3], fakemodel.ErrorEvent("Overloaded", "overloaded_error", ""))},
			kind: session.ModelOverloaded, status: 200, message: "Overloaded"},
		{name: "error event: rate limit", reply: fakemodel.Reply{Steps: append(step[:3:3], fakemodel.ErrorEvent("slow down", "rate_limit_error", ""))},
			kind: session.ModelRateLimit, status: 200},
		{name: "error event: invalid", reply: fakemodel.Reply{Steps: append(step[:3:3], fakemodel.ErrorEvent("bad", "invalid_request_error", ""))},
			kind: session.ModelBadRequest, status: 200},
		{name: "error event: too long", reply: fakemodel.Reply{Steps: []fakemodel.Step{fakemodel.ErrorEvent("prompt is too long: 300000 tokens > 200000 maximum", "invalid_request_error", "")}},
			kind: session.ModelOverflow, status: 200},
		{name: "error event with the key in it", reply: fakemodel.Reply{Steps: []fakemodel.Step{fakemodel.ErrorEvent("bad key "+testKey, "authentication_error", "")}},
			kind: session.ModelAuth, status: 200},
		{name: "429", reply: fakemodel.Error(429, "slow down", "").With("Retry-After", "3600"), kind: session.ModelRateLimit, status: 429, retry: time.Hour, message: "slow down"},
		{name: "429 with a date", reply: fakemodel.Error(429, "x", "").With("Retry-After", "Fri, 02 Jan 2026 03:05:05 GMT"), kind: session.ModelRateLimit, status: 429, retry: time.Minute},
		{name: "529", reply: fakemodel.Error(529, "Overloaded", "").With("Retry-After", "2"), kind: session.ModelOverloaded, status: 529, retry: 2 * time.Second, message: "Overloaded"},
		{name: "500", reply: fakemodel.Error(500, "x", ""), kind: session.ModelOverloaded, status: 500},
		{name: "401 that echoes the key", reply: fakemodel.Error(401, "invalid x-api-key "+testKey, ""), kind: session.ModelAuth, status: 401},
		{name: "403", reply: fakemodel.Error(403, "no", ""), kind: session.ModelAuth, status: 403},
		{name: "404", reply: fakemodel.Error(404, "model: claude-none", ""), kind: session.ModelNotFound, status: 404, message: "model: claude-none"},
		{name: "413", reply: fakemodel.Error(413, "x", ""), kind: session.ModelOverflow, status: 413},
		{name: "too long", reply: fakemodel.Error(400, "prompt is too long: 300000 tokens > 200000 maximum", ""), kind: session.ModelOverflow, status: 400},
		{name: "400", reply: fakemodel.Error(400, "messages: bad", ""), kind: session.ModelBadRequest, status: 400, message: "messages: bad"},
		{name: "redirect", reply: fakemodel.Reply{Status: 307}.With("Location", "http://elsewhere.invalid/v1/messages"), kind: session.ModelBadRequest, status: 307, message: "http://elsewhere.invalid"},
		{name: "page", reply: fakemodel.HTML(200), kind: session.ModelBadRequest, status: 200, message: "web page"},
		{name: "proxy page", reply: fakemodel.HTML(502), kind: session.ModelOverloaded, status: 502},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			limits := c.limits
			if limits == (Limits{}) {
				limits = testLimits()
			}
			m, s := serveMessages(t, limits, always(c.reply))
			h := ask(t.Context(), m, hello())
			me := modelError(t, h.err)
			if me.Kind != c.kind || me.Status != c.status || me.RetryAfter != c.retry || !strings.Contains(me.Message, c.message) {
				t.Errorf("got %+v", me)
			}
			if !reflect.DeepEqual(h.resp, session.ModelResponse{}) {
				t.Errorf("a failed request has an answer: %s", mustJSON(t, h.resp))
			}
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%d requests were made", n)
			}
		})
	}
}

// TestAnthropic_CutAnywhere: wherever the body ends cleanly, there is an answer exactly when the whole end mark came.
func TestAnthropic_CutAnywhere(t *testing.T) {
	reply := fakemodel.Reply{Steps: []fakemodel.Step{{Reasoning: "tho"}, {Redacted: "x"}, {Text: "wörd"}}, Usage: &fakemodel.Usage{Prompt: 1, Completion: 1},
		Calls: []fakemodel.Call{{ID: "a", Name: "f", Args: `{"x":1}`, Pieces: 2}}}
	m, _ := serveMessages(t, testLimits(), func(fakemodel.Request) fakemodel.Reply { return reply })
	answers := 0
	for reply.CutAt = 1; ; reply.CutAt++ {
		h := ask(t.Context(), m, hello())
		if h.err == nil {
			if len(h.resp.Calls) != 1 || h.resp.Text != "wörd" || len(native(h.resp)) != 4 {
				t.Fatalf("cut after %d bytes, the answer is %s", reply.CutAt, mustJSON(t, h.resp))
			}
			answers++
			if answers == 2 { // the last byte is the second line break of the end mark
				break
			}
			continue
		}
		if answers > 0 {
			t.Fatalf("more bytes and no answer: %v", h.err)
		}
		if me := modelError(t, h.err); me.Kind != session.ModelCutOff || !reflect.DeepEqual(h.resp, session.ModelResponse{}) {
			t.Fatalf("cut after %d bytes: %v, %s", reply.CutAt, h.err, mustJSON(t, h.resp))
		}
		if reply.CutAt > 10_000 {
			t.Fatal("there never was an answer")
		}
	}
}

// TestAnthropic_Cancel: the context's own error comes back at once, also from a stream that says nothing.
func TestAnthropic_Cancel(t *testing.T) {
	m, _ := serveMessages(t, testLimits(), always(fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}}, End: fakemodel.EndStall}))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := m.Stream(ctx, hello(), func(session.Delta) error { cancel(); return nil })
	if err != context.Canceled { //nolint:errorlint // the bare error is promised
		t.Errorf("got %v", err)
	}
	full := errors.New("disk full")
	if _, err := m.Stream(t.Context(), hello(), func(session.Delta) error { return full }); err != full { //nolint:errorlint // comes back as it is
		t.Errorf("got %v", err)
	}
}

// through is what the store does to an answer.
func through(t *testing.T, n *session.Native) *session.Native {
	t.Helper()
	var out *session.Native
	if err := json.Unmarshal([]byte(mustJSON(t, n)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// answered appends an answer and the results of its calls to a conversation, as the session does.
func answered(t *testing.T, req session.ModelRequest, resp session.ModelResponse) session.ModelRequest {
	req.Messages = append(req.Messages[:len(req.Messages):len(req.Messages)],
		session.Message{Role: session.RoleAssistant, Text: resp.Text, Calls: resp.Calls, Native: through(t, resp.Native)})
	for _, c := range resp.Calls {
		req.Messages = append(req.Messages, session.Message{Role: session.RoleTool, CallID: c.ID, Text: "result <of> " + c.ID})
	}
	return req
}

// TestAnthropic_ThoughtsGoBack: the fake refuses a signature that was changed, moved or left behind its history.
func TestAnthropic_ThoughtsGoBack(t *testing.T) {
	m, s := serveMessages(t, testLimits(), func(r fakemodel.Request) fakemodel.Reply {
		reply := fakemodel.Reply{Steps: []fakemodel.Step{{Reasoning: "first <thought> & \"so on\" "}, {Reasoning: "ü\u2028"}, {Redacted: "hidden"}, {Reasoning: "third", Apart: true}, {Apart: true},
			{Text: "I say <this>"}}}
		if len(r.Results()) < 6 {
			reply.Calls = []fakemodel.Call{{Name: "f", Args: `{"a":"<b>"}`, Pieces: 3}, {Name: "f", Args: `{}`}}
		}
		return reply
	})
	req := fullRequest()
	req.Messages = req.Messages[:1]
	for range 4 {
		h := ask(t.Context(), m, req)
		if h.err != nil {
			t.Fatal(h.err)
		}
		if want := "first <thought> & \"so on\" ü\u2028\n\nthird"; h.resp.Thought != want || h.thought != want {
			t.Errorf("thought %q", h.resp.Thought)
		}
		req = answered(t, req, h.resp)
	}
	req.Messages = append(req.Messages, session.Message{Role: session.RoleUser, Text: "more"})
	if h := ask(t.Context(), m, req); h.err != nil {
		t.Fatal(h.err)
	}
	last := s.Requests()[4]
	n := 0
	for _, msg := range last.Messages {
		n += len(msg.Thoughts)
	}
	if n != 4*3 {
		t.Errorf("%d thoughts went back: %s", n, last.Body)
	}

	// What signatures are bound to has changed: they stay away, from there on, and the rest of the conversation is as it was.
	for name, c := range map[string]struct {
		change func(*session.ModelRequest)
		kept   int
	}{
		"system":        {func(r *session.ModelRequest) { r.System += " Mode: plan" }, 0},
		"tools":         {func(r *session.ModelRequest) { r.Tools = r.Tools[:1] }, 0},
		"late result":   {func(r *session.ModelRequest) { r.Messages[5].Text = "late" }, 6},
		"lost in store": {func(r *session.ModelRequest) { r.Messages[4].Native = nil }, 3},
		"other id":      {func(r *session.ModelRequest) { r.Messages[1].Calls[0].ID, r.Messages[2].CallID = "x", "x" }, 0},
	} {
		changed := req
		changed.Messages = append([]session.Message(nil), req.Messages...)
		for i, msg := range changed.Messages {
			changed.Messages[i].Calls = append([]session.Call(nil), msg.Calls...)
		}
		c.change(&changed)
		h := ask(t.Context(), m, changed)
		if h.err != nil {
			t.Errorf("%s: %v", name, h.err)
			continue
		}
		reqs := s.Requests()
		kept, texts := 0, 0
		for _, msg := range reqs[len(reqs)-1].Messages {
			kept += len(msg.Thoughts)
			if msg.Role == "assistant" && msg.Content == "I say <this>" {
				texts++
			}
		}
		if kept != c.kept || texts != 4 {
			t.Errorf("%s: %d thoughts and %d texts went back, want %d and 4", name, kept, texts, c.kept)
		}
	}
	// An altered signature that reaches the wire is refused, so the checks above mean something.
	raw := strings.Replace(string(last.Body), "sig+/", "sig+/A", 1)
	if _, err := fakemodel.Parse("anthropic", []byte(raw)); err == nil || !strings.Contains(err.Error(), "signature") {
		t.Errorf("the fake takes an altered signature: %v", err)
	}
}

func TestAnthropic_Request(t *testing.T) {
	m, s := serveMessages(t, testLimits(), always(fakemodel.Text("ok")))
	req := fullRequest()
	req.Messages[3].IsError = true
	for range 2 {
		if h := ask(t.Context(), m, req); h.err != nil {
			t.Fatal(h.err)
		}
	}
	reqs := s.Requests()
	got := reqs[0]
	if string(got.Body) != string(reqs[1].Body) {
		t.Errorf("the same request gave other bytes:\n%s\n%s", got.Body, reqs[1].Body)
	}
	id := messageID(strings.Repeat("long", 20))
	want := []fakemodel.Message{
		{Role: "system", Content: "Be brief."},
		{Role: "user", Content: "do it <now> & \"well\""},
		{Role: "assistant", Content: "yes", ToolCalls: []fakemodel.ToolCall{{ID: "a", Name: "read", Args: `{"path":"x"}`}, {ID: "b", Name: "no_such_tool_", Args: "{}"}}},
		{Role: "tool", Content: "content", ToolCallID: "a"},
		{Role: "tool", Content: "unknown tool", ToolCallID: "b", IsError: true},
		{Role: "assistant", ToolCalls: []fakemodel.ToolCall{{ID: id, Name: "read", Args: "{}"}}},
		{Role: "tool", ToolCallID: id},
		{Role: "assistant", Content: "done"},
		{Role: "user", Content: "more"},
	}
	if !reflect.DeepEqual(got.Messages, want) {
		t.Errorf("got  %s\nwant %s", mustJSON(t, got.Messages), mustJSON(t, want))
	}
	for _, part := range []string{`"input_schema":{"type":"object","properties":{"zeta":{"type":"string"},"alpha":{"maximum":9007199254740993}}}`, `"max_tokens":32000`,
		`"thinking":{"display":"summarized","type":"adaptive"}`, `"stream":true`, `"cache_control":{"type":"ephemeral"}`} {
		if !strings.Contains(string(got.Body), part) {
			t.Errorf("%s is not in %s", part, got.Body)
		}
	}
	if strings.Count(string(got.Body), `"role"`) != 7 {
		t.Errorf("results of one answer are not in one message: %s", got.Body)
	}
	if a := got.Header.Get("Authorization") + got.Header.Get("X-Api-Key"); !strings.Contains(a, testKey) || strings.Contains(a, "process") {
		t.Errorf("the credential is %q", a)
	}
	if got.Header.Get("Traceparent") != "" || got.Header.Get("Anthropic-Version") == "" || got.Path != "/v1/messages" {
		t.Errorf("%s %v", got.Path, got.Header)
	}
}

// TestAnthropic_OddHistories: whatever a session may hold, the wire takes it.
func TestAnthropic_OddHistories(t *testing.T) {
	user := func(text string) session.Message { return session.Message{Role: session.RoleUser, Text: text} }
	agent := func(text string, calls ...session.Call) session.Message {
		return session.Message{Role: session.RoleAssistant, Text: text, Calls: calls}
	}
	result := func(id, text string) session.Message {
		return session.Message{Role: session.RoleTool, CallID: id, Text: text}
	}
	bare := func(blocks ...string) *session.Native {
		n := &session.Native{}
		for _, b := range blocks {
			n.Blocks = append(n.Blocks, json.RawMessage(b))
		}
		return n
	}
	for name, c := range map[string]struct {
		messages []session.Message
		want     string
	}{
		"nothing":                    {nil, "user[1]"},
		"blank":                      {[]session.Message{user(" \n")}, "user[1]"},
		"answer first":               {[]session.Message{agent("a"), user("b")}, "user[1] assistant[1] user[1]"},
		"answer last":                {[]session.Message{user("a"), agent("b")}, "user[1] assistant[1] user[1]"},
		"two answers":                {[]session.Message{user("a"), agent("b"), agent("c"), user("d")}, "user[1] assistant[1] user[1] assistant[1] user[1]"},
		"two users":                  {[]session.Message{user("a"), user("b")}, "user[2]"},
		"results and user":           {[]session.Message{user("a"), agent("", session.Call{ID: "1", Name: "f", Args: "x"}), result("1", "  "), user("b")}, "user[1] assistant[1] user[2]"},
		"blank text and call":        {[]session.Message{user("a"), agent(" ", session.Call{ID: "odd id!", Name: "f", Args: "{}"}), result("odd id!", "r")}, "user[1] assistant[1] user[1]"},
		"empty id":                   {[]session.Message{user("a"), agent("", session.Call{Name: "", Args: "null"}), result("", "r")}, "user[1] assistant[1] user[1]"},
		"interrupted, then a result": {[]session.Message{user("a"), agent("b"), agent("", session.Call{ID: "1", Name: "f", Args: "{}"}), result("1", "r")}, "user[1] assistant[1] user[1] assistant[1] user[1]"},
		"native of another history": {[]session.Message{user("a"), {Role: session.RoleAssistant, Text: "b", Native: bare(`{"type":"thinking","thinking":"x","signature":"bad"}`, `{"type":"text","text":"b"}`)}, user("c")},
			"user[1] assistant[1] user[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			m, s := serveMessages(t, testLimits(), always(fakemodel.Text("ok")))
			if h := ask(t.Context(), m, session.ModelRequest{Messages: c.messages}); h.err != nil {
				t.Fatal(h.err)
			}
			var body struct {
				Messages []struct {
					Role    string
					Content []json.RawMessage
				}
			}
			if err := json.Unmarshal(s.Requests()[0].Body, &body); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, msg := range body.Messages {
				got = append(got, msg.Role+"["+string(rune('0'+len(msg.Content)))+"]")
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}

func TestAnthropic_RequestErrors(t *testing.T) {
	m, s := serveMessages(t, testLimits(), always(fakemodel.Text("ok")))
	for name, req := range map[string]session.ModelRequest{
		"role":   {Messages: []session.Message{{Role: "system"}}},
		"schema": {Messages: hello().Messages, Tools: []session.ToolSpec{{Name: "x", Schema: json.RawMessage(`[]`)}}},
		"null":   {Messages: hello().Messages, Tools: []session.ToolSpec{{Name: "x", Schema: json.RawMessage(`null`)}}},
	} {
		if h := ask(t.Context(), m, req); h.err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests were made", n)
	}
}

// TestAnthropic_NoKey: a server on this machine needs none, and no other credential is sent in its place.
func TestAnthropic_NoKey(t *testing.T) {
	_, s := serveMessages(t, testLimits(), always(fakemodel.Text("ok")))
	m, err := NewAnthropic(AnthropicConfig{Model: "local", BaseURL: s.Origin(), MaxTokens: 77, Limits: testLimits()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if h := ask(t.Context(), m, hello()); h.err != nil {
		t.Fatal(h.err)
	}
	r := s.Requests()[0]
	if r.Header.Get("Authorization") != "" || r.Header.Get("X-Api-Key") != "" || r.MaxTokens != 77 || strings.Contains(string(r.Body), "thinking") {
		t.Errorf("%v %s", r.Header, r.Body)
	}
}

func TestAdapts(t *testing.T) {
	for name, want := range map[string]bool{"claude-opus-5-5": true, "claude-sonnet-4-6": true, "claude-fable-5": true, "claude-opus-4-6": true, "claude-opus-4-8": true,
		"claude-haiku-5-5": true, "claude-sonnet-4-5-20250929": false, "claude-haiku-4-5": false, "claude-opus-4-1-20250805": false, "claude-opus-4-20250514": false,
		"claude-3-5-haiku-latest": false, "qwen3": false} {
		if adapts(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// TestAnthropic_AnyChunking: whatever a model says and however it is cut, the answer is the same, and it can be sent back.
func TestAnthropic_AnyChunking(t *testing.T) {
	var reply fakemodel.Reply
	m, s := serveMessages(t, testLimits(), func(fakemodel.Request) fakemodel.Reply { return reply })
	rapid.Check(t, func(r *rapid.T) {
		reply = fakemodel.Reply{Usage: &fakemodel.Usage{Prompt: 1, Completion: 2}, Gzip: rapid.Bool().Draw(r, "gzip"), Chop: rapid.IntRange(0, 3).Draw(r, "chop")}
		var want session.ModelResponse
		thoughts := 0
		for _, text := range rapid.SliceOfN(rapid.StringN(1, 20, -1), 0, 8).Draw(r, "texts") {
			switch rapid.IntRange(0, 3).Draw(r, "kind") {
			case 0:
				reply.Steps = append(reply.Steps, fakemodel.Step{Redacted: text})
				thoughts++
			case 1:
				reply.Steps = append(reply.Steps, fakemodel.Step{Reasoning: text, Apart: true})
				thoughts++
			default:
				reply.Steps = append(reply.Steps, fakemodel.Step{Text: text, Apart: rapid.Bool().Draw(r, "apart")})
				want.Text += text
			}
		}
		for i := range rapid.IntRange(0, 4).Draw(r, "calls") {
			args, err := json.Marshal(map[string]string{rapid.String().Draw(r, "name"): rapid.String().Draw(r, "value")})
			if err != nil {
				r.Fatal(err)
			}
			call := session.Call{ID: fmt.Sprintf("id%d", i), Name: "tool", Args: string(args)}
			want.Calls = append(want.Calls, call)
			reply.Calls = append(reply.Calls, fakemodel.Call{ID: call.ID, Name: call.Name, Args: call.Args, Pieces: rapid.IntRange(1, 6).Draw(r, "pieces")})
		}
		h := ask(t.Context(), m, hello())
		if h.err != nil {
			r.Fatal(h.err)
		}
		if h.resp.Text != want.Text || h.text != want.Text || h.thought != h.resp.Thought || !reflect.DeepEqual(h.resp.Calls, want.Calls) {
			r.Fatalf("got %s, want %s", mustJSON(t, h.resp), mustJSON(t, want))
		}
		reply = fakemodel.Text("ok")
		if h := ask(t.Context(), m, answered(t, hello(), h.resp)); h.err != nil { // refused when a signature does not fit
			r.Fatal(h.err)
		}
		reqs := s.Requests()
		back := 0
		for _, msg := range reqs[len(reqs)-1].Messages {
			back += len(msg.Thoughts)
		}
		if back != 0 && back != thoughts || len(want.Calls) > 0 && back != thoughts {
			r.Fatalf("%d of %d thoughts went back: %s", back, thoughts, reqs[len(reqs)-1].Body)
		}
	})
	if err := fakemodel.ResultsPerCall(s.Requests()); err != nil {
		t.Error(err)
	}
}
