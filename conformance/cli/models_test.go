package cli_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// figure is what is looked at of a figure; a nil value is unknown.
type figure struct {
	Value            any
	From, Date, File string
	Line             int
}

type listedModel struct {
	Name                                 string
	InUse, Known                         bool
	Listed                               *bool
	ContextTokens, OutputTokens          figure
	Images, Tools, Reasoning, Currency   figure
	PriceInput, PriceCached, PriceOutput figure
	PriceCacheWrite, PricesUpToTokens    figure
}

type modelList struct {
	Catalogue struct{ Written string }
	InUse     struct {
		Model, Problem string
		Origin         struct {
			From, File, Name string
			Line             int
		}
	}
	Providers []struct {
		Provider, Endpoint, Problem string
		Configured, Own, Key, Asked bool
		Models                      []listedModel
	}
}

// of is a model of the list.
func (l modelList) of(t *testing.T, name string) listedModel {
	t.Helper()
	for _, p := range l.Providers {
		for _, m := range p.Models {
			if m.Name == name {
				return m
			}
		}
	}
	t.Fatalf("%s is not listed: %+v", name, l)
	return listedModel{}
}

// names of all models.
func (l modelList) names() (out []string) {
	for _, p := range l.Providers {
		for _, m := range p.Models {
			out = append(out, m.Name)
		}
	}
	return out
}

func (w *world) only(env ...string) {
	w.env = append([]string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_KEYRING=off"}, env...)
}

const key = "sk-test-0123456789abcdef"

// Without a key nothing is listed, and what to set is said. What is known of a name can be seen all the same.
func TestModels_WithoutAKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.only()
	r := w.want(0, "models")
	for _, want := range []string{"in use  none: No model is configured", "set OPENAI_API_KEY", "set ANTHROPIC_API_KEY", "holdfast setup"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("it does not say %q:\n%s", want, r.out)
		}
	}
	l := document[modelList](w, "models")
	if len(l.names()) != 0 || len(l.Providers) != 2 || l.Providers[0].Configured || l.Providers[1].Problem == "" || l.InUse.Model != "" || l.InUse.Problem == "" {
		t.Errorf("%+v", l)
	}
	if m := document[modelList](w, "models", "anthropic/claude-opus-4-5-20251101").of(t, "anthropic/claude-opus-4-5-20251101"); m.ContextTokens.Value != 200000.0 || !m.Known {
		t.Errorf("of a name: %+v", m)
	}
	if m := document[modelList](w, "models", "openai/nobody-knows").of(t, "openai/nobody-knows"); m.Known || m.ContextTokens != (figure{}) || m.PriceInput != (figure{}) {
		t.Errorf("of a name that nobody knows: %+v", m)
	}
	if r := w.want(0, "models", "openai/nobody-knows"); strings.Count(r.out, "unknown") != 9 || strings.Contains(r.out, " 0") {
		t.Errorf("shown as\n%s", r.out)
	}
	w.want(1, "models", "--ask")
	w.want(1, "models", "nobody/x")
	w.want(1, "models", "openai")
	w.want(2, "models", "openai/x", "openai/y")
	if w.has("../home/holdfast.db") {
		t.Error("it made a store")
	}
}

