package upgrade_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/conformance/harness"
)

// forbid raises the lowest writer under live processes, as a newer release does, and returns what is needed.
func (w *world) forbid() string {
	w.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(w.home, "holdfast.db")+"?_busy_timeout=10000")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec("UPDATE meta SET value = '77' WHERE key = 'min_writer'"); err != nil {
		w.t.Fatal(err)
	}
	return "schema 77"
}

// waiting waits for an error answer and checks it.
func (w *world) failed(a *harness.Agent, id string, words ...string) {
	w.t.Helper()
	w.told("the prompt", a.Await(id).Error, "store_newer", words...)
}

// alive wants a process that has let go and neither ended nor spins.
func (w *world) alive(a *harness.Agent) {
	w.t.Helper()
	before := w.ticks(a.PID())
	a.Must("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}}, nil)
	if spent := w.ticks(a.PID()) - before; spent > 50 {
		w.t.Errorf("%d ticks of processor time for one answer", spent)
	}
	log, _ := os.ReadFile(filepath.Join(w.home, "log.jsonl"))
	if n := bytes.Count(log, []byte("\n")); n > 60 {
		w.t.Errorf("%d lines in the log", n)
	}
}

func (w *world) ticks(pid int) (n int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		w.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	var user, system int
	_, _ = fmt.Sscan(f[11]+" "+f[12], &user, &system) // fields 14 and 15
	return user + system
}

// locked tells whether a process holds the schema lock or an instance lock. A command that it started holds one of another kind.
func (w *world) locked(pid int) bool {
	w.t.Helper()
	b, err := os.ReadFile("/proc/locks")
	if err != nil {
		w.t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(w.home, "run", "*.lock")) // the pattern is a good one
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			continue // it was removed
		}
		inode := fmt.Sprintf(":%d", info.Sys().(*syscall.Stat_t).Ino)
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 5 && f[4] == fmt.Sprint(pid) && strings.HasSuffix(f[5], inode) {
				return true
			}
		}
	}
	return false
}

// 'holdfast upgrade' of the newer release: the older ones stop working and say so, whatever they are doing; their commands go on, and the
// newer editor that waited takes the work over. Nothing runs twice.
func TestRetire_WorkIsTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, once(held))
	busy := w.editor(w.old)
	s := busy.NewSession(w.work)
	p := busy.Prompt(s, "work")
	w.begun()
	idle := w.editor(w.old)
	other := idle.NewSession(w.work)
	mcp := w.mcp(w.old)
	w.listing(mcp)
	next := w.editor(w.next)
	w.refused(next, s, "store_in_use", fmt.Sprint(busy.PID()), fmt.Sprint(idle.PID()), fmt.Sprint(mcp.PID()))
	w.want(w.next, 0, []string{"upgrade"}, "has schema")
	w.failed(busy, p, "A newer Holdfast has taken the store over", nextVersion, "restart the editor")
	for a, session := range map[*harness.Agent]string{busy: s, idle: other} {
		harness.Eventually(t, "the open session is told", func() bool { return strings.Contains(a.Text(session), "A newer Holdfast has taken the store over") })
		w.refused(a, session, "store_newer", "A newer Holdfast has taken the store over", "restart the editor")
		a.Notify("session/cancel", map[string]any{"sessionId": session})
		w.alive(a)
		harness.Eventually(t, "every lock is let go", func() bool { return !w.locked(a.PID()) })
	}
	if got := w.listing(mcp); !strings.Contains(got, "store_newer") {
		t.Errorf("the MCP server says %s", got)
	}
	next.Must("session/load", w.params(s), nil)
	w.letGo()
	harness.Eventually(t, "the work is finished", func() bool { return strings.Contains(next.Text(s), "finished well") })
	if w.runs() != 1 || len(w.model.Requests()) != 2 {
		t.Errorf("the command ran %d times, with %d model requests", w.runs(), len(w.model.Requests()))
	}
	if n := w.query("SELECT count(*) FROM effects WHERE fact = 'completed'"); n != 1 {
		t.Errorf("%d calls are completed", n)
	}
	for _, a := range []*harness.Agent{busy, idle, mcp, next} {
		w.end(a)
	}
	w.copyOpens(w.backups(), s) // the way back is open
}

// A process that must not write any more stops at its next write, without waiting to look.
func TestRetire_AtTheNextWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	a := w.editor(w.old)
	s := a.NewSession(w.work)
	w.says(a, s, "first")
	needed := w.forbid()
	w.failed(a, a.Prompt(s, "second"), needed, "restart the editor")
	if n := len(w.model.Requests()); n != 1 {
		t.Errorf("%d model requests", n)
	}
	harness.Eventually(t, "the open session is told", func() bool { return strings.Contains(a.Text(s), needed) })
	w.refused(a, s, "store_newer", needed)
	w.alive(a)
	w.end(a)
	w.refused(w.editor(w.old), s, "store_newer", needed) // and so is the next launch
	w.want(w.old, 1, []string{"doctor"}, "store_newer", needed)
}

// A question that was open in the older editor is asked again by the newer one, and its answer counts once.
func TestRetire_QuestionIsAskedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, once("echo run >> counter"))
	old := harness.Start(t, harness.Options{Binary: w.old, Env: w.env, Permission: func(json.RawMessage) string { return "" }})
	old.Initialize()
	s := old.NewSession(w.work)
	p := old.Prompt(s, "work")
	asked := func(m harness.Message) bool { return m.Method == "session/request_permission" }
	if _, ok := old.Find(asked); !ok {
		t.Fatal("no question")
	}
	w.want(w.next, 0, []string{"upgrade"}, "has schema")
	w.failed(old, p, nextVersion)
	next := w.editor(w.next)
	next.Must("session/load", w.params(s), nil)
	harness.Eventually(t, "the work is finished", func() bool { return strings.Contains(next.Text(s), "finished well") })
	if _, ok := next.Find(asked); !ok || w.runs() != 1 {
		t.Errorf("asked again %v, the command ran %d times", ok, w.runs())
	}
}

// A worker without an editor says why it ends.
func TestRetire_WorkerEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, once(held))
	a := w.editor(w.old)
	a.Prompt(a.NewSession(w.work), "work")
	w.begun()
	a.Kill()
	work := harness.Start(t, harness.Options{Binary: w.old, Args: []string{"work", "--json"}, Env: w.env, Invalid: true})
	harness.Eventually(t, "it has the work", func() bool {
		return w.query("SELECT count(*) FROM sessions WHERE owner IN (SELECT id FROM instances WHERE kind = 'work')") == 1
	})
	needed := w.forbid()
	if err := work.Wait(); err == nil || !strings.Contains(work.Stderr(), "store_newer") || !strings.Contains(work.Stderr(), needed) {
		t.Errorf("it ended with %v and said %q", err, work.Stderr())
	}
}

// A death while the older release is forbidden to write leaves a store that either release understands.
func TestRetire_SurvivesDeath(t *testing.T) {
	t.Parallel()
	for point, code := range map[string]int{"store.raised:before": 0, "store.raised:after": 1} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			s := w.used()
			plain := w.env
			w.env = append([]string{"HOLDFAST_CRASH=" + point}, plain...)
			w.want(w.next, -1, []string{"upgrade"})
			w.env = plain
			w.want(w.old, code, []string{"sessions", "--json"})
			w.want(w.next, 0, []string{"upgrade"}, "has schema")
			w.want(w.next, 0, []string{"sessions", "--json"}, s)
		})
	}
}
