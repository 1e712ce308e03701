package provider

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/session"
	"holdfast/usage"
)

func script1(t testing.TB, text string) *Scripted {
	t.Helper()
	m, err := NewScripted("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// talk is a conversation in short: "u:" a user message, "c:" an assistant message with a call, "r:" its result, "a:" an answer.
func talk(lines ...string) session.ModelRequest {
	var req session.ModelRequest
	calls := 0
	for _, l := range lines {
		kind, text, _ := strings.Cut(l, ":")
		id := "call_" + strconv.Itoa(calls)
		switch kind {
		case "u":
			req.Messages = append(req.Messages, session.Message{Role: session.RoleUser, Text: text})
		case "a":
			req.Messages = append(req.Messages, session.Message{Role: session.RoleAssistant, Text: text})
		case "c":
			calls++
			req.Messages = append(req.Messages, session.Message{Role: session.RoleAssistant,
				Calls: []session.Call{{ID: "call_" + strconv.Itoa(calls), Name: text, Args: "{}"}}})
		case "r":
			req.Messages = append(req.Messages, session.Message{Role: session.RoleTool, CallID: id, Text: text})
		}
	}
	req.Tools = []session.ToolSpec{{Name: "read"}, {Name: "shell"}}
	return req
}

func TestScripted_Conditions(t *testing.T) {
	three := talk("u:first", "c:read", "r:alpha", "a:ok", "u:second one", "c:read", "r:beta", "c:shell", "r:gamma")
	cases := []struct {
		when string
		req  session.ModelRequest
		want bool
	}{
		{`{}`, three, true},
		{`{"user":"second"}`, three, true},
		{`{"user":"first"}`, three, false},
		{`{"contains":"first"}`, three, true},
		{`{"contains":"alpha"}`, three, true},
		{`{"contains":"alphaok"}`, three, false},
		{`{"contains":"nowhere"}`, three, false},
		{`{"last_result":"gam"}`, three, true},
		{`{"last_result":"beta"}`, three, false},
		{`{"last_result":""}`, three, true},
		{`{"last_result":""}`, talk("u:x"), false},
		{`{"results":3}`, three, true},
		{`{"results":2}`, three, false},
		{`{"results":0}`, talk("u:x"), true},
		{`{"turn_results":2}`, three, true},
		{`{"turn_results":0}`, talk("u:x", "c:read", "r:a", "a:b", "u:y"), true},
		{`{"turn_results":0}`, three, false},
		{`{"tools":["read"]}`, three, true},
		{`{"tools":["read","shell"]}`, three, true},
		{`{"tools":["read","write"]}`, three, false},
		{`{"tools":[]}`, three, true},
		{`{"user":"second","results":3,"tools":["shell"]}`, three, true},
		{`{"user":"second","results":4,"tools":["shell"]}`, three, false},
		{`{"user":""}`, session.ModelRequest{}, true},
	}
	for _, c := range cases {
		m := script1(t, `{"rules":[{"when":`+c.when+`,"say":"match"}]}`)
		h := ask(t.Context(), m, c.req)
		if h.err != nil {
			t.Fatal(h.err)
		}
		if got := h.resp.Text == "match"; got != c.want {
			t.Errorf("%s matches: %v", c.when, got)
		}
		if h.resp.Finish != session.FinishStop || h.resp.Text == "" {
			t.Errorf("%s: got %s", c.when, mustJSON(t, h.resp))
		}
	}
}

func TestScripted_Answers(t *testing.T) {
	req := talk("u:name ${user}", "c:read", `r:a "quoted" <b>`)
	cases := []struct {
		rule   string
		want   session.ModelResponse
		deltas int
	}{
		{`{"say":"Grüße!","chunks":3}`, session.ModelResponse{Text: "Grüße!", Finish: session.FinishStop}, 3},
		{`{"say":"ab","chunks":50,"think":"c"}`, session.ModelResponse{Text: "ab", Thought: "c", Finish: session.FinishStop}, 3},
		{`{"say":"x","finish":"length","usage":{"inputTokens":1,"outputTokens":2}}`,
			session.ModelResponse{Text: "x", Finish: session.FinishLength, Usage: usage.Tokens{Input: 1, Output: 2, Known: true}}, 1},
		{`{"say":"x","usage":{"inputTokens":9,"outputTokens":2,"cacheReadTokens":7,"cacheWriteTokens":0,"reasoningTokens":1}}`,
			session.ModelResponse{Text: "x", Finish: session.FinishStop, Usage: usage.Report(9, 2, usage.Parts{CacheRead: usage.Of(7), CacheWrite: usage.Of(0),
				Reasoning: usage.Of(1)})}, 1},
		{`{"say":"","finish":"refusal"}`, session.ModelResponse{Finish: session.FinishRefusal}, 0},
		{`{"calls":[{"name":"read"},{"name":"shell","args":{"z":"${result}","a":["${user}",1.50,true,null,{"k":"$${result}"}]}}]}`,
			session.ModelResponse{Finish: session.FinishCalls, Calls: []session.Call{{ID: "call_2", Name: "read", Args: "{}"},
				{ID: "call_3", Name: "shell", Args: `{"a":["name ${user}",1.50,true,null,{"k":"${result}"}],"z":"a \"quoted\" <b>"}`}}}, 0},
		{`{"calls":[{"name":"shell","args":"{\"cut ${result}"}]}`,
			session.ModelResponse{Finish: session.FinishCalls, Calls: []session.Call{{ID: "call_2", Name: "shell", Args: `{"cut a "quoted" <b>`}}}, 0},
		{`{"say":"${user}|${result}|$${user}|$|}"}`, session.ModelResponse{Text: `name ${user}|a "quoted" <b>|${user}|$|}`, Finish: session.FinishStop}, 1},
	}
	for _, c := range cases {
		h := ask(t.Context(), script1(t, `{"rules":[`+c.rule+`]}`), req)
		if h.err != nil {
			t.Errorf("%s: %v", c.rule, h.err)
		}
		if !reflect.DeepEqual(h.resp, c.want) || h.deltas != c.deltas || h.text != c.want.Text || h.thought != c.want.Thought {
			t.Errorf("%s:\ngot  %s in %d deltas\nwant %s in %d", c.rule, mustJSON(t, h.resp), h.deltas, mustJSON(t, c.want), c.deltas)
		}
	}
}

func TestScripted_Faults(t *testing.T) {
	cases := []struct {
		rule string
		want session.ModelError
		text string
	}{
		{`{"say":"half","calls":[{"name":"read"}],"cut_off":true}`, session.ModelError{Kind: session.ModelCutOff}, "half"},
		{`{"error":{"kind":"overloaded","message":"busy","retry_after_ms":1500}}`,
			session.ModelError{Kind: session.ModelOverloaded, Status: 503, Message: "busy", RetryAfter: 1500 * time.Millisecond}, ""},
		{`{"say":"half","error":{"kind":"overloaded","message":"busy"}}`, session.ModelError{Kind: session.ModelOverloaded, Message: "busy"}, "half"},
		{`{"error":{"kind":"rate_limit"}}`, session.ModelError{Kind: session.ModelRateLimit, Status: 429}, ""},
		{`{"error":{"kind":"network"}}`, session.ModelError{Kind: session.ModelNetwork}, ""},
		{`{"error":{"kind":"auth"}}`, session.ModelError{Kind: session.ModelAuth, Status: 401}, ""},
		{`{"error":{"kind":"model_not_found"}}`, session.ModelError{Kind: session.ModelNotFound, Status: 404}, ""},
		{`{"error":{"kind":"context_overflow"}}`, session.ModelError{Kind: session.ModelOverflow, Status: 400}, ""},
		{`{"error":{"kind":"bad_request"}}`, session.ModelError{Kind: session.ModelBadRequest, Status: 400}, ""},
	}
	for _, c := range cases {
		h := ask(t.Context(), script1(t, `{"rules":[`+c.rule+`]}`), hello())
		me := modelError(t, h.err)
		if me.Kind != c.want.Kind || me.Status != c.want.Status || me.RetryAfter != c.want.RetryAfter || !strings.Contains(me.Message, c.want.Message) {
			t.Errorf("%s: got %+v", c.rule, me)
		}
		if h.text != c.text || h.resp.Calls != nil {
			t.Errorf("%s: got %q and calls %v", c.rule, h.text, h.resp.Calls)
		}
	}
}

// TestScripted_NoRule: the answer shows what to write a rule for.
func TestScripted_NoRule(t *testing.T) {
	h := ask(t.Context(), script1(t, `{"rules":[]}`), talk("u:Hi there", "c:read", "r:x"))
	if h.err != nil || h.resp.Finish != session.FinishStop {
		t.Fatalf("got %s, error %v", mustJSON(t, h.resp), h.err)
	}
	for _, part := range []string{"no rule", "test", `"Hi there"`, "tool results: 1", "tools offered: "} {
		if !strings.Contains(h.resp.Text, part) {
			t.Errorf("%q is not in %q", part, h.resp.Text)
		}
	}
}

// TestScripted_Cancel: a waiting answer ends at once, and the receiver's own error comes back.
func TestScripted_Cancel(t *testing.T) {
	m := script1(t, `{"rules":[{"say":"abcdef","chunks":6,"delay_ms":600000}]}`)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if h := ask(ctx, m, hello()); h.err != context.Canceled { //nolint:errorlint // the bare error is promised
		t.Errorf("got %v", h.err)
	}
	m = script1(t, `{"rules":[{"say":"abcdef","chunks":6}]}`)
	ctx, cancel = context.WithCancel(t.Context())
	n := 0
	_, err := m.Stream(ctx, hello(), func(session.Delta) error { n++; cancel(); return nil })
	if err != context.Canceled || n != 1 { //nolint:errorlint // the bare error is promised
		t.Errorf("got %v after %d deltas", err, n)
	}
	full := errors.New("disk full")
	if _, err := m.Stream(t.Context(), hello(), func(session.Delta) error { return full }); err != full { //nolint:errorlint // comes back as it is
		t.Errorf("got %v", err)
	}
}

// TestScripted_NoState plays a whole conversation twice, the second time with a new model for each request (I7).
func TestScripted_NoState(t *testing.T) {
	const text = `{"rules":[{"when":{"results":6},"say":"done"},{"calls":[{"name":"read","args":{"n":"${result}"}},{"name":"shell"}]}]}`
	one := script1(t, text)
	var runs [2]session.ModelRequest
	for i := range runs {
		req := hello()
		for len(req.Messages) < 50 {
			m := one
			if i == 1 {
				m = script1(t, text)
			}
			h := ask(t.Context(), m, req)
			if h.err != nil {
				t.Fatal(h.err)
			}
			req.Messages = append(req.Messages, session.Message{Role: session.RoleAssistant, Text: h.resp.Text, Calls: h.resp.Calls})
			if len(h.resp.Calls) == 0 {
				break
			}
			for _, c := range h.resp.Calls {
				req.Messages = append(req.Messages, session.Message{Role: session.RoleTool, CallID: c.ID, Text: "result of " + c.ID})
			}
		}
		runs[i] = req
	}
	if !reflect.DeepEqual(runs[0], runs[1]) || len(runs[0].Messages) != 1+3*3+1 {
		t.Errorf("got\n%s\n%s", mustJSON(t, runs[0]), mustJSON(t, runs[1]))
	}
	seen := map[string]bool{}
	for _, m := range runs[0].Messages {
		for _, c := range m.Calls {
			if seen[c.ID] {
				t.Errorf("the id %s comes twice", c.ID)
			}
			seen[c.ID] = true
		}
	}
}

func TestScripted_Identity(t *testing.T) {
	want := session.ModelIdentity{Provider: "scripted", Name: "test", Scripted: true}
	if got := script1(t, `{"rules":[]}`).Identity(); got != want {
		t.Errorf("got %+v", got)
	}
}

// TestScript_Refused: each mistake is named with its line.
func TestScript_Refused(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"empty", "", "line 1: the script ends too early"},
		{"no object", "[]", "line 1: an object is expected"},
		{"no rules", "{}", `"rules" is missing`},
		{"unknown member", "{\n\"rule\":[]}", `line 2: unknown member "rule"`},
		{"unknown member of a rule", "{\"rules\":[\n{\"say\":\"x\",\n\"sya\":1}]}", `line 3: unknown member "sya"`},
		{"case matters", "{\"rules\":[{\"Say\":\"x\"}]}", `unknown member "Say"`},
		{"unknown condition", "{\"rules\":[\n\n{\"when\":{\"userz\":\"\"}}]}", `line 3: unknown member "userz"`},
		{"twice", "{\"rules\":[{\"say\":\"x\",\n\"say\":\"y\"}]}", `line 2: the member "say" comes twice`},
		{"wrong type", "{\"rules\":[\n{\"say\":\n7}]}", "line 3: number does not fit here, string is expected"},
		{"null", "{\"rules\":[\n{\"say\":null}]}", "line 2: null"},
		{"null rules", "{\"rules\":null}", "line 1: a list"},
		{"fraction", `{"rules":[{"say":"x","chunks":1.5}]}`, "line 1: number 1.5"},
		{"too many chunks", `{"rules":[{"say":"x","chunks":1000000}]}`, "not between 1 and 100000"},
		{"negative", "{\"rules\":[\n{\"say\":\"x\",\"delay_ms\":-1}]}", "line 2: -1 is not between 0"},
		{"syntax", "{\"rules\":[\n\n{\"say\" \"x\"}]}", "line 3: expected colon"},
		{"trailing comma", "{\"rules\":[{\"say\":\"x\"},\n]}", "line 2: invalid character"},
		{"cut", "{\"rules\":[\n{\"say\":\"x\"},", "line 2: the script ends too early"},
		{"rest", "{\"rules\":[]}\n{}", "line 2: something follows"},
		{"says nothing", "{\"rules\":[{\"say\":\"x\"},\n\n{\"when\":{}}]}", "line 3: the rule that begins here says nothing"},
		{"error and cut", `{"rules":[{"error":{"kind":"network"},"cut_off":true}]}`, "both error and cut_off"},
		{"unknown kind", "{\"rules\":[{\n\"error\":{\"kind\":\"odd\"}}]}", `line 2: unknown kind of error "odd"`},
		{"no kind", `{"rules":[{"error":{"message":"x"}}]}`, `unknown kind of error ""`},
		{"parts that are more than the whole", `{"rules":[{"say":"x","usage":{"inputTokens":9,"cacheReadTokens":10}}]}`, "the parts of usage are more than the whole"},
		{"unknown finish", `{"rules":[{"say":"x","finish":"end"}]}`, `unknown finish "end"`},
		{"calls that stop", `{"rules":[{"calls":[{"name":"x"}],"finish":"stop"}]}`, "cannot finish with stop"},
		{"tool_calls without calls", `{"rules":[{"say":"x","finish":"tool_calls"}]}`, "has none"},
		{"nameless call", "{\"rules\":[{\"calls\":[\n{\"args\":{}}]}]}", "line 2: the call that begins here has no name"},
		{"args list", `{"rules":[{"calls":[{"name":"x","args":[]}]}]}`, "args must be an object"},
		{"template in say", "{\"rules\":[\n{\"say\":\"${home}\"}]}", "line 2: unknown template ${home}"},
		{"template in args", "{\"rules\":[{\"calls\":[{\"name\":\"x\",\n\"args\":{\"a\":[\"${HOME}\"]}}]}]}", "line 2: unknown template ${HOME}"},
		{"open template", `{"rules":[{"say":"${user"}]}`, "has no end"},
	}
	for _, c := range cases {
		_, err := NewScripted("x.json", []byte(c.text))
		if err == nil {
			t.Errorf("%s: accepted", c.name)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "x.json") {
			t.Errorf("%s: got %q, want %q", c.name, err, c.want)
		}
	}
}

