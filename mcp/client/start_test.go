//go:build linux

package client

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func lives(t testing.TB, path string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

// Each server is spoken to in the protocol it speaks, whatever it does with the probe.
func TestStart_Eras(t *testing.T) {
	for name, c := range map[string]struct {
		plan  plan
		era   string
		lives int
	}{
		"unknown method":          {plan{}, "legacy", 1},
		"modern":                  {plan{"discover": "modern", "initialize": "refuse"}, "modern", 1},
		"both":                    {plan{"discover": "modern"}, "modern", 1},
		"an empty object":         {plan{"discover": "empty"}, "legacy", 1},
		"no answer to the probe":  {plan{"discover": "silent"}, "legacy", 1},
		"dies of the probe":       {plan{"discover": "die"}, "legacy", 2},
		"slow, and modern only":   {plan{"discover": "modern", "initialize": "refuse", "start_ms": 700}, "modern", 1},
		"slow, and handshake":     {plan{"start_ms": 700}, "legacy", 1},
		"noise before and after":  {plan{"noise": []string{"Starting up!", "{not json", "[1]", "null", "\"x\"", "{}", "", `{"id":null}`}}, "legacy", 1},
		"a megabyte on stderr":    {plan{"stderr": 1 << 20}, "legacy", 1},
		"modern with a late pipe": {plan{"discover": "modern", "stderr": 1 << 20, "start_ms": 100}, "modern", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "lives")
			c.plan["lives"] = log
			w := start(t, c.plan, func(_ *Config, o *Options) { o.Limits.Probe = 300 * time.Millisecond })
			o := w.act(map[string]any{"do": "ok", "text": "x"})
			w.wantText(o, KindOK, "x")
			if o.Era != c.era || w.State().Era != c.era || lives(t, log) != c.lives || w.sent() != 1 {
				t.Errorf("era %s, lives %d, sent %d; want %s, %d", o.Era, lives(t, log), w.sent(), c.era, c.lives)
			}
		})
	}
}

// What killed a process once is not tried again, not by another server of the same configuration either.
func TestStart_EraIsRemembered(t *testing.T) {
	log := filepath.Join(t.TempDir(), "lives")
	w := start(t, plan{"discover": "die", "lives": log})
	w.wantUnknown(w.act(map[string]any{"do": "exit"}), "exited")
	w.wantText(w.act(map[string]any{"do": "ok"}), KindOK, "")
	if n := lives(t, log); n != 3 {
		t.Errorf("lives %d, want one for the probe and two for the handshake", n)
	}
	o := w.opts
	other := New(w.cfg, o)
	t.Cleanup(other.Close)
	other.Start()
	if err := other.Wait(soon(t)); err != nil || lives(t, log) != 4 {
		t.Errorf("%v, lives %d", err, lives(t, log))
	}
}

func failure(t *testing.T, w *world) *StartError {
	t.Helper()
	w.Start()
	var e *StartError
	if err := w.Wait(soon(t)); !errors.As(err, &e) {
		t.Fatalf("the start says %v", err)
	}
	return e
}

func TestStart_Fails(t *testing.T) {
	log := filepath.Join(t.TempDir(), "lives")
	w := prepare(t, plan{"exit_at": "start", "say": "no key: s3cr3t-value", "lives": log}, func(c *Config, o *Options) {
		c.Secrets = []string{"s3cr3t-value"}
	})
	e := failure(t, w)
	if !strings.Contains(e.Reason, "exited (status 3)") || !strings.Contains(e.Stderr, "no key: [secret hidden by holdfast]") {
		t.Errorf("reason %q, stderr %q", e.Reason, e.Stderr)
	}
	if n := lives(t, log); n != 5 || w.State().Phase != Failed {
		t.Errorf("it was started %d times; %+v", n, w.State())
	}
	// Within the window nothing starts any more, and nobody waits.
	if _, err := w.Acquire(soon(t), Tool{}); !errors.As(err, &e) || lives(t, log) != 5 {
		t.Errorf("%v, lives %d", err, lives(t, log))
	}
	if strings.Contains(w.logs.String(), "s3cr3t") {
		t.Error("the log has the secret")
	}
}

func TestStart_AnotherWindow(t *testing.T) {
	log := filepath.Join(t.TempDir(), "lives")
	now := time.Now()
	w := prepare(t, plan{"exit_at": "start", "lives": log}, func(_ *Config, o *Options) { o.Now = func() time.Time { return now } })
	failure(t, w)
	w.mu.Lock()
	now = now.Add(6 * time.Minute)
	w.mu.Unlock()
	var e *StartError
	if _, err := w.Acquire(soon(t), Tool{}); !errors.As(err, &e) || lives(t, log) != 10 {
		t.Errorf("%v, lives %d", err, lives(t, log))
	}
}

