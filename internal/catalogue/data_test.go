package catalogue

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// The file that is built in is read, whole, and every figure of it can be found and says when it was written.
func TestEmbedded_IsValid(t *testing.T) {
	c, err := read(embedded)
	if err != nil {
		t.Fatal(err)
	}
	var f file
	if err := json.Unmarshal(embedded, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Models) < 40 || len(c.Names("openai")) < 20 || len(c.Names("anthropic")) < 10 {
		t.Errorf("%d models, %q, %q", len(f.Models), c.Names("openai"), c.Names("anthropic"))
	}
	for _, kind := range []string{"names", "context_tokens", "output_tokens", "images", "reasoning", "tools", "prices"} {
		if f.Sources[kind] == "" {
			t.Errorf("it does not say where %s comes from", kind)
		}
	}
	for _, m := range f.Models {
		name := strings.ReplaceAll(m.Name, "*", "")
		e, ok := c.Find(strings.ReplaceAll(m.Provider, "*", "any"), name)
		if !ok {
			t.Errorf("%s/%s is not found", m.Provider, m.Name)
			continue
		}
		if m.Context != nil && (e.Context.Value != *m.Context || e.Context.Date != f.Written || e.Context.From != FromCatalogue) {
			t.Errorf("%s/%s holds %+v", m.Provider, m.Name, e.Context)
		}
		if p := m.Prices; p != nil && p.Input != nil && p.Output != nil && p.Cached != nil && (*p.Cached > *p.Input || *p.Input > *p.Output) {
			t.Errorf("%s/%s: a cached token costs more than a new one, or a new one more than an answer's: is a price in the wrong place?", m.Provider, m.Name)
		}
		if _, again := c.Find(m.Provider, m.Name+"-2031-02-03"); m.Dated && !again {
			t.Errorf("%s/%s with a date is not found", m.Provider, m.Name)
		}
	}
}

// What would be wrong or ambiguous is refused.
func TestRead_Refuses(t *testing.T) {
	for what, models := range map[string]string{
		"twice":                   `{"provider":"a","name":"x"},{"provider":"a","name":"x","dated":true}`,
		"twice by another name":   `{"provider":"a","name":"x"},{"provider":"a","name":"y","also":["x"]}`,
		"a negative price":        `{"provider":"a","name":"x","prices":{"input":-1}}`,
		"a window of nothing":     `{"provider":"a","name":"x","context_tokens":0}`,
		"an answer of nothing":    `{"provider":"a","name":"x","output_tokens":0}`,
		"more out than in":        `{"provider":"a","name":"x","context_tokens":5,"output_tokens":6}`,
		"an unknown member":       `{"provider":"a","name":"x","contxt_tokens":5}`,
		"another way to think":    `{"provider":"a","name":"x","reasoning":{"kind":"deep"}}`,
		"levels of a budget":      `{"provider":"a","name":"x","reasoning":{"kind":"budget","efforts":["low"]}}`,
		"no provider":             `{"name":"x"}`,
		"capitals":                `{"provider":"a","name":"X"}`,
		"a day there is not":      `{"provider":"a","name":"x","released":"2026-02-30"}`,
		"a date behind any names": `{"provider":"a","name":"x*","dated":true}`,
	} {
		if _, err := read([]byte(`{"written":"2026-01-02","currency":"USD","models":[` + models + `]}`)); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	for _, whole := range []string{`{"written":"soon","models":[]}`, `{"written":"2026-01-02","models":[{"provider":"a","name":"x","prices":{"input":1}}]}`, `{"written":"2026-01-02"} {}`} {
		if _, err := read([]byte(whole)); err == nil {
			t.Errorf("%s is accepted", whole)
		}
	}
	if _, err := read([]byte(`{"written":"2026-01-02","currency":"USD","models":[{"provider":"a","name":"x","prices":{"input":0}}]}`)); err != nil {
		t.Errorf("what costs nothing is refused: %v", err)
	}
}

func TestNames_HoldNoFamilies(t *testing.T) {
	c := Embedded()
	for _, n := range slices.Concat(c.Names("openai"), c.Names("anthropic"), c.Names("*")) {
		if strings.Contains(n, "*") {
			t.Errorf("%s is listed as a model", n)
		}
	}
}
