package fakemodel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client keeps no connection, so that nothing outlives a test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}

func start(t *testing.T, handler func(Request) Reply) *Server {
	t.Helper()
	s := New(handler)
	t.Cleanup(s.Close)
	return s
}

// post sends a body and returns the response, whose body the test's end closes.
func post(t *testing.T, ctx context.Context, s *Server, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

const plain = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`

// TestServer_Wire compares a whole stream with the bytes that the service sends.
func TestServer_Wire(t *testing.T) {
	s := start(t, func(Request) Reply {
		return Reply{Steps: []Step{{Text: "a"}, {Comment: "c"}, {Reasoning: "r"}}, Usage: &Usage{Prompt: 3, Completion: 4},
			Calls: []Call{{Name: "f", Args: `{"x":1}`, Pieces: 2}, {ID: "own", Name: "g", Args: "{}"}}}
	})
	res := post(t, t.Context(), s, plain)
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	const head = `{"choices":[{"delta":`
	const tail = `,"finish_reason":null,"index":0,"logprobs":null}],"created":1700000000,"id":"chatcmpl-1","model":"m","object":"chat.completion.chunk","system_fingerprint":"fp_fake","usage":null}`
	line := func(delta string) string { return "data: " + head + delta + tail + "\n\n" }
	want := line(`{"content":"","role":"assistant"}`) + line(`{"content":"a"}`) + ": c\n\n" + line(`{"reasoning_content":"r"}`) +
		line(`{"tool_calls":[{"function":{"arguments":"","name":"f"},"id":"call_fake_1_0","index":0,"type":"function"}]}`) +
		line(`{"tool_calls":[{"function":{"arguments":"","name":"g"},"id":"own","index":1,"type":"function"}]}`) +
		line(`{"tool_calls":[{"function":{"arguments":"{\"x"},"index":0}]}`) +
		line(`{"tool_calls":[{"function":{"arguments":"{}"},"index":1}]}`) +
		line(`{"tool_calls":[{"function":{"arguments":"\":1}"},"index":0}]}`) +
		strings.Replace(line(`{}`), `"finish_reason":null`, `"finish_reason":"tool_calls"`, 1) +
		`data: {"choices":[],"created":1700000000,"id":"chatcmpl-1","model":"m","object":"chat.completion.chunk","system_fingerprint":"fp_fake",` +
		`"usage":{"completion_tokens":4,"completion_tokens_details":{"audio_tokens":0,"reasoning_tokens":0},"prompt_tokens":3,` +
		`"prompt_tokens_details":{"audio_tokens":0,"cached_tokens":0},"total_tokens":7}}` + "\n\ndata: [DONE]\n\n"
	if string(body) != want {
		t.Errorf("got\n%s\nwant\n%s", body, want)
	}
	if got := res.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
		t.Errorf("content type %q", got)
	}
}

// TestServer_Strict lists histories and whether the service takes them (I1).
func TestServer_Strict(t *testing.T) {
	const (
		u  = `{"role":"user","content":"hi"}`
		c1 = `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{"}}]}`
		c2 = `{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		r1 = `{"role":"tool","tool_call_id":"1","content":"one"}`
		r2 = `{"role":"tool","tool_call_id":"2","content":"two"}`
	)
	msgs := func(m ...string) string {
		return `{"model":"m","stream":true,"messages":[` + strings.Join(m, ",") + `]}`
	}
	cases := []struct{ name, body, refused string }{
		{"text", msgs(u), ""},
		{"parts", msgs(`{"role":"user","content":[{"type":"text","text":"h"},{"type":"text","text":"i"}]}`), ""},
		{"system and developer", msgs(`{"role":"system","content":"s"}`, `{"role":"developer","content":"d"}`, u), ""},
		{"call with broken arguments and its result", msgs(u, c1, r1), ""},
		{"two calls", msgs(u, c2, r1, r2), ""},
		{"two calls, results the other way round", msgs(u, c2, r2, r1), ""},
		{"no result at the end", msgs(u, c1), "did not have response messages: 1"},
		{"no result before a user", msgs(u, c1, u, r1), "did not have response messages: 1"},
		{"one of two results", msgs(u, c2, r1), "did not have response messages: 2"},
		{"result without call", msgs(u, r1), "must be a response"},
		{"result twice", msgs(u, c1, r1, r1), "must be a response"},
		{"result of another call", msgs(u, c1, r2), "must be a response"},
		{"id used again", msgs(u, c1, r1, c1, r1), "again"},
		{"unknown role", msgs(`{"role":"bot","content":"x"}`), "Invalid value: 'bot'"},
		{"no content", msgs(`{"role":"user"}`), "got null"},
		{"empty parts", msgs(`{"role":"user","content":[]}`), "non-empty"},
		{"content of a wrong kind", msgs(`{"role":"user","content":7}`), "expected a string"},
		{"calls of a user", msgs(strings.Replace(c1, "assistant", "user", 1)), "has 'tool_calls'"},
		{"long id", msgs(u, strings.Replace(c1, `"1"`, `"`+strings.Repeat("x", 41)+`"`, 1)), "1 to 40"},
		{"name with a blank", msgs(u, strings.Replace(c1, `"f"`, `"f g"`, 1)), "function.name"},
		{"arguments missing", msgs(u, strings.Replace(c1, `,"arguments":"{"`, ``, 1)), "arguments"},
		{"call type", msgs(u, strings.Replace(c1, `"function","function"`, `"custom","function"`, 1)), ".type"},
		{"no model", `{"messages":[` + u + `]}`, "model parameter"},
		{"no messages", `{"model":"m","messages":[]}`, "empty array"},
		{"no JSON", `{"model"`, "could not parse"},
		{"stream options without stream", `{"model":"m","stream_options":{},"messages":[` + u + `]}`, "stream_options"},
		{"limit of 0", `{"model":"m","max_tokens":0,"messages":[` + u + `]}`, "below 1"},
		{"tool", `{"model":"m","messages":[` + u + `],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]}`, ""},
		{"tool twice", `{"model":"m","messages":[` + u + `],"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}]}`, "twice"},
		{"tool schema", `{"model":"m","messages":[` + u + `],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"string"}}}]}`, "'object'"},
		{"tool name", `{"model":"m","messages":[` + u + `],"tools":[{"type":"function","function":{"name":"f.g"}}]}`, "function.name"},
		{"tool type", `{"model":"m","messages":[` + u + `],"tools":[{"type":"web"}]}`, "tools[0].type"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			handled := false
			s := start(t, func(Request) Reply { handled = true; return Text("ok") })
			res := post(t, t.Context(), s, c.body)
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			r := s.Requests()[0]
			if handled == (c.refused != "") || (res.StatusCode == http.StatusOK) != (c.refused == "") {
				t.Errorf("handled %v, status %d: %s", handled, res.StatusCode, body)
			}
			if !strings.Contains(r.Refused, c.refused) || c.refused == "" && r.Refused != "" {
				t.Errorf("refused with %q", r.Refused)
			}
			if string(r.Body) != c.body || (ResultsPerCall(s.Requests()) == nil) != (c.refused == "") {
				t.Errorf("logged %s, pairs: %v", r.Body, ResultsPerCall(s.Requests()))
			}
		})
	}
}

