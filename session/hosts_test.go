package session

import "testing"

// What a rule for hosts covers, when it allows and when it refuses.
func TestRule_Hosts(t *testing.T) {
	cases := []struct {
		pattern, host string
		allow, deny   bool
	}{
		{"docs.example.org", "docs.example.org", true, true},
		{"docs.example.org", "docs.example.org:8443", false, true}, // another service of the same machine
		{"docs.example.org:8443", "docs.example.org:8443", true, true},
		{"docs.example.org:8443", "docs.example.org", false, false},
		{"docs.example.org", "example.org", false, false},
		{"example.org", "docs.example.org", false, false},
		{"example.org", "notexample.org", false, false},
		{"example.org", "example.org.evil.test", false, false},
		{"*.example.org", "docs.example.org", true, true},
		{"*.example.org", "a.b.example.org", true, true},
		{"*.example.org", "example.org", false, false},
		{"*.example.org", ".example.org", false, false},
		{"*.example.org", "notexample.org", false, false},
		{"*.example.org:81", "a.example.org:81", true, true},
		{"*", "example.org", true, true},
		{"*", "example.org:22", false, true},
		{"192.0.2.1", "192.0.2.1", true, true},
		{"[2001:db8::1]", "[2001:db8::1]", true, true},
		{"[2001:db8::1]:81", "[2001:db8::1]:81", true, true},
		{"[2001:db8::1]", "[2001:db8::1]:81", false, true},
		{"*.", "example.org", false, false},
		{"", "", false, false},
	}
	for _, c := range cases {
		r := Rule{Verdict: VerdictAllow, Kind: RuleHost, Session: "s", Tool: "fetch", Value: c.pattern}
		b := Subject{Session: "s", Cwd: "/p", Tool: "fetch", Host: c.host}
		if got := r.covers(b) == coversSurely; got != c.allow {
			t.Errorf("%q allows %q: %v", c.pattern, c.host, got)
		}
		r.Verdict = VerdictDeny
		if got := r.covers(b) == coversSurely; got != c.deny {
			t.Errorf("%q refuses %q: %v", c.pattern, c.host, got)
		}
		if b.Tool = "shell"; r.covers(b) != coversNot {
			t.Errorf("%q is about another tool", c.pattern)
		}
	}
}

// What is no host makes no rule.
func TestHostRule(t *testing.T) {
	for pattern, want := range map[string]string{"Docs.Example.ORG ": "docs.example.org", "*.example.org": "*.example.org", "*": "*", "a:81": "a:81",
		"[::1]:81": "[::1]:81", "10.0.0.1": "10.0.0.1"} {
		if r, ok := HostRule(pattern); !ok || r.Value != want {
			t.Errorf("%q: %q, %v", pattern, r.Value, ok)
		}
	}
	for _, pattern := range []string{"", " ", "*.", "*.*.org", "exa*mple.org", "example.*", "https://example.org", "example.org/path", "me@example.org", "a b", "bücher.example",
		"example.org.", ".example.org", "a:http", "?.org", "*example.org"} {
		if _, ok := HostRule(pattern); ok {
			t.Errorf("%q made a rule", pattern)
		}
	}
}

// An answer with always about a fetch is for its host alone; none about a question of the model.
func TestAlways_Host(t *testing.T) {
	b := Subject{Session: "s", Cwd: "/p", Tool: "fetch", Version: "1", Host: "example.org:81"}
	r, ok := Always(b)
	if r.Verdict = VerdictAllow; !ok || r.Kind != RuleHost || r.Cwd != "/p" || r.Offer() != "fetches from example.org:81, in sessions of /p" || r.covers(b) != coversSurely {
		t.Errorf("made %+v, %v", r, ok)
	}
	for _, other := range []Subject{{Cwd: "/p", Tool: "fetch", Version: "1", Host: "example.org"}, {Cwd: "/q", Tool: "fetch", Version: "1", Host: "example.org:81"},
		{Cwd: "/p", Tool: "fetch", Version: "2", Host: "example.org:81"}} {
		if r.covers(other) != coversNot {
			t.Errorf("it covers %+v", other)
		}
	}
	if r, ok := Always(Subject{Tool: "ask_user"}); ok {
		t.Errorf("a question of the model made %+v", r)
	}
}
