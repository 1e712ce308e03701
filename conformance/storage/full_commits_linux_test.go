package storage_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// fullCommits are the commits of a turn with a question, a call and an answer.
var fullCommits = []string{"session.created", "prompt.accepted", "run.admitted", "request.started", "response.stored", "approval.raised", "approval.answered",
	"effect.dispatched", "effect.settled", "text.flushed", "turn.ended"}

// The disk is full at one commit after the other, reserve included. Whatever was to be stored there is stored when there is room, or was
// refused by name and is done by saying it again; the command runs once, and every call ends settled.
func fullEveryCommit(t *testing.T) {
	met := 0
	for _, point := range fullCommits {
		t.Run(point, func(t *testing.T) {
			if fullAt(t, point) {
				met++
			}
		})
	}
	if met < len(fullCommits)/2 { // a small commit may find room in the log
		t.Errorf("only %d of %d commits met a full disk", met, len(fullCommits))
	}
}

// fullAt tells whether the commit met the full disk.
func fullAt(t *testing.T, point string) (met bool) {
	long := strings.Repeat("word ", 100_000)
	s := newSmall(t, func(_ *small, r fakemodel.Request) fakemodel.Reply {
		if len(r.Results()) > 0 {
			return fakemodel.Text(long, "Done.")
		}
		return shell("echo run >> counter; head -c 300000 /dev/zero | tr '\\0' x")
	})
	resume, reached := filepath.Join(s.work, "resume"), filepath.Join(s.work, "reached")
	a := harness.Start(t, harness.Options{Binary: os.Getenv(inNamespaceFaults), Permission: func(json.RawMessage) string { return "allow_once" },
		Env: append(s.env, "HOLDFAST_CRASH="+point+":before/pause", "HOLDFAST_CRASH_LOG="+reached, "HOLDFAST_CRASH_RESUME="+resume)})
	a.Initialize()
	made := a.Begin("session/new", map[string]any{"cwd": s.work, "mcpServers": []any{}})
	fillThere := func() {
		harness.Eventually(t, "the commit is reached", func() bool { return s.has("reached") })
		s.fill()
		s.put("resume")
	}
	if point == "session.created" {
		fillThere()
	}
	m := a.Await(made)
	if m.Error != nil {
		met = s.refused(m.Error)
		s.free()
		m = a.Await(a.Begin("session/new", map[string]any{"cwd": s.work, "mcpServers": []any{}}))
	}
	var session struct {
		SessionID string `json:"sessionId"`
	}
	if m.Error != nil || json.Unmarshal(m.Result, &session) != nil {
		t.Fatalf("session/new: %+v", m.Error)
	}
	id := session.SessionID
	p := a.Prompt(id, "work")
	if point != "session.created" {
		fillThere()
	}
	done := make(chan struct{})
	go func() { // ends with the answer, or with the limit of the harness
		if _, ok := a.Find(func(m harness.Message) bool { return m.Method == "" && string(m.ID) == p }); ok {
			close(done)
		}
	}()
	answered := func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
	harness.Eventually(t, "it is done, or the user is told", func() bool {
		told := strings.Contains(a.Text(id), "store_full")
		met = met || told
		return told || answered()
	})
	if !s.gone("ballast") {
		s.free()
	}
	if m := a.Await(p); m.Error != nil {
		met = s.refused(m.Error)
		if m := a.Await(a.Prompt(id, "work")); m.Error != nil {
			t.Fatalf("the prompt, said again: %+v", m.Error)
		}
	}
	if got := s.value(`SELECT group_concat(DISTINCT state || ' ' || fact) FROM effects WHERE session = ?1`, id); got != "settled completed" || s.lines("counter") != 1 {
		t.Errorf("the journal says %q; the command ran %d times", got, s.lines("counter"))
	}
	if !strings.Contains(a.Text(id), "Done.") {
		t.Error("the answer does not end as the model ended it")
	}
	if err := a.CloseInput(); err != nil {
		t.Error(err)
	}
	return met
}

// refused wants an error to say that the disk is full.
func (s *small) refused(e *harness.Error) bool {
	s.t.Helper()
	if code, action := codeOf(e); code != "store_full" || action == "" {
		s.t.Fatalf("refused with %+v", e)
	}
	return true
}

func (s *small) gone(name string) bool {
	_, err := os.Stat(filepath.Join(s.home, name))
	return err != nil
}