// TestScript_Document parses every example of the format's description and checks that each member of the format is described.
func TestScript_Document(t *testing.T) {
	doc, err := os.ReadFile("../../docs/scripted.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(doc, -1)
	if len(examples) < 5 {
		t.Fatalf("only %d examples were found", len(examples))
	}
	for i, e := range examples {
		m, err := NewScripted("example "+strconv.Itoa(i+1), e[1])
		if err != nil {
			t.Error(err)
			continue
		}
		if len(m.rules) == 0 {
			t.Errorf("example %d has no rules", i+1)
		}
	}
	for _, name := range []string{"user", "contains", "last_result", "results", "turn_results", "tools", "say", "think", "calls", "chunks", "delay_ms",
		"finish", "usage", "error", "cut_off"} {
		if !strings.Contains(string(doc), "| `"+name+"` |") {
			t.Errorf("%s is not described", name)
		}
	}
	for kind := range faultStatus {
		if !strings.Contains(string(doc), "`"+string(kind)+"`") {
			t.Errorf("the kind of error %s is not described", kind)
		}
	}
}

// TestScript_FirstExample plays the first example of the description.
func TestScript_FirstExample(t *testing.T) {
	doc, err := os.ReadFile("../../docs/scripted.md")
	if err != nil {
		t.Fatal(err)
	}
	m := script1(t, string(regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(doc)[1]))
	h := ask(t.Context(), m, talk("u:list it"))
	if h.err != nil || len(h.resp.Calls) != 1 || h.resp.Calls[0].Args != `{"command":"ls"}` {
		t.Errorf("got %s, error %v", mustJSON(t, h.resp), h.err)
	}
	if h = ask(t.Context(), m, talk("u:list it", "c:shell", "r:a.go")); h.resp.Text != "These files are there:\na.go" {
		t.Errorf("got %s", mustJSON(t, h.resp))
	}
	if h = ask(t.Context(), m, talk("u:list it", "c:shell", "r:a.go", "a:ok", "u:and now?")); h.resp.Text != "I only know the word list." {
		t.Errorf("got %s", mustJSON(t, h.resp))
	}
}

// FuzzScript: no input crashes the parser, an error names a line, and what is accepted can be played and is JSON.
func FuzzScript(f *testing.F) {
	f.Add([]byte(`{"rules":[{"when":{"user":"a","results":1,"tools":["x"]},"say":"b${result}","calls":[{"name":"c","args":{"d":["${user}"]}}]}]}`))
	f.Add([]byte(`{"rules":[{"say":"x","chunks":3,"usage":{"inputTokens":1},"cut_off":true},{"error":{"kind":"network"}},{"calls":[{"name":"x","args":"{"}]}]}`))
	f.Add([]byte("{\"rules\":[\n{\"say\":\"$${\"}]} x"))
	f.Add([]byte(`{"rules":[{"say":"${"},`))
	req := talk("u:a", "c:x", "r:result")
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := NewScripted("fuzz", data)
		if err != nil {
			if !regexp.MustCompile(`line [1-9]`).MatchString(err.Error()) {
				t.Errorf("no line in %q", err)
			}
			return
		}
		if !json.Valid(data) {
			t.Errorf("accepted what is no JSON: %q", data)
		}
		for i := range m.rules {
			r := m.rules[i]
			r.when, r.delay = condition{}, 0
			one := &Scripted{name: "fuzz", rules: []rule{r}}
			h := ask(context.Background(), one, req)
			var me *session.ModelError
			if h.err != nil && !errors.As(h.err, &me) {
				t.Errorf("rule %d: %v", i, h.err)
			}
			if h.err == nil && h.text != h.resp.Text {
				t.Errorf("rule %d: the deltas say %q, the answer %q", i, h.text, h.resp.Text)
			}
			for k, c := range h.resp.Calls {
				if r.calls[k].text == nil && !json.Valid([]byte(c.Args)) {
					t.Errorf("rule %d: arguments %q", i, c.Args)
				}
			}
		}
	})
}