// TestServer_Ends reads each kind of end with a plain client.
func TestServer_Ends(t *testing.T) {
	cases := []struct {
		name           string
		end            End
		finish, done   bool
		err            error // nil: a clean end
		anyErr, cancel bool
	}{
		{name: "done", end: EndDone, finish: true, done: true},
		{name: "cut", end: EndCut},
		{name: "unmarked", end: EndUnmarked, finish: true},
		{name: "abort", end: EndAbort, err: io.ErrUnexpectedEOF},
		{name: "reset", end: EndReset, anyErr: true},
		{name: "stall", end: EndStall, err: context.Canceled, cancel: true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, func(Request) Reply {
				return Reply{Steps: []Step{{Text: "a"}}, Usage: &Usage{Prompt: 1, Completion: 1}, End: c.end}
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			res := post(t, ctx, s, plain)
			r := bufio.NewReader(res.Body)
			var text string
			var err error
			for err == nil {
				var line string
				line, err = r.ReadString('\n')
				text += line
				if c.cancel && strings.Contains(line, `"a"`) {
					cancel()
				}
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if c.anyErr != (err != nil) && c.err == nil || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("ended with %v", err)
			}
			if strings.Contains(text, "[DONE]") != c.done || strings.Contains(text, `"stop"`) != c.finish {
				t.Errorf("got %s", text)
			}
		})
	}
}