func TestStart_NoSuchCommand(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "text"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"no-such-command-anywhere", "/no/such/file", filepath.Join(dir, "text"), dir} {
		w := prepare(t, nil, func(c *Config, _ *Options) { c.Command = command })
		if e := failure(t, w); !strings.Contains(e.Reason, "cannot be started") || w.State().Phase != Failed {
			t.Errorf("%s: %q, %+v", command, e.Reason, w.State())
		}
	}
}

func TestStart_TooSlow(t *testing.T) {
	for _, p := range []plan{{"discover": "silent", "initialize": "silent"}, {"list": "silent"}} {
		w := prepare(t, p, func(_ *Config, o *Options) {
			o.Limits.Start, o.Limits.Probe = 600*time.Millisecond, 200*time.Millisecond
		})
		if e := failure(t, w); !strings.Contains(e.Reason, "was not ready within 600ms") || w.State().Phase != BackingOff {
			t.Errorf("%q, %+v", e.Reason, w.State())
		}
	}
}

func TestStart_ListsWithoutEnd(t *testing.T) {
	for _, pages := range []string{"endless", "repeating"} {
		w := start(t, plan{"pages": pages})
		if a := w.Aside(); len(a) != 1 || !strings.Contains(a[0].Reason, "does not end") {
			t.Errorf("%s: aside %+v", pages, a)
		}
	}
}

// The child sees only what it needs and what was configured.
func TestStart_Environment(t *testing.T) {
	t.Setenv("HOLDFAST_PRIVATE", "private")
	t.Setenv("OPENAI_API_KEY", "private")
	w := start(t, nil, func(c *Config, _ *Options) { c.Env = []string{"A=b", "HOME=/elsewhere"} })
	o := w.act(map[string]any{"do": "env"})
	allowed := append([]string{"A", tagName}, inherits...)
	for line := range strings.Lines(o.Answer.Text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		found := false
		for _, a := range allowed {
			found = found || a == name
		}
		if !found || name == "HOME" && value != "/elsewhere" || strings.Contains(value, "private") {
			t.Errorf("the child has %s", line)
		}
	}
	if !strings.Contains(o.Answer.Text, "A=b") || !strings.Contains(o.Answer.Text, tagName+"="+w.opts.Tag) {
		t.Errorf("the environment is %s", o.Answer.Text)
	}
}

// A wait that is given up costs the server nothing; a server that was never started says so.
func TestStart_Wait(t *testing.T) {
	w := prepare(t, plan{"start_ms": 300})
	var e *StartError
	if err := w.Wait(soon(t)); !errors.As(err, &e) || w.State().Phase != Stopped {
		t.Errorf("not started: %v, %+v", err, w.State())
	}
	w.Start()
	w.Start()
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := w.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a short wait: %v", err)
	}
	if err := w.Wait(soon(t)); err != nil || w.State().Generation != 1 {
		t.Errorf("%v, %+v", err, w.State())
	}
}

func TestHistory_Next(t *testing.T) {
	l := Limits{}.withDefaults()
	now := time.Now()
	ago := func(d ...time.Duration) (list []time.Time) {
		for _, e := range d {
			list = append(list, now.Add(-e))
		}
		return list
	}
	const s = time.Second
	for name, c := range map[string]struct {
		h    history
		wait time.Duration
		ok   bool
	}{
		"the first":               {history{}, 0, true},
		"after one failure":       {history{ago(s), 1, now}, s / 2, true},
		"after two":               {history{ago(2*s, s), 2, now}, s, true},
		"some of it has passed":   {history{ago(2*s, s), 2, now.Add(-s / 4)}, 3 * s / 4, true},
		"all of it has passed":    {history{ago(2*s, s), 2, now.Add(-time.Minute)}, 0, true},
		"never more than the max": {history{ago(s), 30, now}, 30 * s, true},
		"five in the window":      {history{ago(4*s, 3*s, 2*s, s, 0), 5, now}, 0, false},
		"one of five is old":      {history{ago(301*s, 3*s, 2*s, s, 0), 5, now}, 8 * s, true},
	} {
		wait, ok := c.h.next(now, l, 0.5)
		if wait != c.wait || ok != c.ok {
			t.Errorf("%s: %s, %v; want %s, %v", name, wait, ok, c.wait, c.ok)
		}
	}
	h := history{ago(time.Minute*6, time.Minute), 3, now}
	h.over(now.Add(-5*time.Minute), now, l)
	if h.failures != 1 || len(h.starts) != 0 {
		t.Errorf("five healthy minutes left %+v", h)
	}
}
