package provider

import (
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/session"
)

// TestEffort_OnTheWires: each wire says it in its own way, and a model that cannot reason is told nothing.
func TestEffort_OnTheWires(t *testing.T) {
	for name, c := range map[string]struct {
		model, api, max string
		set, asked      string // for all, and by the request
		want            string // in the body; "" for nothing about thinking
	}{
		"chat":                                {model: "openai/gpt-5", set: "high", want: `"reasoning_effort":"high"`},
		"chat, by the request":                {model: "openai/gpt-5", set: "high", asked: "low", want: `"reasoning_effort":"low"`},
		"chat, nothing":                       {model: "openai/gpt-5"},
		"chat, a level of another model":      {model: "openai/gpt-5", asked: "xhigh"},
		"chat, a model without reasoning":     {model: "openai/gpt-4o", set: "high", asked: "high"},
		"chat, a model nobody knows":          {model: "openai/some-local-model", asked: "high", want: `"reasoning_effort":"high"`},
		"responses":                           {model: "openai/gpt-5", api: "responses", set: " High ", want: `"reasoning":{"effort":"high","summary":"auto"}`},
		"responses, nothing":                  {model: "openai/gpt-5", api: "responses", want: `"reasoning":{"summary":"auto"}`},
		"responses, a model without":          {model: "openai/gpt-4o", api: "responses", set: "high"},
		"messages, in levels":                 {model: "anthropic/claude-opus-5", set: "max", want: `"output_config":{"effort":"max"},"thinking":{"display":"summarized","type":"adaptive"}`},
		"messages, levels nobody knows":       {model: "anthropic/claude-opus-5-5", asked: "low", want: `"output_config":{"effort":"low"},"thinking":{"display":"summarized","type":"adaptive"}`},
		"messages, in tokens":                 {model: "anthropic/claude-haiku-4-5", set: "medium", want: `"thinking":{"budget_tokens":16384,"type":"enabled"}`},
		"messages, more than the answer":      {model: "anthropic/claude-haiku-4-5", set: "high", max: "8000", want: `"thinking":{"budget_tokens":6000,"type":"enabled"}`},
		"messages, less than the wire takes":  {model: "anthropic/claude-haiku-4-5", set: "low", max: "1300"},
		"messages, a model without reasoning": {model: "anthropic/claude-3-5-haiku", set: "low"},
		"messages, a model nobody knows":      {model: "anthropic/glm", asked: "low", want: `"thinking":{"budget_tokens":4096,"type":"enabled"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakemodel.New(always(fakemodel.Text("ok")))
			t.Cleanup(s.Close)
			m, err := Resolve(Config{Model: c.model, Limits: testLimits(), Getenv: env("OPENAI_BASE_URL", s.URL(), "ANTHROPIC_BASE_URL", s.Origin(),
				"HOLDFAST_OPENAI_API", c.api, "HOLDFAST_MAX_TOKENS", c.max, "HOLDFAST_REASONING_EFFORT", c.set)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(m.(interface{ Close() }).Close)
			req := hello()
			req.Effort = c.asked
			if h := ask(t.Context(), m, req); h.err != nil {
				t.Fatal(h.err)
			}
			body := string(s.Requests()[0].Body)
			if c.want == "" && (strings.Contains(body, "effort") || strings.Contains(body, "budget_tokens")) || !strings.Contains(body, c.want) {
				t.Errorf("%s is not in %s", c.want, body)
			}
		})
	}
}

// TestEffort_BudgetWantsThoughts: a model that is told a number of tokens refuses results whose calls have no thought in front of them.
func TestEffort_BudgetWantsThoughts(t *testing.T) {
	m, err := Resolve(Config{Model: "anthropic/claude-haiku-4-5", Getenv: env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9", "HOLDFAST_REASONING_EFFORT", "low")})
	if err != nil {
		t.Fatal(err)
	}
	a := m.(*Anthropic)
	asks := func(req session.ModelRequest) bool {
		p, _, err := a.encode(req)
		if err != nil {
			t.Fatal(err)
		}
		return p.Thinking.OfEnabled != nil
	}
	calls := answered(t, hello(), session.ModelResponse{Calls: []session.Call{{ID: "a", Name: "f", Args: "{}"}}})
	more := calls
	more.Messages = append(more.Messages[:len(more.Messages):len(more.Messages)], session.Message{Role: session.RoleAssistant, Text: "x"}, session.Message{Role: session.RoleUser, Text: "y"})
	if !asks(hello()) || asks(calls) || !asks(more) {
		t.Errorf("at first %v, behind calls without a thought %v, later %v", asks(hello()), asks(calls), asks(more))
	}
}

func TestEffort_Unknown(t *testing.T) {
	at := env("OPENAI_BASE_URL", "http://127.0.0.1:9", "ANTHROPIC_BASE_URL", "http://127.0.0.1:9", "HOLDFAST_REASONING_EFFORT", "very\nmuch")
	for model, want := range map[string]string{
		"openai/gpt-5":               `HOLDFAST_REASONING_EFFORT is "very much": openai/gpt-5 takes minimal, low, medium, high`,
		"anthropic/claude-haiku-4-5": `HOLDFAST_REASONING_EFFORT is "very much": anthropic/claude-haiku-4-5 takes low, medium, high`,
		"openai/gpt-4o":              "",
	} {
		_, err := Check(Config{Model: model, Getenv: at})
		if got := errorText(err); got != want {
			t.Errorf("%s: %q", model, got)
		}
		if _, err := Check(Config{Model: model, Getenv: at, Chosen: true}); err != nil {
			t.Errorf("%s as a session's own: %v", model, err)
		}
	}
	if got := strings.Join(Efforts(Config{Model: "openai/gpt-5.1", Getenv: env("OPENAI_API_KEY", testKey)}), " "); got != "none low medium high" {
		t.Errorf("the levels are %s", got)
	}
}
