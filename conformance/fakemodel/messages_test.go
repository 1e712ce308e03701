package fakemodel

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// postMessages sends a body to the messages wire.
func postMessages(t *testing.T, s *Server, body string) (int, string) {
	t.Helper()
	res, err := client.Post(s.Origin()+"/v1/messages", "application/json", strings.NewReader(body))
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

const plainMessages = `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`

// TestMessages_Wire compares a whole stream with what the service sends.
func TestMessages_Wire(t *testing.T) {
	s := start(t, func(Request) Reply {
		return Reply{Steps: []Step{{Reasoning: "r"}, {Comment: "c"}, {Text: "a"}, {Text: "b"}}, Usage: &Usage{Prompt: 3, Completion: 4, CacheRead: 5, CacheWrite: 6},
			Calls: []Call{{Name: "f", Args: `{"x":1}`, Pieces: 2}, {ID: "own", Name: "g", Args: "{}", Whole: true}}}
	})
	_, body := postMessages(t, s, plainMessages)
	req, err := Parse("anthropic", []byte(plainMessages))
	if err != nil {
		t.Fatal(err)
	}
	const usage = `{"cache_creation_input_tokens":6,"cache_read_input_tokens":5,"input_tokens":3,"output_tokens":`
	var want strings.Builder
	for _, e := range []string{
		`{"message":{"content":[],"id":"msg_fake_1","model":"m","role":"assistant","stop_reason":null,"stop_sequence":null,"type":"message","usage":` + usage + `1}},"type":"message_start"}`,
		`{"content_block":{"signature":"","thinking":"","type":"thinking"},"index":0,"type":"content_block_start"}`,
		`{"delta":{"thinking":"r","type":"thinking_delta"},"index":0,"type":"content_block_delta"}`,
		`{"type":"ping"}`,
		`{"delta":{"signature":"` + sign("m", req.prefix, 0, "r") + `","type":"signature_delta"},"index":0,"type":"content_block_delta"}`,
		`{"index":0,"type":"content_block_stop"}`,
		`{"content_block":{"text":"","type":"text"},"index":1,"type":"content_block_start"}`,
		`{"delta":{"text":"a","type":"text_delta"},"index":1,"type":"content_block_delta"}`,
		`{"delta":{"text":"b","type":"text_delta"},"index":1,"type":"content_block_delta"}`,
		`{"index":1,"type":"content_block_stop"}`,
		`{"content_block":{"id":"call_fake_1_0","input":{},"name":"f","type":"tool_use"},"index":2,"type":"content_block_start"}`,
		`{"delta":{"partial_json":"{\"x","type":"input_json_delta"},"index":2,"type":"content_block_delta"}`,
		`{"delta":{"partial_json":"\":1}","type":"input_json_delta"},"index":2,"type":"content_block_delta"}`,
		`{"index":2,"type":"content_block_stop"}`,
		`{"content_block":{"id":"own","input":{},"name":"g","type":"tool_use"},"index":3,"type":"content_block_start"}`,
		`{"index":3,"type":"content_block_stop"}`,
		`{"delta":{"stop_reason":"tool_use","stop_sequence":null},"type":"message_delta","usage":` + usage + `4}}`,
		`{"type":"message_stop"}`,
	} {
		name := e[strings.LastIndex(e, `"type":"`)+8:]
		name = name[:strings.Index(name, `"`)]
		if strings.Contains(e, `"type":"message_delta"`) {
			name = "message_delta"
		}
		want.WriteString("event: " + name + "\ndata: " + e + "\n\n")
	}
	if body != want.String() {
		t.Errorf("got\n%s\nwant\n%s", body, want.String())
	}
}

// TestMessages_Strict lists histories and whether the service takes them (I1).
func TestMessages_Strict(t *testing.T) {
	const (
		u  = `{"role":"user","content":"hi"}`
		a  = `{"role":"assistant","content":[{"type":"text","text":"yes"}]}`
		c1 = `{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]}`
		c2 = `{"role":"assistant","content":[{"type":"text","text":"so"},{"type":"tool_use","id":"1","name":"f","input":{}},{"type":"tool_use","id":"2","name":"f","input":{}}]}`
		r1 = `{"type":"tool_result","tool_use_id":"1","content":"one"}`
		r2 = `{"type":"tool_result","tool_use_id":"2","content":[{"type":"text","text":"two"}],"is_error":true}`
		tx = `{"type":"text","text":"and"}`
	)
	user := func(blocks ...string) string { return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}` }
	agent := func(blocks ...string) string {
		return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
	}
	msgs := func(m ...string) string {
		return `{"model":"m","max_tokens":9,"messages":[` + strings.Join(m, ",") + `]}`
	}
	thought := func(text, signature string) string {
		return `{"type":"thinking","thinking":"` + text + `","signature":"` + signature + `"}`
	}
	hidden := func(data string) string { return `{"type":"redacted_thinking","data":"` + data + `"}` }
	first, err := Parse("anthropic", []byte(msgs(u)))
	if err != nil {
		t.Fatal(err)
	}
	good := sign("m", first.prefix, 0, "x")
	seal0, seal1 := seal("m", first.prefix, 0, "h"), seal("m", first.prefix, 1, "h")
	cases := []struct{ name, body, refused string }{
		{"text", msgs(u), ""},
		{"the same role again", msgs(u, u, a, a, u), ""},
		{"calls and results", msgs(u, c2, user(r1, r2, tx)), ""},
		{"results in two messages", msgs(u, c2, user(r1), user(r2)), ""},
		{"result without content", msgs(u, c1, user(`{"type":"tool_result","tool_use_id":"1"}`)), ""},
		{"no result at the end", msgs(u, c1), "without `tool_result`"},
		{"no result before a user", msgs(u, c1, u, user(r1)), "must come first"},
		{"text before the result", msgs(u, c1, user(tx, r1)), "must come first"},
		{"one of two results", msgs(u, c2, user(r1)), "without `tool_result`"},
		{"no result, then an answer", msgs(u, c1, u, a, u), "without `tool_result`"},
		{"result without call", msgs(u, user(r1)), "unexpected `tool_use_id`"},
		{"result too late", msgs(u, c1, user(r1), a, user(r1)), "unexpected `tool_use_id`"},
		{"result twice", msgs(u, c1, user(r1, r1)), "single result"},
		{"result of an assistant", msgs(u, agent(r1), u), "unexpected `tool_use_id`"},
		{"id used again", msgs(u, c1, user(r1), c1, user(r1)), "must be unique"},
		{"id with a blank", msgs(u, strings.ReplaceAll(c1, `"1"`, `"1 2"`), user(strings.ReplaceAll(r1, `"1"`, `"1 2"`))), "pattern"},
		{"name with a blank", msgs(u, strings.ReplaceAll(c1, `"f"`, `"f g"`), user(r1)), "pattern"},
		{"arguments that are no object", msgs(u, strings.ReplaceAll(c1, `{}`, `[]`), user(r1)), "should be an object"},
		{"call of a user", msgs(u, user(`{"type":"tool_use","id":"1","name":"f","input":{}}`)), "`tool_result`"},
		{"empty text", msgs(user(`{"type":"text","text":""}`)), "non-empty"},
		{"blank string", msgs(`{"role":"user","content":" "}`), "non-empty"},
		{"blank text of the assistant", msgs(u, agent(`{"type":"text","text":"\n"}`), u), "non-empty"},
		{"blank text in a result", msgs(u, c1, user(`{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":" "}]}`)), "non-empty"},
		{"no content", msgs(`{"role":"user"}`), "non-empty list"},
		{"empty content", msgs(`{"role":"user","content":[]}`), "non-empty list"},
		{"assistant first", msgs(a, u), "first message"},
		{"assistant last", msgs(u, a), "prefill"},
		{"unknown role", msgs(`{"role":"tool","content":"x"}`), "should be 'user' or 'assistant'"},
		{"unknown block", msgs(user(`{"type":"poem"}`)), "not expected"},
		{"thought", msgs(u, agent(thought("x", good), tx), u), ""},
		{"thought and hidden thought", msgs(u, agent(thought("x", good), hidden(seal1), tx), u), ""},
		{"altered text", msgs(u, agent(thought("y", good), tx), u), "Invalid `signature`"},
		{"altered signature", msgs(u, agent(thought("x", good+"="), tx), u), "Invalid `signature`"},
		{"no signature", msgs(u, agent(`{"type":"thinking","thinking":"x"}`, tx), u), "Invalid `signature`"},
		{"thought behind another history", msgs(`{"role":"user","content":"ho"}`, agent(thought("x", good), tx), u), "Invalid `signature`"},
		{"thought of another model", strings.Replace(msgs(u, agent(thought("x", good), tx), u), `"m"`, `"n"`, 1), "Invalid `signature`"},
		{"thoughts in another order", msgs(u, agent(hidden(seal1), thought("x", good), tx), u), "Invalid `data`"},
		{"hidden thought", msgs(u, agent(hidden(seal0), tx), u), ""},
		{"altered hidden thought", msgs(u, agent(hidden("x"+seal0), tx), u), "Invalid `data`"},
		{"thought at the end", msgs(u, agent(tx, thought("x", good)), u), "final block"},
		{"marks for the cache change nothing", msgs(user(`{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}`), agent(thought("x", good), tx), u), ""},
		{"no model", `{"max_tokens":9,"messages":[` + u + `]}`, "model: Field required"},
		{"no limit", `{"model":"m","messages":[` + u + `]}`, "max_tokens: Field required"},
		{"limit of 0", `{"model":"m","max_tokens":0,"messages":[` + u + `]}`, "greater than"},
		{"no messages", `{"model":"m","max_tokens":9,"messages":[]}`, "at least one message"},
		{"unknown member", `{"model":"m","max_tokens":9,"stream_options":{},"messages":[` + u + `]}`, "unknown field"},
		{"no JSON", `{"model"`, "not valid"},
		{"system", `{"model":"m","max_tokens":9,"system":"be","messages":[` + u + `]}`, ""},
		{"empty system", `{"model":"m","max_tokens":9,"system":"","messages":[` + u + `]}`, "system"},
		{"tool", `{"model":"m","max_tokens":9,"tools":[{"name":"f","input_schema":{"type":"object"}}],"messages":[` + u + `]}`, ""},
		{"tool twice", `{"model":"m","max_tokens":9,"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"f","input_schema":{"type":"object"}}],"messages":[` + u + `]}`, "unique"},
		{"tool schema", `{"model":"m","max_tokens":9,"tools":[{"name":"f","input_schema":{"type":"string"}}],"messages":[` + u + `]}`, "'object'"},
		{"tool name", `{"model":"m","max_tokens":9,"tools":[{"name":"f.g","input_schema":{"type":"object"}}],"messages":[` + u + `]}`, "pattern"},
		{"a budget above the limit", `{"model":"m","max_tokens":9,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[` + u + `]}`, "must be greater"},
		{"a budget below the least", `{"model":"m","max_tokens":9,"thinking":{"type":"enabled","budget_tokens":5},"messages":[` + u + `]}`, "1024"},
		{"a level", `{"model":"m","max_tokens":9,"output_config":{"effort":"high"},"messages":[` + u + `]}`, ""},
		{"no such level", `{"model":"m","max_tokens":9,"output_config":{"effort":"minimal"},"messages":[` + u + `]}`, "output_config.effort"},
		{"a budget behind a call without its thought", `{"model":"m","max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[` +
			strings.Join([]string{u, c1, user(r1)}, ",") + `]}`, "Expected `thinking`"},
		{"fixed budget", `{"model":"claude-fake","max_tokens":9,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[` + u + `]}`, "thinking.type"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			handled := false
			s := start(t, func(Request) Reply { handled = true; return Text("ok") })
			status, body := postMessages(t, s, c.body)
			r := s.Requests()[0]
			if handled == (c.refused != "") || (status == http.StatusOK) != (c.refused == "") || status != http.StatusOK && !strings.Contains(body, `"invalid_request_error"`) {
				t.Errorf("handled %v, status %d: %s", handled, status, body)
			}
			if !strings.Contains(r.Refused, c.refused) || c.refused == "" && r.Refused != "" {
				t.Errorf("refused with %q", r.Refused)
			}
			if (ResultsPerCall(s.Requests()) == nil) != (c.refused == "") || r.Family != "anthropic" {
				t.Errorf("family %s, pairs: %v", r.Family, ResultsPerCall(s.Requests()))
			}
		})
	}
}