// TestServer_Gate: what follows a gate is not sent before it opens, and what precedes it is not held back.
func TestServer_Gate(t *testing.T) {
	gate := make(chan struct{})
	s := start(t, func(Request) Reply { return Reply{Steps: []Step{{Text: "before"}, Gate(gate), {Text: "after"}}} })
	r := bufio.NewReader(post(t, t.Context(), s, plain).Body)
	opened := false
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			break
		}
		if strings.Contains(line, "before") {
			opened = true
			close(gate)
		}
		if strings.Contains(line, "after") {
			if !opened {
				t.Error("the gate did not hold")
			}
			return
		}
	}
	t.Error("the stream ended too early")
}

// TestServer_NotStreamed answers a client that wants one document.
func TestServer_NotStreamed(t *testing.T) {
	s := start(t, func(Request) Reply { r := Text("a", "b"); r.Calls = []Call{{Name: "f", Args: "{}"}}; return r })
	res := post(t, t.Context(), s, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
	var got struct {
		Choices []struct {
			FinishReason string `json:"finish_reason"`
			Message      struct {
				Content   string
				ToolCalls []struct{ ID string } `json:"tool_calls"`
			}
		}
		Usage struct {
			Total int `json:"total_tokens"`
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if len(got.Choices) != 1 || got.Choices[0].Message.Content != "ab" || got.Choices[0].FinishReason != "tool_calls" ||
		got.Choices[0].Message.ToolCalls[0].ID != "call_fake_1_0" || got.Usage.Total != 12 {
		t.Errorf("got %+v", got)
	}
}

func TestServer_OtherPaths(t *testing.T) {
	s := start(t, func(Request) Reply { return Text("x") })
	for path, want := range map[string]int{"/models": 200, "/responses": 404, "/chat/completions": 404} {
		res, err := client.Get(s.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests were logged", n)
	}
}

// TestServer_Wait returns when the request is there, and gives up with its context.
func TestServer_Wait(t *testing.T) {
	s := start(t, func(Request) Reply { return Text("x") })
	got := make(chan error, 1)
	go func() {
		reqs, err := s.Wait(context.Background(), 2)
		if err == nil && (reqs[0].N != 1 || reqs[1].N != 2) {
			err = fmt.Errorf("numbers %d and %d", reqs[0].N, reqs[1].N)
		}
		got <- err
	}()
	post(t, t.Context(), s, plain)
	post(t, t.Context(), s, plain)
	if err := <-got; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.Wait(ctx, 3); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestServer_CloseEndsStreams: Close does not wait for a client that keeps a stalled stream open (I3).
func TestServer_CloseEndsStreams(t *testing.T) {
	s := New(func(Request) Reply { return Reply{End: EndStall} })
	res := post(t, t.Context(), s, plain)
	s.Close()
	s.Close()
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("the stalled stream ended cleanly")
	}
}

// TestReply_With leaves the original alone, since replies are shared between requests.
func TestReply_With(t *testing.T) {
	a := Error(429, "x", "")
	b := a.With("Retry-After", "1")
	c := b.With("Retry-After", "2")
	if a.Header != nil || b.Header.Get("Retry-After") != "1" || c.Header.Get("Retry-After") != "2" {
		t.Errorf("got %v, %v, %v", a.Header, b.Header, c.Header)
	}
}

// FuzzParse: no body crashes the server's reader, and what it takes obeys the rule for pairs.
func FuzzParse(f *testing.F) {
	f.Add([]byte(plain))
	f.Add([]byte(`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"x"}]}],"tools":[{}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := parse(body)
		if err == nil && CheckPairs(req.Messages) != nil {
			t.Errorf("taken: %s", body)
		}
		if err != nil && err.Error() == "" {
			t.Error("refused without a word")
		}
	})
}
