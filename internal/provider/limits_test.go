package provider

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/session"
)

// What a body says of a limit is read where it is documented, on every wire, as a refusal and as an error in mid-answer. A header that asks for a time
// goes before it.
func TestLimits_NamedInTheBody(t *testing.T) {
	paths, err := filepath.Glob("testdata/limits/*.txt")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d fixtures: %v", len(paths), err)
	}
	for _, path := range paths {
		f := readFixture(t, path)
		var v struct{ Error json.RawMessage }
		if err := json.Unmarshal([]byte(f.parts["answer"]), &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		wait, err := time.ParseDuration(f.values["wait"])
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		status := map[string]int{"429": 429, "400": 400}[f.values["status"]]
		for w, wire := range faultWires {
			for header, want := range map[string]time.Duration{"": wait, "77": 77 * time.Second} {
				r := fakemodel.Reply{Status: status, Page: f.parts["answer"]}
				if header != "" {
					r = r.With("Retry-After", header)
				}
				got := refusedBy(t, w, r)
				if got.RetryAfter != want || got.Account != (f.values["scope"] == "account") || (got.Kind == session.ModelRateLimit) != (status == http.StatusTooManyRequests) {
					t.Errorf("%s on %s, header %q: %s, waits %s, account %v; want %s %s", path, wire.name, header, got.Kind, got.RetryAfter, got.Account, want, f.values["scope"])
				}
			}
		}
	}
}

// refusedBy asks once and returns the error.
func refusedBy(t *testing.T, w int, r fakemodel.Reply) *session.ModelError {
	t.Helper()
	s := fakemodel.New(func(fakemodel.Request) fakemodel.Reply { return r })
	defer s.Close()
	m, err := faultWires[w].open(faultWires[w].base(s), testLimits())
	if err != nil {
		t.Fatal(err)
	}
	defer m.(interface{ Close() }).Close()
	return modelError(t, ask(t.Context(), m, hello()).err)
}

// An answer that was refused in its middle names its limit in the same words.
func TestLimits_InMidAnswer(t *testing.T) {
	for w, wire := range faultWires {
		if wire.name == "Anthropic messages" {
			continue // its events have no such code
		}
		r := fakemodel.Reply{Steps: []fakemodel.Step{{Text: "partial"}, fakemodel.ErrorEvent("Rate limit reached. Please try again in 1h2m3s.", "tokens", "rate_limit_exceeded")}}
		if got := refusedBy(t, w, r); got.Kind != session.ModelRateLimit || got.RetryAfter != time.Hour+2*time.Minute+3*time.Second {
			t.Errorf("on %s: %s, waits %s", wire.name, got.Kind, got.RetryAfter)
		}
	}
}

func TestTryAgainIn(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"Please try again in 20s.": 20 * time.Second, "try again in 6ms, or so": 6 * time.Millisecond, "Try again in 7m12.5s": 7*time.Minute + 12500*time.Millisecond,
		"try again in 1d1h (or later)": 25 * time.Hour, "try again in 999999999h": maxRetryAfter, "try again in 999999999d999999999d": maxRetryAfter,
		"try again in 5": 0, "try again in 5sec": 0, "retry again in 5s": 0, "try again in -5s": 0, "": 0,
	} {
		if got := tryAgainIn(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