// TestServer_CutAndChop: on both wires the body ends after any number of bytes, and its pieces change nothing.
func TestServer_CutAndChop(t *testing.T) {
	reply := Text("wörd")
	s := start(t, func(Request) Reply { return reply })
	for name, get := range map[string]func() string{
		"openai": func() string {
			b, err := io.ReadAll(post(t, t.Context(), s, plain).Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		},
		"anthropic": func() string { _, body := postMessages(t, s, plainMessages); return body },
	} {
		steady := func(body string) string { return strings.NewReplacer("_fake_", "", "chatcmpl-", "").Replace(body) }
		digits := func(body string) string {
			return strings.Map(func(r rune) rune {
				if r >= '0' && r <= '9' {
					return -1
				}
				return r
			}, steady(body))
		}
		reply.CutAt, reply.Chop = 0, 0
		all := get()
		reply.Chop = 3
		if got := get(); digits(got) != digits(all) {
			t.Errorf("%s: in pieces it is\n%s\nwhole\n%s", name, got, all)
		}
		for _, n := range []int{1, 57, len(all) - 1} {
			reply.CutAt = n
			if got := get(); len(got) != n {
				t.Errorf("%s: cut after %d bytes, %d came", name, n, len(got))
			}
		}
	}
}

// TestServer_Env: each family is told where it is played, and nothing else.
func TestServer_Env(t *testing.T) {
	s := start(t, func(Request) Reply { return Text("x") })
	for _, f := range Families {
		env := strings.Join(s.Env(f), " ")
		provider := map[string]string{"responses": "openai"}[f]
		if provider == "" {
			provider = f
		}
		if !strings.Contains(env, "HOLDFAST_MODEL="+provider+"/") || !strings.Contains(env, strings.ToUpper(provider)+"_BASE_URL=http://127.0.0.1:") ||
			strings.Contains(env, "HOLDFAST_OPENAI_API=responses") != (f == "responses") {
			t.Errorf("%s: %s", f, env)
		}
	}
}

// FuzzParseMessages: no body crashes the reader, and what it takes obeys the rule for pairs.
func FuzzParseMessages(f *testing.F) {
	f.Add([]byte(plainMessages))
	f.Add([]byte(`{"model":"m","max_tokens":1,"system":[{"type":"text","text":"x"}],"tools":[{"name":"f","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"a"},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":""},{"type":"tool_use","id":"1","name":"f","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"x"}]}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := Parse("anthropic", body)
		if err == nil && CheckPairs(req.Messages) != nil {
			t.Errorf("taken: %s", body)
		}
		if err != nil && err.Error() == "" {
			t.Error("refused without a word")
		}
	})
}
