package provider

import (
	"testing"

	"holdfast/internal/catalogue"
	"holdfast/session"
)

// What takes no images is known from the catalogue, which the user's figures change; the variable is about whichever model is asked.
func TestResolve_WhoTakesImages(t *testing.T) {
	own := catalogue.Embedded().With([]catalogue.Own{
		{Provider: "openai", Name: "local*", Images: catalogue.Is(false, catalogue.Origin{From: catalogue.FromConfig})},
		{Provider: "openai", Name: "deepseek-vl", Images: catalogue.Is(true, catalogue.Origin{From: catalogue.FromConfig})},
	})
	for name, tc := range map[string]struct {
		model, wish string
		catalogue   *catalogue.Catalogue
		textOnly    bool
		fails       bool
	}{
		"known to":                 {model: "openai/gpt-4o"},
		"known not to":             {model: "openai/gpt-3.5-turbo", textOnly: true},
		"a family elsewhere":       {model: "openai/some/deepseek-r1:8b", textOnly: true},
		"unknown":                  {model: "openai/local-7b"},
		"one's own word":           {model: "openai/local-7b", catalogue: own, textOnly: true},
		"against the catalogue":    {model: "openai/deepseek-vl", catalogue: own},
		"the variable wins":        {model: "openai/local-7b", catalogue: own, wish: "yes"},
		"the variable wins too":    {model: "openai/gpt-4o", wish: " NO ", textOnly: true},
		"auto is as without":       {model: "openai/gpt-3.5-turbo", wish: "auto", textOnly: true},
		"nonsense":                 {model: "openai/gpt-4o", wish: "maybe", fails: true},
		"of the other provider":    {model: "anthropic/claude-2.1", textOnly: true},
		"of the other provider, 2": {model: "anthropic/claude-opus-5"},
	} {
		m, err := Resolve(Config{Model: tc.model, Catalogue: tc.catalogue, CredKey: []byte("k"),
			Getenv: env("OPENAI_API_KEY", testKey, "ANTHROPIC_API_KEY", testKey, "HOLDFAST_IMAGES", tc.wish)})
		if (err != nil) != tc.fails {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err == nil && blindness(m) != tc.textOnly {
			t.Errorf("%s: text only %t", name, !tc.textOnly)
		}
	}
}

func blindness(m session.Model) bool {
	switch m := m.(type) {
	case *OpenAI:
		return m.config.TextOnly
	case *Anthropic:
		return m.config.TextOnly
	}
	panic("another provider")
}