// With a key the catalogue's models are listed, with the day of each figure; the one in use is marked, with what chose it.
func TestModels_OfAConfiguredProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.only("OPENAI_API_KEY=" + key)
	l := document[modelList](w, "models")
	m := l.of(t, "openai/gpt-4o")
	if m.ContextTokens.Value != 128000.0 || m.ContextTokens.From != "catalogue" || m.ContextTokens.Date != l.Catalogue.Written || m.PriceInput.Value != 2_500_000.0 ||
		m.Currency.Value != "USD" || m.Images.Value != true || m.Listed != nil {
		t.Errorf("gpt-4o is %+v", m)
	}
	if p := l.Providers[0]; !p.Configured || !p.Own || !p.Key || p.Asked || p.Endpoint != "https://api.openai.com" || l.Providers[1].Configured {
		t.Errorf("providers %+v", l.Providers)
	}
	if l.InUse.Origin.From != "default" || l.InUse.Origin.Name != "OPENAI_API_KEY" || !l.of(t, l.InUse.Model).InUse {
		t.Errorf("in use %+v", l.InUse)
	}
	w.configure("[model]\n\nname = \"openai/gpt-4.1\"\n")
	if l = document[modelList](w, "models"); l.InUse.Model != "openai/gpt-4.1" || l.InUse.Origin.From != "user" || l.InUse.Origin.Line != 3 || !l.of(t, "openai/gpt-4.1").InUse {
		t.Errorf("by the file %+v", l.InUse)
	}
	w.env = append(w.env, "HOLDFAST_MODEL=openai/my-own")
	if l = document[modelList](w, "models"); l.InUse.Origin.Name != "HOLDFAST_MODEL" || !l.of(t, "openai/my-own").InUse || l.of(t, "openai/gpt-4.1").InUse {
		t.Errorf("by the variable %+v", l.InUse)
	}
	if l = document[modelList](w, "models", "--model", "openai/gpt-4o-mini"); l.InUse.Origin.Name != "--model" || !l.of(t, "openai/gpt-4o-mini").InUse {
		t.Errorf("by the flag %+v", l.InUse)
	}
	out := w.want(0, "models").out
	if !regexp.MustCompile(`(?m)^\*  openai/my-own +unknown +unknown .*unknown$`).MatchString(out) || !strings.Contains(out, "(environment, HOLDFAST_MODEL)") || strings.Contains(out, key) {
		t.Errorf("shown as\n%s", out)
	}
}

// Figures of one's own count, each with its line; the others stay the catalogue's.
func TestModels_OwnFigures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.only("OPENAI_API_KEY=" + key)
	w.configure("[[models]]\nname = \"openai/gpt-4o\"\ncontext_tokens = 1000\n\n[[models]]\nname = \"openai/mine*\"\nimages = false\nreasoning = \"low, high\"\n" +
		"price_input = 0\nprice_output = 0.000001\ncurrency = \"EUR\"\n")
	l := document[modelList](w, "models", "openai/gpt-4o")
	m := l.of(t, "openai/gpt-4o")
	if c := m.ContextTokens; c.Value != 1000.0 || c.From != "config" || c.Line != 3 || !strings.HasSuffix(c.File, "config.toml") || m.OutputTokens.From != "catalogue" {
		t.Errorf("gpt-4o is %+v", m)
	}
	m = document[modelList](w, "models", "openai/mine-7b").of(t, "openai/mine-7b")
	if m.Images.Value != false || m.PriceInput.Value != 0.0 || m.PriceInput.Line != 9 || m.PriceOutput.Value != 1.0 || m.Currency.Value != "EUR" || m.Currency.Line != 11 ||
		m.PriceCached.Value != nil || m.ContextTokens.Value != nil {
		t.Errorf("mine is %+v", m)
	}
	out := w.want(0, "models", "openai/mine-7b").out
	for _, want := range []string{`images +no +user, \S+config.toml, line 7`, `reasoning +low,high +user`, `price in +0 EUR +user`, `price out +0.000001 EUR`, `context +unknown`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	w.configure("[[models]]\nname = \"openai/gpt-4o\"\ncontext_tokens = -1\n")
	if r := w.want(1, "models"); !strings.Contains(r.errs, "line 3") || !strings.Contains(r.errs, "models[0].context_tokens is below 1") {
		t.Errorf("of a mistake it says %q", r.errs)
	}
}

