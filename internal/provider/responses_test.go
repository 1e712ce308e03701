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

// serveResponses is serve for the responses wire.
func serveResponses(t testing.TB, limits Limits, handler func(fakemodel.Request) fakemodel.Reply) (*Responses, *fakemodel.Server) {
	t.Helper()
	s := fakemodel.New(handler)
	t.Cleanup(s.Close)
	m, err := NewResponses(OpenAIConfig{Model: "fake", BaseURL: s.URL(), Key: testKey, CredKey: []byte("store"), Limits: limits,
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, s
}

func TestResponses_Answers(t *testing.T) {
	known := usage.Tokens{Input: 10, Output: 5, Known: true}
	two := []fakemodel.Call{{ID: "a", Name: "read", Args: `{"path": "ü<>&", "n": 1.0}`, Pieces: 5}, {ID: "b", Name: "shell", Args: `{}`}}
	wantTwo := []session.Call{{ID: "a", Name: "read", Args: two[0].Args}, {ID: "b", Name: "shell", Args: "{}"}}
	cases := []struct {
		name  string
		reply fakemodel.Reply
		want  session.ModelResponse
	}{
		{"text", fakemodel.Text("Hel", "lo"), session.ModelResponse{Text: "Hello", Finish: session.FinishStop, Usage: usage.Tokens{Input: 10, Output: 2, Known: true}}},
		{"text, compressed", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "Hel"}, {Text: "lo"}}, Gzip: true}, session.ModelResponse{Text: "Hello", Finish: session.FinishStop}},
		{"what the cache held is input", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}}, Usage: &fakemodel.Usage{Prompt: 1, Completion: 2, CacheRead: 30}},
			session.ModelResponse{Text: "x", Finish: session.FinishStop, Usage: usage.Tokens{Input: 31, Output: 2, Known: true}}},
		{"no usage", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}}}, session.ModelResponse{Text: "x", Finish: session.FinishStop}},
		{"usage of zero is no usage", fakemodel.Reply{Usage: &fakemodel.Usage{}}, session.ModelResponse{Finish: session.FinishStop}},
		{"parallel calls", fakemodel.Calls(two...), session.ModelResponse{Calls: wantTwo, Finish: session.FinishCalls, Usage: known}},
		{"calls that are not streamed", fakemodel.Calls(fakemodel.Call{ID: "a", Name: "read", Args: `{"path":"x"}`, Whole: true}),
			session.ModelResponse{Calls: []session.Call{{ID: "a", Name: "read", Args: `{"path":"x"}`}}, Finish: session.FinishCalls, Usage: known}},
		{"calls without ids", fakemodel.Calls(fakemodel.Call{NoID: true, Name: "f", Args: "{}"}, fakemodel.Call{NoID: true, Name: "f", Args: "{}"}),
			session.ModelResponse{Calls: []session.Call{{ID: "call_1", Name: "f", Args: "{}"}, {ID: "call_2", Name: "f", Args: "{}"}}, Finish: session.FinishCalls, Usage: known}},
		{"output limit", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "so"}}, Calls: two, Finish: "length"}, session.ModelResponse{Text: "so", Finish: session.FinishLength}},
		{"filtered", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "so"}}, Calls: two, Finish: "content_filter"}, session.ModelResponse{Text: "so", Finish: session.FinishRefusal}},
		{"refusal", fakemodel.Reply{Steps: []fakemodel.Step{{Refusal: "I will "}, {Refusal: "not."}}, Calls: two},
			session.ModelResponse{Text: "I will not.", Finish: session.FinishRefusal}},
		{"two messages", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "a"}, {Text: "b"}, {Text: "c", Apart: true}}}, session.ModelResponse{Text: "ab\n\nc", Finish: session.FinishStop}},
		{"a message that is not streamed", fakemodel.Reply{Steps: []fakemodel.Step{{Raw: "data: " + `{"type":"response.output_item.done","output_index":0,"item":` +
			`{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"all"}]}}` + "\n\n"}}},
			session.ModelResponse{Text: "all", Finish: session.FinishStop}},
		{"open reasoning", fakemodel.Reply{Steps: []fakemodel.Step{{Raw: "data: " + `{"type":"response.reasoning_text.delta","output_index":0,"delta":"hm"}` + "\n\n"}, {Text: "x"}}},
			session.ModelResponse{Text: "x", Thought: "hm", Finish: session.FinishStop}},
		{"kept alive, and events nobody knows", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "a"}, {Comment: "x", Count: 3},
			{Raw: "event: news\ndata: {\"type\":\"response.news\",\"delta\":\"zzz\"}\n\n"}, {Text: "b"}}}, session.ModelResponse{Text: "ab", Finish: session.FinishStop}},
		{"characters cut anywhere", fakemodel.Reply{Steps: []fakemodel.Step{{Text: "ünï€😀"}, {Text: "漢字"}}, Chop: 1}, session.ModelResponse{Text: "ünï€😀漢字", Finish: session.FinishStop}},
		{"empty", fakemodel.Reply{}, session.ModelResponse{Finish: session.FinishStop}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, _ := serveResponses(t, testLimits(), always(c.reply))
			h := ask(t.Context(), m, hello())
			c.want.Usage.Parts = partsOf(c.reply, "responses")
			if h.err != nil {
				t.Fatal(h.err)
			}
			if !reflect.DeepEqual(h.resp, c.want) {
				t.Errorf("got  %.500s\nwant %.500s", mustJSON(t, h.resp), mustJSON(t, c.want))
			}
			if h.text != h.resp.Text || h.thought != h.resp.Thought {
				t.Errorf("the deltas say %.200q and %.200q, the answer %.200q and %.200q", h.text, h.thought, h.resp.Text, h.resp.Thought)
			}
		})
	}
}

