package provider

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/session"
)

// TestResponses_DoubtfulCalls: an answer whose events do not agree on its calls has none.
func TestResponses_DoubtfulCalls(t *testing.T) {
	const begun = `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":""}}`
	const part = `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"x\":1}"}`
	const over = `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":"{\"x\":1}"}}`
	const end = `{"type":"response.completed","response":{"status":"completed"}}`
	for _, c := range []struct {
		name   string
		events []string
		good   bool
	}{
		{"all agree", []string{begun, part, over, end}, true},
		{"no end of the call", []string{begun, part, end}, false},
		{"other arguments at its end", []string{begun, part, strings.Replace(over, ":1", ":2", 1), end}, false},
		{"another name at its end", []string{begun, part, strings.Replace(over, `"f"`, `"g"`, 1), end}, false},
		{"another id at its end", []string{begun, part, strings.Replace(over, `"a"`, `"b"`, 1), end}, false},
		{"another kind at its end", []string{begun, part, strings.Replace(over, "function_call", "message", 1), end}, false},
		{"a fragment behind its end", []string{begun, part, over, part, end}, false},
		{"begun twice", []string{begun, part, begun, over, end}, false},
		{"the end counts more", []string{begun, part, over, strings.Replace(end, `"status"`, `"output":[{"type":"function_call"},{"type":"function_call"}],"status"`, 1)}, false},
		{"the end counts none", []string{begun, part, over, strings.Replace(end, `"status"`, `"output":[{"type":"message"}],"status"`, 1)}, false},
		{"events behind the end", []string{begun, part, over, end, part, begun}, true},
	} {
		page := "data: " + strings.Join(c.events, "\n\ndata: ") + "\n\n"
		m, _ := serveResponses(t, testLimits(), always(fakemodel.Reply{Status: 200, Type: "text/event-stream", Page: page}))
		h := ask(t.Context(), m, hello())
		if c.good {
			if h.err != nil || len(h.resp.Calls) != 1 || h.resp.Calls[0].Args != `{"x":1}` {
				t.Errorf("%s: %s, error %v", c.name, mustJSON(t, h.resp), h.err)
			}
			continue
		}
		if me := modelError(t, h.err); me.Kind != session.ModelCutOff || h.resp.Calls != nil {
			t.Errorf("%s: %s %q, %s", c.name, me.Kind, me.Message, mustJSON(t, h.resp))
		}
	}
}

// TestResponses_Failures: what the service says in the terminal event, or in an event of its own, is told by its kind.
func TestResponses_Failures(t *testing.T) {
	for data, want := range map[string]session.ModelErrorKind{
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"had an error"}}}`:          session.ModelOverloaded,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"had an error"}}}`:   session.ModelRateLimit,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"had an error"}}}`:        session.ModelBadRequest,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"image_parse_error","message":"had an error"}}}`:     session.ModelBadRequest,
		`{"type":"response.completed","response":{"status":"failed","error":{"code":"server_error","message":"had an error"}}}`:       session.ModelOverloaded,
		`{"type":"error","code":"context_length_exceeded","message":"had an error","param":null}`:                                     session.ModelOverflow,
		`{"type":"error","code":null,"message":"had an error"}`:                                                                       session.ModelOverloaded,
		`{"type":"error","error":{"type":"insufficient_quota","code":"insufficient_quota","message":"had an error","param":"model"}}`: session.ModelAuth,
	} {
		m, _ := serveResponses(t, testLimits(), always(fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}, {Raw: "data: " + data + "\n\n"}}}))
		if me := modelError(t, ask(t.Context(), m, hello()).err); me.Kind != want || me.Message != "had an error" || me.Status != 200 {
			t.Errorf("%s: %s %d %q", data, me.Kind, me.Status, me.Message)
		}
	}
	m, _ := serveResponses(t, testLimits(), always(fakemodel.Reply{Steps: []fakemodel.Step{{Raw: `data: {"type":"response.failed","response":{"error":null}}` + "\n\n"}}}))
	modelError(t, ask(t.Context(), m, hello()).err)
}

// TestResponses_NoThoughtAlone: the wire refuses reasoning without what it led to.
func TestResponses_NoThoughtAlone(t *testing.T) {
	m, err := NewResponses(OpenAIConfig{Model: "fake"})
	if err != nil {
		t.Fatal(err)
	}
	n := &session.Native{Provider: "openai", Model: "fake", Before: m.reader(), Blocks: []json.RawMessage{json.RawMessage(`{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"x"}`)}}
	if got := m.native(session.Message{Role: session.RoleAssistant, Text: "x", Native: n}); got != nil {
		t.Errorf("sent back: %s", got)
	}
	n.Blocks = append(n.Blocks, json.RawMessage(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}`))
	if got := m.native(session.Message{Role: session.RoleAssistant, Text: "x", Native: n}); len(got) != 2 {
		t.Errorf("sent back: %s", got)
	}
}
