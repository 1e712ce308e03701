package fakemodel

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// postResponses sends a body to the responses wire.
func postResponses(t *testing.T, s *Server, body string) (int, string) {
	t.Helper()
	res, err := client.Post(s.URL()+"/responses", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

const plainResponses = `{"model":"m","stream":true,"store":false,"include":["reasoning.encrypted_content"],"input":[{"role":"user","content":"hi"}]}`

// TestResponses_Wire checks the order of events, their numbers, and what the terminal event says.
func TestResponses_Wire(t *testing.T) {
	s := start(t, func(Request) Reply {
		return Reply{Steps: []Step{{Reasoning: "r"}, {Text: "a"}, {Text: "b"}}, Usage: &Usage{Prompt: 3, Completion: 4, CacheRead: 5, Reasoning: 2},
			Calls: []Call{{Name: "f", Args: `{"x":1}`, Pieces: 2}}}
	})
	_, body := postResponses(t, s, plainResponses)
	var names []string
	var last map[string]any
	for i, e := range strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		name, data, _ := strings.Cut(strings.TrimPrefix(e, "event: "), "\ndata: ")
		last = nil
		if err := json.Unmarshal([]byte(data), &last); err != nil || last["type"] != name || last["sequence_number"] != float64(i) {
			t.Fatalf("event %d is %s, error %v", i, e, err)
		}
		names = append(names, strings.TrimPrefix(name, "response."))
	}
	want := "created in_progress " +
		"output_item.added reasoning_summary_part.added reasoning_summary_text.delta reasoning_summary_text.done reasoning_summary_part.done output_item.done " +
		"output_item.added content_part.added output_text.delta output_text.delta output_text.done content_part.done output_item.done " +
		"output_item.added function_call_arguments.delta function_call_arguments.delta function_call_arguments.done output_item.done completed"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	end := string(encode(last["response"]))
	for _, part := range []string{`"status":"completed"`, `"input_tokens":8`, `"cached_tokens":5`, `"reasoning_tokens":2`, `"call_id":"call_fake_1_0"`, `"text":"ab"`,
		`"encrypted_content":"` + seal("m", "rs_fake_1_0", 0, "r") + `"`} {
		if !strings.Contains(end, part) {
			t.Errorf("no %s in %s", part, end)
		}
	}
}

// TestResponses_Ends: how an answer may end beside well.
func TestResponses_Ends(t *testing.T) {
	for finish, want := range map[string]string{"length": `"incomplete_details":{"reason":"max_output_tokens"}`, "content_filter": `"reason":"content_filter"`, "error": `"status":"failed"`} {
		s := start(t, func(Request) Reply { return Reply{Steps: []Step{{Refusal: "no"}}, Finish: finish} })
		if _, body := postResponses(t, s, plainResponses); !strings.Contains(body, want) || strings.Contains(body, "response.completed") || !strings.Contains(body, `"refusal":"no"`) {
			t.Errorf("%s: %s", finish, body)
		}
	}
}

// TestResponses_Refusals lists what the service refuses, and beside it what it takes.
func TestResponses_Refusals(t *testing.T) {
	s := start(t, func(Request) Reply { return Text("x") })
	const call, out = `{"type":"function_call","call_id":"a","name":"f","arguments":"{"}`, `{"type":"function_call_output","call_id":"a","output":"x"}`
	sealedItem := `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"` + seal("m", "rs_1", 0, "t") + `"}`
	const said = `{"type":"message","id":"msg_1_after_rs_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"x"}]}`
	for _, c := range []struct{ name, items, more, want string }{
		{"plain", `{"role":"user","content":"x"}`, "", ""},
		{"call and output", call + "," + out, "", ""},
		{"reasoning and what it led to", sealedItem + "," + said, "", ""},
		{"nothing", "", "", "must be provided"},
		{"no output", call, "", "No tool output found for function call a"},
		{"no call", out, "", "No tool call found"},
		{"output before its call", out + "," + call, "", "No tool call found"},
		{"two outputs", call + "," + out + "," + out, "", "Duplicate function call output"},
		{"one id for two calls", call + "," + out + "," + call, "", "Duplicate function call"},
		{"something between call and output", call + `,{"role":"user","content":"x"},` + out, "", "must be followed by tool messages"},
		{"no call id", `{"type":"function_call","call_id":"","name":"f","arguments":""}`, "", "call_id"},
		{"bad name", `{"type":"function_call","call_id":"a","name":"f f","arguments":""}`, "", "name"},
		{"one item twice", said + "," + said, "", "without its required 'reasoning' item"},
		{"an item id twice", sealedItem + "," + said + "," + said, "", "Duplicate item found with id msg_1_after_rs_1"},
		{"reasoning alone", sealedItem, "", "without its required following item"},
		{"reasoning parted from its item", sealedItem + `,{"role":"user","content":"x"},` + said, "", "without its required following item"},
		{"reasoning before another's item", sealedItem + "," + call + "," + out, "", "without its required following item"},
		{"reasoning that was changed", strings.Replace(sealedItem, "sig", "sog", 1) + "," + said, "", "could not be verified"},
		{"reasoning that is not encrypted", `{"type":"reasoning","id":"rs_1","summary":[]},` + said, "", "Items are not persisted"},
		{"a null status", strings.Replace(sealedItem, `"summary"`, `"status":null,"summary"`, 1) + "," + said, "", "got null"},
		{"words of the user in an answer", `{"role":"assistant","content":[{"type":"input_text","text":"x"}]}`, "", "Supported values are: 'output_text', 'refusal'"},
		{"unknown role", `{"role":"tool","content":"x"}`, "", "Invalid value: 'tool'"},
		{"unknown item", `{"type":"news"}`, "", "Invalid value: 'news'"},
		{"unknown member", `{"role":"user","content":"x"}`, `,"stream_options":{"include_usage":true}`, "Unknown parameter"},
		{"unknown member of an item", `{"role":"user","content":"x","tool_calls":[]}`, "", "Unknown parameter"},
		{"low limit", `{"role":"user","content":"x"}`, `,"max_output_tokens":15`, "integer below minimum"},
		{"strict by silence", `{"role":"user","content":"x"}`, `,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]`, "additionalProperties"},
	} {
		status, body := postResponses(t, s, `{"model":"m","stream":true,"store":false,"input":[`+c.items+`]`+c.more+`}`)
		if c.want == "" && status != 200 || c.want != "" && (status != 400 || !strings.Contains(body, c.want)) {
			t.Errorf("%s: %d %s", c.name, status, body)
		}
	}
}

// FuzzParseResponses: no body crashes the reader, and what it takes obeys the rule for pairs.
func FuzzParseResponses(f *testing.F) {
	f.Add([]byte(plainResponses))
	f.Add([]byte(`{"model":"m","store":true,"instructions":"x","tools":[{"type":"function","name":"f","strict":false,"parameters":{"type":"object"}}],"input":[{"type":"reasoning","id":"rs","summary":[]},` +
		`{"type":"function_call","id":"fc_after_rs","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"x"}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := Parse("responses", body)
		if err == nil && CheckPairs(req.Messages) != nil {
			t.Errorf("taken: %s", body)
		}
		if err != nil && err.Error() == "" {
			t.Error("refused without a word")
		}
	})
}
