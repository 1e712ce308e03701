package provider

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"holdfast/internal/secret"
	"holdfast/session"
	"holdfast/usage"
)

// saying answers each request with the next of some answers.
type saying struct {
	answers []session.ModelResponse
	errs    map[int]error
	n       int
}

func (s *saying) Identity() session.ModelIdentity { return session.ModelIdentity{Provider: "test"} }

func (s *saying) Stream(_ context.Context, _ session.ModelRequest, onDelta func(session.Delta) error) (session.ModelResponse, error) {
	i := s.n
	s.n++
	if t := s.answers[i].Text; t != "" {
		if err := onDelta(session.Delta{Text: t}); err != nil {
			return session.ModelResponse{}, err
		}
	}
	if err := s.errs[i]; err != nil {
		return session.ModelResponse{}, err
	}
	return s.answers[i], nil
}

// taped records what a model answers to some requests, and returns the file.
func taped(t *testing.T, mask *secret.Masker, m *saying, reqs ...session.ModelRequest) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.json")
	r, err := NewRecorder(path, false, mask, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	for i, req := range reqs {
		_, err := r.Wrap(m).Stream(t.Context(), req, func(session.Delta) error { return nil })
		if err != m.errs[i] {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRecorder_TextsComeBackAsTheyWere(t *testing.T) {
	for _, text := range []string{"", "plain", "${", "$${", "$$${user}", "${cwd}", "in /w/d and /w/d/x, not /w/dir or /w/d-e or /w/dé", "$/w/d", "/w/d", "/w/d/w/d", "a\nb\t<&>\u2028"} {
		req := talk("u:go")
		req.Cwd = "/w/d"
		want := session.ModelResponse{Text: text, Thought: text, Finish: session.FinishCalls, Usage: usage.Tokens{Input: 3, Output: 4, Known: true},
			Calls: []session.Call{{ID: "call_1", Name: "read", Args: `{"n":12345678901234567890,"path":` + mustJSON(t, text) + `}`}, {ID: "call_2", Name: "read", Args: "no JSON: " + text}}}
		script := taped(t, nil, &saying{answers: []session.ModelResponse{want}}, req)
		got := ask(t.Context(), script1(t, script), req)
		if got.err != nil {
			t.Fatal(got.err)
		}
		if got.resp.Text != want.Text || got.resp.Thought != want.Thought || got.resp.Usage != want.Usage || len(got.resp.Calls) != 2 ||
			!sameJSON(got.resp.Calls[0].Args, want.Calls[0].Args) || got.resp.Calls[1].Args != want.Calls[1].Args {
			t.Errorf("recorded %+v\nplayed   %+v\nfrom %s", want, got.resp, script)
		}
		req.Cwd = "/elsewhere"
		if got := ask(t.Context(), script1(t, script), req); strings.Contains(text, " /w/d ") && !strings.Contains(got.resp.Text, "in /elsewhere and /elsewhere/x, not /w/dir") {
			t.Errorf("in another directory it says %q", got.resp.Text)
		}
	}
}

// What is played counts as it was counted: each part, one that is 0, and one that nobody told.
func TestRecorder_CountsComeBackAsTheyWere(t *testing.T) {
	for name, want := range map[string]usage.Tokens{
		"nothing told":   {},
		"no parts":       usage.Report(30, 4, usage.Parts{}),
		"all parts":      usage.Report(30, 4, usage.Parts{CacheRead: usage.Of(20), CacheWrite: usage.Of(9), Reasoning: usage.Of(3)}),
		"parts of none":  usage.Report(30, 4, usage.Parts{CacheRead: usage.Of(0), CacheWrite: usage.Of(0), Reasoning: usage.Of(0)}),
		"the cache only": usage.Report(30, 4, usage.Parts{CacheRead: usage.Of(30)}),
		"reasoning only": usage.Report(30, 4, usage.Parts{Reasoning: usage.Of(4)}),
	} {
		req := talk("u:go")
		script := taped(t, nil, &saying{answers: []session.ModelResponse{{Text: "done", Finish: session.FinishStop, Usage: want}}}, req)
		got := ask(t.Context(), script1(t, script), req)
		if got.err != nil || got.resp.Usage != want {
			t.Errorf("%s: recorded %+v, played %+v, %v, from %s", name, want, got.resp.Usage, got.err, script)
		}
	}
}

func sameJSON(a, b string) bool {
	x, errX := decodeAny(a)
	y, errY := decodeAny(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func TestRecorder_SinglesRequestsOut(t *testing.T) {
	again := talk("u:list")
	again.Faults = 1
	reqs := []session.ModelRequest{talk("u:list"), talk("u:list all"), again, talk("u:list", "a:x", "u:list"), talk("u:list", "c:read", "r:ok"), talk("u:list")}
	m := &saying{errs: map[int]error{0: &session.ModelError{Kind: session.ModelOverloaded, Status: 529, Message: "full", RetryAfter: 2000000000}}}
	for _, text := range []string{"", "all", "after the fault", "second", "result", "never played"} {
		m.answers = append(m.answers, session.ModelResponse{Text: text, Finish: session.FinishStop})
	}
	script := taped(t, nil, m, reqs[:5]...)
	for i, want := range []string{"", "all", "after the fault", "second", "result"} {
		got := ask(t.Context(), script1(t, script), reqs[i])
		var me *session.ModelError
		if failed := errors.As(got.err, &me); failed != (i == 0) || got.resp.Text != want || failed && (me.Message != "full" || me.RetryAfter != 2000000000) {
			t.Errorf("request %d: %q, %v, want %q", i, got.resp.Text, got.err, want)
		}
	}
	// A request that comes once more gets its first answer, and an answer replaces an error.
	m.n = 0
	m.answers = []session.ModelResponse{{}, {Text: "one", Finish: session.FinishStop}, {Text: "two", Finish: session.FinishStop}}
	script = taped(t, nil, m, reqs[0], reqs[0], reqs[0])
	if got := ask(t.Context(), script1(t, script), reqs[0]); got.resp.Text != "one" {
		t.Errorf("got %q, %v", got.resp.Text, got.err)
	}
}

func TestRecorder_HidesSecrets(t *testing.T) {
	const early, late, shaped = "early-7f3a9c21-Zq8", "late-44d0b6e8-Lk3", "ghp_PastedByTheUser0123456789abcdefABCDEF"
	mask := secret.New(early)
	path := filepath.Join(t.TempDir(), "script.json")
	r, err := NewRecorder(path, false, mask, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	m := r.Wrap(&saying{answers: []session.ModelResponse{
		{Text: early + late + shaped, Finish: session.FinishCalls, Calls: []session.Call{{Name: "write", Args: `{"text":"` + shaped + ` ` + late + `"}`}, {Name: "x", Args: early + `{`}}},
		{Text: "nothing", Finish: session.FinishStop}}})
	for _, req := range []session.ModelRequest{talk("u:" + late + " " + early), talk("u:again")} {
		if _, err := m.Stream(t.Context(), req, func(session.Delta) error { return nil }); err != nil {
			t.Fatal(err)
		}
		mask.Add(late)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{early, late, shaped} {
		if strings.Contains(string(b), s) {
			t.Errorf("it holds %s:\n%s", s, b)
		}
	}
	script1(t, string(b))
}

func TestRecorder_IDsOfCallsAreTheScripts(t *testing.T) {
	req := talk("u:go")
	for _, id := range []string{"toolu_01AbCdEfGh", "x"} {
		req.Messages = append(req.Messages, session.Message{Role: session.RoleAssistant, Calls: []session.Call{{ID: id, Name: "read", Args: "{}"}}},
			session.Message{Role: session.RoleTool, CallID: id, Text: "ok"})
	}
	m := &saying{answers: []session.ModelResponse{{Finish: session.FinishCalls, Calls: []session.Call{{Name: "submit_review", Args: `{"evidence":["toolu_01AbCdEfGh"],"text":"x"}`}}}}}
	script := taped(t, nil, m, req)
	if got := ask(t.Context(), script1(t, script), req); len(got.resp.Calls) != 1 || got.resp.Calls[0].Args != `{"evidence":["call_1"],"text":"x"}` {
		t.Errorf("played %+v from %s", got.resp, script)
	}
}

func decodeAny(text string) (v any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