// Asked, an endpoint's own list is shown, over several pages, with what it says of each; the user's word stays the last one.
func TestModels_Ask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.model.Lists(fakemodel.Listing{Key: key, Page: 2, Models: []fakemodel.Listed{{ID: "claude-opus-4-5"}, {ID: "b", Context: 500, Output: 50}, {ID: "c", Context: 600}, {ID: "a"}, {ID: "d"}, {ID: "e-" + key}}})
	w.only("OPENAI_API_KEY="+key, "OPENAI_BASE_URL="+w.model.URL(), "ANTHROPIC_API_KEY="+key, "ANTHROPIC_BASE_URL="+w.model.Origin(), "HOLDFAST_MODEL=anthropic/elsewhere")
	w.configure("[[models]]\nname = \"anthropic/b\"\ncontext_tokens = 7\n")
	l := document[modelList](w, "models", "--ask")
	want := []string{"openai/a", "openai/b", "openai/c", "openai/claude-opus-4-5", "openai/d", "openai/e-***",
		"anthropic/elsewhere", "anthropic/a", "anthropic/b", "anthropic/c", "anthropic/claude-opus-4-5", "anthropic/d", "anthropic/e-***"}
	if !slices.Equal(l.names(), want) {
		t.Errorf("listed %q", l.names())
	}
	if m := l.of(t, "anthropic/elsewhere"); !m.InUse || m.Listed == nil || *m.Listed {
		t.Errorf("the one in use is %+v", m)
	}
	if m := l.of(t, "anthropic/b"); m.ContextTokens.Value != 7.0 || m.OutputTokens.Value != 50.0 || m.OutputTokens.From != "endpoint" || !*m.Listed {
		t.Errorf("b is %+v", m)
	}
	if m := l.of(t, "openai/b"); m.ContextTokens.Value != nil || m.Known {
		t.Errorf("b on the other wire is %+v", m)
	}
	if m := l.of(t, "anthropic/claude-opus-4-5"); m.ContextTokens.From != "catalogue" || m.PriceInput.Value != nil {
		t.Errorf("what an endpoint of somebody else's charges is not known: %+v", m)
	}
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("%d requests ran a model", n)
	}
	if out := w.want(0, "models", "--ask").out; !strings.Contains(out, "anthropic/elsewhere (not listed)") || strings.Contains(out, key) {
		t.Errorf("shown as\n%s", out)
	}
}

// An endpoint that lists no model is no heading without a list.
func TestModels_AskNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.model.Lists(fakemodel.Listing{Models: []fakemodel.Listed{}})
	w.only("OPENAI_API_KEY="+key, "OPENAI_BASE_URL="+w.model.URL(), "HOLDFAST_MODEL=anthropic/elsewhere")
	if out := w.want(0, "models", "--ask").out; !strings.Contains(out, "says that it has none") {
		t.Errorf("shown as\n%s", out)
	}
}

// Why an endpoint lists nothing is said plainly, in time, and without the key; what else there is to show is shown.
func TestModels_AskFails(t *testing.T) {
	t.Parallel()
	closed := fakemodel.New(nil)
	closed.Close()
	hang := make(chan struct{})
	for name, tc := range map[string]struct {
		listing fakemodel.Listing
		base    string
		within  string
		want    string
	}{
		"a wrong key": {listing: fakemodel.Listing{Key: "another"}, want: `Incorrect API key provided: \*\*\*`},
		"not there":   {listing: fakemodel.Listing{Status: 404, Body: `{"error":{"message":"no such path"}}`}, want: `no such path`},
		"broken":      {listing: fakemodel.Listing{Status: 500}, want: `answered 500 Internal Server Error`},
		"moved":       {listing: fakemodel.Listing{Status: 302}, want: `redirects the request`},
		"a web page":  {listing: fakemodel.Listing{Body: "<!doctype html><p>Sign in</p>"}, want: `web page`},
		"no list":     {listing: fakemodel.Listing{Body: `{"models":[]}`}, want: `no list of models`},
		"silence":     {listing: fakemodel.Listing{Hang: hang}, within: "200ms", want: `did not answer in time`},
		"refused":     {base: closed.URL(), want: `refuses connections`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, family := range []string{"openai", "anthropic"} { // both wires of OpenAI have one list
				w := newWorld(t, nil)
				w.model.Lists(tc.listing)
				base := map[string]string{"openai": w.model.URL(), "anthropic": w.model.Origin()}[family]
				if tc.base != "" {
					base = map[string]string{"openai": closed.URL(), "anthropic": closed.Origin()}[family]
				}
				variable := strings.ToUpper(family)
				w.only(variable+"_API_KEY="+key, variable+"_BASE_URL="+base)
				if tc.within == "" {
					tc.within = harness.Limit.String()
				}
				for _, args := range [][]string{{"models", "--ask", "--within", tc.within}, {"models", "--ask", "--json", "--within", tc.within}} {
					r := w.want(1, args...)
					if !regexp.MustCompile(tc.want).MatchString(r.out) || strings.Contains(r.out+r.errs, key) || r.errs != "" {
						t.Errorf("%s, %q: out %s\nerrors %s", family, args, r.out, r.errs)
					}
				}
			}
		})
	}
}
