package acp_test

import (
	"strings"
	"testing"
)

// Without a model every request that needs one says what to set; what needs none works.
func TestAuth_RequiredWithoutAModel(t *testing.T) {
	w := newWorld(t, nil)
	a := w.start()
	a.Must("authenticate", map[string]any{"methodId": "environment"}, nil) // at once, with a model there
	session := a.NewSession(w.work)
	a.Await(a.Prompt(session, "hi"))
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string][]string{
		"nothing":           nil,
		"a model, no key":   {"HOLDFAST_MODEL=openai/fake"},
		"an empty key":      {"OPENAI_API_KEY="},
		"a key of a blank":  {"OPENAI_API_KEY= "},
		"a remote endpoint": {"HOLDFAST_MODEL=openai/fake", "OPENAI_BASE_URL=https://models.invalid/v1"},
		"no Anthropic key":  {"HOLDFAST_MODEL=anthropic/claude-fake", "OPENAI_API_KEY=other"},
	} {
		missing := "OPENAI_API_KEY"
		if name == "no Anthropic key" {
			missing = "ANTHROPIC_API_KEY"
		}
		t.Run(name, func(t *testing.T) {
			w.env = env
			b := w.start()
			w.load(b, session)
			if !strings.Contains(b.Text(session), "hello") {
				t.Errorf("the history is %q", b.Text(session))
			}
			for method, params := range map[string]map[string]any{
				"authenticate":   {"methodId": "environment"},
				"session/new":    {"cwd": w.work, "mcpServers": []any{}},
				"session/prompt": {"sessionId": session, "prompt": []any{map[string]any{"type": "text", "text": "x"}}},
				"create_goal":    {"sessionId": session, "objective": "x"},
			} {
				_, e := b.Call(method, params)
				refused(t, method, e, -32000, missing)
			}
			b.Must("session/list", map[string]any{}, nil)
			b.Must("session/set_mode", map[string]any{"sessionId": session, "modeId": "plan"}, nil)
			if g := getGoal(t, b, session); g != nil {
				t.Errorf("there is a goal: %+v", g)
			}
		})
	}
}
