package context_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
)

// A server that keeps the beginnings of requests, and counts by their bytes what later ones have in common with them, finds each request of a
// session to begin with the whole of the one before: with tools, with an answer of many calls at once, and after a restart.
func TestCacheShare(t *testing.T) {
	for _, family := range fakemodel.Families {
		t.Run(family, func(t *testing.T) {
			t.Setenv("HOLDFAST_FAMILY", family)
			w := newWorld(t)
			w.also = []string{"HOLDFAST_OPENAI_DIALECT=openai"}
			w.model.Cache()
			for i := range 15 {
				w.write(fmt.Sprintf("file-%d.txt", i), strings.Repeat(fmt.Sprintf("line of file %d\n", i), 40))
			}
			w.answer = func(r fakemodel.Request) fakemodel.Reply {
				if last := r.Messages[len(r.Messages)-1]; last.Role == "tool" {
					return fakemodel.Text("Both are read.")
				}
				var calls []fakemodel.Call
				from, to := 0, 2
				if strings.Contains(r.LastUser(), "all of them") {
					to = 15
				}
				for i := from; i < to; i++ {
					calls = append(calls, fakemodel.Call{Name: "read", Args: fmt.Sprintf(`{"path":"file-%d.txt"}`, i)})
				}
				return fakemodel.Calls(calls...)
			}
			a := w.launch("", nil)
			s := a.NewSession(w.work)
			for turn := range 12 {
				text := fmt.Sprintf("turn %d: read two files", turn)
				switch turn {
				case 4:
					text = "read all of them"
				case 6: // another process goes on
					if err := a.CloseInput(); err != nil {
						t.Fatal(err)
					}
					a = w.launch("", nil)
					w.load(a, s)
				}
				w.say(a, s, text)
			}
			asked := w.model.Requests()
			if len(asked) != 24 {
				t.Fatalf("the model was asked %d times; want 24", len(asked))
			}
			var whole, read, before int64
			for _, r := range asked {
				u := r.Counted
				if whole > 0 && u.CacheRead < before-128 { // the service keeps whole steps of 128
					t.Errorf("request %d read %d tokens from the cache, and the one before had %d: its beginning has changed", r.N, u.CacheRead, before)
				}
				if named := r.CacheKey != ""; named != (family != "anthropic") || r.CacheKey != asked[0].CacheKey {
					t.Errorf("request %d names the cache %q, the first %q", r.N, r.CacheKey, asked[0].CacheKey)
				}
				before = u.Prompt + u.CacheRead + u.CacheWrite
				whole, read = whole+before, read+u.CacheRead
			}
			share := 100 * read / whole
			t.Logf("%s: %d%% of %d input tokens were read from the cache", family, share, whole)
			if share < 90 {
				t.Errorf("only %d%% of the input was read from the cache", share)
			}
			var x struct {
				Usage struct{ InputTokens, CacheReadTokens int64 }
			}
			if err := json.Unmarshal([]byte(w.command(0, "sessions", "export", "--format", "json", s)), &x); err != nil {
				t.Fatal(err)
			}
			if x.Usage.InputTokens != whole || x.Usage.CacheReadTokens != read {
				t.Errorf("the session says %+v; the service counted %d, of which %d were read from the cache", x.Usage, whole, read)
			}
		})
	}
}

// A server that does not know the name of a cache is not given one.
func TestCacheIsNotNamedElsewhere(t *testing.T) {
	w := newWorld(t)
	a := w.launch("", nil)
	w.say(a, a.NewSession(w.work), "hello")
	if body := string(w.last().Body); strings.Contains(body, "prompt_cache_key") {
		t.Errorf("a server of no known kind got %.300s", body)
	}
}
