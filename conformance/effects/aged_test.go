package effects_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// A session that nobody has opened for years is as it was: listed, loaded with everything in it, and worked on. What is removed of old calls
// is not part of the history.
func TestPrune_AnIdleSessionNeverDisappears(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string][]fakemodel.Call{"old": {tool("shell", map[string]string{"command": "echo the output of then"})}})
	a := w.launch("")
	session := w.open(a)
	w.prompt(a, session, "old")
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	years := 5 * 12 * month
	for table, columns := range map[string][]string{"sessions": {"created_at", "updated_at"}, "items": {"created_at"}, "events": {"at"},
		"runs": {"created_at", "ended_at"}, "effects": {"planned_at", "dispatched_at", "settled_at"}, "commands": {"at", "consumed_at"}} {
		for _, c := range columns {
			w.edit("UPDATE "+table+" SET "+c+" = "+c+" - ?", years)
		}
	}
	then := time.Now().Add(-time.Duration(years) * time.Millisecond)
	w.must(filepath.Walk(w.path("home/calls"), func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, then, then)
	}))
	b := w.launch("")
	b.Must("session/list", map[string]any{}, nil)
	harness.Eventually(t, "the files of the old call are removed", func() bool { return len(w.kept("calls")) == 0 })
	for range 2 { // also when nothing but that is left
		raw, e := b.Call("session/list", map[string]any{})
		if e != nil || !strings.Contains(string(raw), session) {
			t.Fatalf("listed %s (%v)", raw, e)
		}
		b.Must("session/load", w.params(session), nil)
		harness.Eventually(t, "the history is whole", func() bool {
			all, err := json.Marshal(b.Updates(session))
			return err == nil && strings.Contains(string(all), "the output of then")
		})
		if err := b.CloseInput(); err != nil {
			t.Fatal(err)
		}
		b = w.launch("")
	}
	b.Must("session/load", w.params(session), nil)
	w.prompt(b, session, "more")
}
