package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/conformance/fakemodel"
	"holdfast/session"
)

func fullRequest() session.ModelRequest {
	return session.ModelRequest{
		System: "Be brief.",
		Messages: []session.Message{
			{Role: session.RoleUser, Text: "do it <now> & \"well\""},
			{Role: session.RoleAssistant, Text: "yes", Calls: []session.Call{{ID: "a", Name: "read", Args: `{"path":"x"}`}, {ID: "b", Name: "no such tool!", Args: "{}"}}},
			{Role: session.RoleTool, CallID: "a", Text: "content"},
			{Role: session.RoleTool, CallID: "b", Text: "unknown tool"},
			{Role: session.RoleAssistant, Calls: []session.Call{{ID: strings.Repeat("long", 20), Name: "read", Args: "{}"}}},
			{Role: session.RoleTool, CallID: strings.Repeat("long", 20), Text: ""},
			{Role: session.RoleAssistant, Text: "done"},
			{Role: session.RoleUser, Text: "more"},
		},
		Tools: []session.ToolSpec{
			{Name: "read", Description: "Reads.", Schema: json.RawMessage(`{"type":"object","properties":{"zeta":{"type":"string"},"alpha":{"maximum":9007199254740993}}}`)},
			{Name: "bare"},
		},
	}
}

func TestOpenAI_Request(t *testing.T) {
	m, s := serve(t, testLimits(), always(fakemodel.Text("ok")))
	for range 2 {
		if h := ask(t.Context(), m, fullRequest()); h.err != nil {
			t.Fatal(h.err)
		}
	}
	reqs := s.Requests()
	got := reqs[0]
	if !bytes.Equal(got.Body, reqs[1].Body) {
		t.Errorf("the same request gave other bytes:\n%s\n%s", got.Body, reqs[1].Body)
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
	if !strings.Contains(string(got.Body), `"parameters":{"type":"object","properties":{"zeta":{"type":"string"},"alpha":{"maximum":9007199254740993}}}`) {
		t.Errorf("the schema was changed: %s", got.Body)
	}
	if len(got.Tools) != 2 || got.Tools[0].Description != "Reads." || !got.Stream || !got.IncludeUsage || got.Model != "fake" {
		t.Errorf("got %s", got.Body)
	}
	if strings.Contains(string(got.Body), "max_") {
		t.Errorf("a limit was sent that nobody configured: %s", got.Body)
	}
	if a := got.Header.Get("Authorization"); a != "Bearer "+testKey {
		t.Errorf("Authorization is %q", a)
	}
}

func TestOpenAI_MaxTokens(t *testing.T) {
	s := fakemodel.New(always(fakemodel.Text("ok")))
	defer s.Close()
	m, err := NewOpenAI(OpenAIConfig{Model: "fake", BaseURL: s.URL(), MaxTokens: 77, Limits: testLimits()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if h := ask(t.Context(), m, hello()); h.err != nil {
		t.Fatal(h.err)
	}
	r := s.Requests()[0]
	if r.MaxTokens != 77 || !strings.Contains(string(r.Body), `"max_tokens":77`) {
		t.Errorf("got %s", r.Body)
	}
	if a, ok := r.Header["Authorization"]; ok {
		t.Errorf("without a key a header was sent: %v", a)
	}
	own, err := NewOpenAI(OpenAIConfig{Model: "fake", MaxTokens: 77})
	if err != nil {
		t.Fatal(err)
	}
	p, err := own.encode(hello())
	if err != nil || !strings.Contains(mustJSON(t, p), `"max_completion_tokens":77`) {
		t.Errorf("for OpenAI itself: %s, error %v", mustJSON(t, p), err)
	}
}

func TestOpenAI_RequestErrors(t *testing.T) {
	m, s := serve(t, testLimits(), always(fakemodel.Text("ok")))
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

// TestOpenAI_AnyChunking: whatever a model says and however it is cut, the answer is the same.
func TestOpenAI_AnyChunking(t *testing.T) {
	var reply fakemodel.Reply
	m, s := serve(t, testLimits(), func(fakemodel.Request) fakemodel.Reply { return reply })
	rapid.Check(t, func(r *rapid.T) {
		reply = fakemodel.Reply{Usage: &fakemodel.Usage{Prompt: 1, Completion: 2}, Gzip: rapid.Bool().Draw(r, "gzip")}
		var want session.ModelResponse
		for _, text := range rapid.SliceOfN(rapid.StringN(1, 20, -1), 0, 8).Draw(r, "texts") {
			reply.Steps = append(reply.Steps, fakemodel.Step{Text: text})
			want.Text += text
		}
		for i := range rapid.IntRange(0, 4).Draw(r, "calls") {
			args := rapid.String().Draw(r, "args")
			call := session.Call{ID: fmt.Sprintf("id%d", i), Name: "tool", Args: args}
			want.Calls = append(want.Calls, call)
			reply.Calls = append(reply.Calls, fakemodel.Call{ID: call.ID, Name: call.Name, Args: args, Pieces: rapid.IntRange(1, 6).Draw(r, "pieces")})
		}
		h := ask(t.Context(), m, hello())
		if h.err != nil {
			r.Fatal(h.err)
		}
		if h.resp.Text != want.Text || h.text != want.Text || !reflect.DeepEqual(h.resp.Calls, want.Calls) {
			r.Fatalf("got %s, want %s", mustJSON(t, h.resp), mustJSON(t, want))
		}
	})
	if err := fakemodel.ResultsPerCall(s.Requests()); err != nil {
		t.Error(err)
	}
}

func TestWireID(t *testing.T) {
	seen := map[string]bool{}
	for i := range 200 {
		id := wireID(strings.Repeat("x", i))
		if len(id) > maxID || seen[id] {
			t.Errorf("the id for length %d is %q", i, id)
		}
		seen[id] = true
	}
}