// TestResponses_CutAnywhere: wherever the body ends cleanly, there is an answer exactly when the whole terminal event came.
func TestResponses_CutAnywhere(t *testing.T) {
	reply := fakemodel.Reply{Steps: []fakemodel.Step{{Reasoning: "tho"}, {Text: "wörd"}}, Usage: &fakemodel.Usage{Prompt: 1, Completion: 1},
		Calls: []fakemodel.Call{{ID: "a", Name: "f", Args: `{"x":1}`, Pieces: 2}}}
	m, _ := serveResponses(t, testLimits(), func(fakemodel.Request) fakemodel.Reply { return reply })
	complete := func(n int) bool {
		reply.CutAt = n
		h := ask(t.Context(), m, hello())
		if h.err == nil {
			if len(h.resp.Calls) != 1 || h.resp.Text != "wörd" || len(native(h.resp)) != 3 {
				t.Fatalf("cut after %d bytes, the answer is %s", n, mustJSON(t, h.resp))
			}
			return true
		}
		if me := modelError(t, h.err); me.Kind != session.ModelCutOff || !reflect.DeepEqual(h.resp, session.ModelResponse{}) {
			t.Fatalf("cut after %d bytes: %v, %s", n, h.err, mustJSON(t, h.resp))
		}
		return false
	}
	const stride = 11
	n := 1
	for ; !complete(n); n += stride {
		if n > 20_000 {
			t.Fatal("there never was an answer")
		}
	}
	whole := false
	for k := n - stride; k <= n; k++ { // every byte around the end
		if now := complete(k); whole && !now {
			t.Fatalf("%d bytes are no answer, but fewer are", k)
		} else {
			whole = now
		}
	}
}

func TestResponses_Cancel(t *testing.T) {
	m, _ := serveResponses(t, testLimits(), always(fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}}, End: fakemodel.EndStall}))
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

