package goals_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"holdfast/conformance/fakemodel"
)

// New limits in the middle of a review make that review out of date as any control does. Another one follows; nobody waits for the first.
func TestEvidence_BudgetDuringAReview(t *testing.T) {
	t.Parallel()
	begun, gate := make(chan struct{}), make(chan struct{})
	var held atomic.Bool
	w := newWorld(t, script(turn(writes("out.txt", "result\n"), candidate())), nil)
	w.review = func(r fakemodel.Request) fakemodel.Reply {
		if made(r, "read") != "" && held.CompareAndSwap(false, true) {
			close(begun)
			<-gate
		}
		return accepts(r)
	}
	a, s := w.start()
	create(a, s, "Produce out.txt.", nil)
	<-begun
	update(a, s, "budget", map[string]any{"budget": map[string]any{"tokens": 50_000_000}})
	close(gate)
	w.until(a, s, "achieved")
}

// What a reviewer has read is compared with what is there in the commit, also when a command wrote it and not the worker's own edit.
func TestEvidence_CitedFileChanged(t *testing.T) {
	t.Parallel()
	var touched atomic.Bool
	w := newWorld(t, script(turn(shell("echo result | tee out.txt"), candidate()), turn(call("list", map[string]string{"path": "."}), candidate())), nil)
	w.review = func(r fakemodel.Request) fakemodel.Reply {
		if made(r, "read") != "" && touched.CompareAndSwap(false, true) {
			w.write("out.txt", "what somebody else wrote\n")
		}
		return accepts(r)
	}
	a, s := w.start()
	create(a, s, "Produce out.txt.", nil)
	w.until(a, s, "achieved")
	if n := w.requests("submit_review"); n != 4 {
		t.Errorf("the reviewer was asked %d times: the first review was accepted or never repeated", n)
	}
}

// A call that failed shows nothing: a reviewer that cites one is refused, and so is the goal.
func TestEvidence_FailedCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(turn(candidate())), accepts) // out.txt was never written
	a, s := w.start()
	create(a, s, "Produce out.txt.", nil)
	if g := w.until(a, s, "blocked"); of(g, "objective").Result == "met" {
		t.Errorf("the objective is %+v", of(g, "objective"))
	}
}

// A pipe in the place of a file is no file, and waiting for what it may bring would hold the session for ever.
func TestEvidence_Pipe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(turn(writes("out.txt", "result\n"), candidate())), accepts)
	pipe := filepath.Join(w.work, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	a, s := w.start()
	create(a, s, "Produce out.txt.", map[string]any{"requirements": []any{map[string]any{"id": "pipe", "kind": "file", "path": "pipe"}}})
	g := w.until(a, s, "blocked")
	if q := of(g, "pipe"); q.Result != "unmet" || !strings.Contains(q.Reason, "unreadable") {
		t.Errorf("the pipe is %+v", q)
	}
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
}

// Looking for ever other things that are not there is no progress.
func TestEvidence_EmptySearches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		n, step := at(r)
		if step == 0 && n < 12 {
			return call("grep", map[string]string{"pattern": "word" + strings.Repeat("x", n)})
		}
		return fakemodel.Text("hm")
	}, nil)
	w.write("other.txt", "nothing of it\n")
	a, s := w.start()
	create(a, s, "Find it.", nil)
	if g := w.until(a, s, "blocked"); g.ReasonCode != "no_progress" || w.requests("update_goal") > 12 {
		t.Errorf("blocked as %s after %d requests", g.ReasonCode, w.requests("update_goal"))
	}
}

// A limit without its unit is a mistake to be told, and no objective to be worked on.
func TestEvidence_LimitIsNoObjective(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(turn(candidate())), accepts)
	a, s := w.start()
	a.Await(a.Prompt(s, "/goal budget 3"))
	if g := get(a, s); g.Status != "" {
		t.Errorf("it set a goal, which is %s", g.Status)
	}
}