// TestResponses_Request: the same request gives the same bytes, nothing is stored at the service, and schemas keep theirs.
func TestResponses_Request(t *testing.T) {
	m, s := serveResponses(t, testLimits(), always(fakemodel.Text("ok")))
	for range 2 {
		if h := ask(t.Context(), m, fullRequest()); h.err != nil {
			t.Fatal(h.err)
		}
	}
	got := s.Requests()[0]
	if string(got.Body) != string(s.Requests()[1].Body) {
		t.Errorf("the same request gave other bytes:\n%s\n%s", got.Body, s.Requests()[1].Body)
	}
	id := wireID(strings.Repeat("long", 20))
	want := []fakemodel.Message{
		{Role: "system", Content: "Be brief."},
		{Role: "user", Content: "do it <now> & \"well\""},
		{Role: "assistant", Content: "yes", ToolCalls: []fakemodel.ToolCall{{ID: "a", Name: "read", Args: `{"path":"x"}`}, {ID: "b", Name: "no_such_tool_", Args: "{}"}}},
		{Role: "tool", Content: "content", ToolCallID: "a"},
		{Role: "tool", Content: "unknown tool", ToolCallID: "b"},
		{Role: "assistant", ToolCalls: []fakemodel.ToolCall{{ID: id, Name: "read", Args: "{}"}}},
		{Role: "tool", ToolCallID: id},
		{Role: "assistant", Content: "done"},
		{Role: "user", Content: "more"},
	}
	if !reflect.DeepEqual(got.Messages, want) {
		t.Errorf("got  %s\nwant %s", mustJSON(t, got.Messages), mustJSON(t, want))
	}
	for _, part := range []string{`"store":false`, `"include":["reasoning.encrypted_content"]`, `"stream":true`, `"strict":false`,
		`"parameters":{"type":"object","properties":{"zeta":{"type":"string"},"alpha":{"maximum":9007199254740993}}}`} {
		if !strings.Contains(string(got.Body), part) {
			t.Errorf("no %s in %s", part, got.Body)
		}
	}
	if strings.Contains(string(got.Body), "max_") {
		t.Errorf("a limit was sent that nobody configured: %s", got.Body)
	}
	if a := got.Header.Get("Authorization"); a != "Bearer "+testKey {
		t.Errorf("Authorization is %q", a)
	}
	for name, req := range map[string]session.ModelRequest{
		"role":   {Messages: []session.Message{{Role: "system"}}},
		"schema": {Messages: hello().Messages, Tools: []session.ToolSpec{{Name: "x", Schema: json.RawMessage(`[]`)}}},
	} {
		if h := ask(t.Context(), m, req); h.err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if n := len(s.Requests()); n != 2 {
		t.Errorf("%d requests were made", n)
	}
}

// TestResponses_ReasoningIsAskedForWhereThereIsSome: models that do not reason refuse to be asked.
func TestResponses_ReasoningIsAskedForWhereThereIsSome(t *testing.T) {
	for model, want := range map[string]bool{"gpt-5": true, "o3": true, "openai/gpt-oss-120b": true, "gpt-4.1": false, "GPT-4o-mini": false, "openai/gpt-4o": false,
		"gpt-5-chat-latest": false, "chatgpt-4o-latest": false} {
		m, err := NewResponses(OpenAIConfig{Model: model, MaxTokens: 77})
		if err != nil {
			t.Fatal(err)
		}
		p, err := m.encode(hello())
		if err != nil {
			t.Fatal(err)
		}
		body := mustJSON(t, p)
		if strings.Contains(body, "encrypted_content") != want || strings.Contains(body, `"reasoning":{`) != want || !strings.Contains(body, `"max_output_tokens":77`) {
			t.Errorf("%s: %s", model, body)
		}
	}
}

// TestResponses_ReasoningGoesBack: whole and to who can read it; else the text and the calls go back without.
func TestResponses_ReasoningGoesBack(t *testing.T) {
	handler := func(r fakemodel.Request) fakemodel.Reply {
		reply := fakemodel.Reply{Steps: []fakemodel.Step{{Reasoning: "first <thought> "}, {Reasoning: "ü\u2028"}, {Redacted: "hidden"}, {Text: "I say <this>"}}}
		if len(r.Results()) < 6 {
			reply.Calls = []fakemodel.Call{{Name: "f", Args: `{"a":"<b>"}`, Pieces: 3}, {Name: "f", Args: `{}`}}
		}
		return reply
	}
	m, s := serveResponses(t, testLimits(), handler)
	req := fullRequest()
	req.Messages = req.Messages[:1]
	for range 4 {
		h := ask(t.Context(), m, req)
		if h.err != nil {
			t.Fatal(h.err)
		}
		if want := "first <thought> ü\u2028"; h.resp.Thought != want || h.thought != want {
			t.Errorf("thought %q", h.resp.Thought)
		}
		req = answered(t, req, h.resp)
	}
	req.Messages = append(req.Messages, session.Message{Role: session.RoleUser, Text: "more"})
	elsewhere := *m.endpoint
	elsewhere.identity.Credential = "another"
	for name, c := range map[string]struct {
		model  *Responses
		change func(*session.ModelRequest)
		kept   int
	}{
		"nothing":            {m, func(*session.ModelRequest) {}, 8},
		"a late result":      {m, func(r *session.ModelRequest) { r.Messages[2].Text = "late" }, 8},
		"lost in store":      {m, func(r *session.ModelRequest) { r.Messages[4].Native = nil }, 6},
		"another id":         {m, func(r *session.ModelRequest) { r.Messages[1].Calls[0].ID, r.Messages[2].CallID = "x", "x" }, 6},
		"another credential": {&Responses{endpoint: &elsewhere, client: m.client}, func(*session.ModelRequest) {}, 0},
		"another model": {m, func(r *session.ModelRequest) {
			n := *r.Messages[1].Native
			n.Model, r.Messages[1].Native = "other", &n
		}, 6},
		"half of it": {m, func(r *session.ModelRequest) {
			n := *r.Messages[1].Native
			n.Blocks, r.Messages[1].Native = n.Blocks[:2], &n
		}, 6},
	} {
		changed := req
		changed.Messages = append([]session.Message(nil), req.Messages...)
		for i, msg := range changed.Messages {
			changed.Messages[i].Calls = append([]session.Call(nil), msg.Calls...)
		}
		c.change(&changed)
		if h := ask(t.Context(), c.model, changed); h.err != nil {
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
}

// TestResponses_OnlyWholeReasoning: an answer that did not end well, or whose reasoning is not encrypted, has no form of its own.
func TestResponses_OnlyWholeReasoning(t *testing.T) {
	for name, reply := range map[string]fakemodel.Reply{
		"limit": {Steps: []fakemodel.Step{{Reasoning: "hm"}, {Text: "x"}}, Finish: "length"},
		"not encrypted": {Steps: []fakemodel.Step{{Raw: "data: " + `{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[]}}` + "\n\n"},
			{Text: "x"}}},
		"words that belong to no item": {Steps: []fakemodel.Step{{Redacted: "hm"}, {Text: "x"},
			{Raw: "data: " + `{"type":"response.output_text.delta","output_index":77,"delta":"y"}` + "\n\n"}}},
		"none": {Steps: []fakemodel.Step{{Text: "x"}}},
	} {
		m, _ := serveResponses(t, testLimits(), always(reply))
		if h := ask(t.Context(), m, hello()); h.err != nil || h.resp.Native != nil {
			t.Errorf("%s: error %v, %s", name, h.err, mustJSON(t, h.resp))
		}
	}
}

// TestResponses_AnyChunking: whatever a model says and however it is cut, the answer is the same, and it can go back.
func TestResponses_AnyChunking(t *testing.T) {
	var reply fakemodel.Reply
	m, s := serveResponses(t, testLimits(), func(fakemodel.Request) fakemodel.Reply { return reply })
	rapid.Check(t, func(r *rapid.T) {
		reply = fakemodel.Reply{Usage: &fakemodel.Usage{Prompt: 1, Completion: 2}, Gzip: rapid.Bool().Draw(r, "gzip"), Chop: rapid.IntRange(0, 9).Draw(r, "chop")}
		var want session.ModelResponse
		for _, text := range rapid.SliceOfN(rapid.StringN(1, 20, -1), 0, 8).Draw(r, "texts") {
			reply.Steps = append(reply.Steps, fakemodel.Step{Text: text})
			want.Text += text
		}
		if rapid.Bool().Draw(r, "think") {
			reply.Steps = append([]fakemodel.Step{{Reasoning: "hm"}}, reply.Steps...)
		}
		for i := range rapid.IntRange(0, 4).Draw(r, "calls") {
			call := session.Call{ID: fmt.Sprintf("id%d", i), Name: "tool", Args: rapid.String().Draw(r, "args")}
			want.Calls = append(want.Calls, call)
			reply.Calls = append(reply.Calls, fakemodel.Call{ID: call.ID, Name: call.Name, Args: call.Args, Pieces: rapid.IntRange(1, 6).Draw(r, "pieces")})
		}
		h := ask(t.Context(), m, hello())
		if h.err != nil {
			r.Fatal(h.err)
		}
		if h.resp.Text != want.Text || h.text != want.Text || !reflect.DeepEqual(h.resp.Calls, want.Calls) {
			r.Fatalf("got %s, want %s", mustJSON(t, h.resp), mustJSON(t, want))
		}
		reply = fakemodel.Text("ok")
		if h := ask(t.Context(), m, answered(t, hello(), h.resp)); h.err != nil {
			r.Fatal(h.err)
		}
	})
	if err := fakemodel.ResultsPerCall(s.Requests()); err != nil {
		t.Error(err)
	}
}
