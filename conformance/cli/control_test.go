package cli_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// traced is held, and says who runs it.
const traced = "echo $PPID > supervisor; echo $$ > command; " + held

func (w *world) pid(name string) int {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.work, name))
	if err != nil {
		w.t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "it is dead", func() bool { return !running(pid) })
}

// running tells a process from a zombie that nobody has collected.
func running(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return alive(pid)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// began sets a goal in an editor and waits until its command runs.
func (w *world) began(a *harness.Agent) (sess, id string) {
	w.t.Helper()
	sess = a.NewSession(w.work)
	a.Must("session/set_mode", map[string]any{"sessionId": sess, "modeId": "edit"}, nil)
	var made struct{ Goal goal }
	a.Must("create_goal", map[string]any{"sessionId": sess, "objective": "Produce out.txt."}, &made)
	w.begun()
	return sess, made.Goal.GoalID
}

type effect struct {
	EffectID, SessionID, State, Fact, SettledBy, Note string
	CanSettle                                         bool
}

type report struct {
	ExitCode int
	Findings []struct {
		Check, Level, Message, Command string
		Wait                           *struct {
			SessionID, ReasonCode string
			Allowed               []string
		}
	}
}

// doctor runs the doctor and checks that its code is the document's.
func (w *world) doctor(code int) report {
	w.t.Helper()
	r := one[report](w.t, w.want(code, "doctor", "--json").out)
	if r.ExitCode != code {
		w.t.Errorf("it ends with %d and says %d", code, r.ExitCode)
	}
	w.want(code, "doctor")
	return r
}

// finding returns the first finding of a check.
func (r report) finding(t *testing.T, check, level string) string {
	t.Helper()
	for _, f := range r.Findings {
		if f.Check == check && f.Level == level {
			return f.Message + " → " + f.Command
		}
	}
	t.Errorf("no finding %s with level %s: %+v", check, level, r.Findings)
	return ""
}

// A command whose outcome nobody knows is never repeated: 'work' ends and names what a person has to say, and goes on once that was said.
func TestWork_UnknownOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(traced))
	a := w.editor(allow)
	sess, id := w.began(a)
	a.Kill()
	kill(t, w.pid("supervisor"))
	kill(t, w.pid("command"))
	r := w.want(3, "work")
	if !strings.Contains(r.out, "approval_pending") || !strings.Contains(r.out, "it_happened") {
		t.Errorf("work says %q", r.out)
	}
	open := document[[]effect](w, "effects", "--unknown")
	if len(open) != 1 || open[0].SessionID != sess || open[0].Fact != "unknown" || !open[0].CanSettle {
		t.Fatalf("unknown: %+v", open)
	}
	d := w.doctor(3)
	if got := d.finding(t, "effect", "person"); !strings.Contains(got, "holdfast effects settle "+open[0].EffectID) {
		t.Errorf("the doctor says %q", got)
	}
	if got := d.finding(t, "waiting", "person"); !strings.Contains(got, "approval_pending") {
		t.Errorf("the doctor says %q", got)
	}
	if got := w.want(3, "work"); !strings.Contains(got.out, "approval_pending") {
		t.Errorf("a second work says %q", got.out)
	}
	if got := document[effect](w, "effects", "settle", open[0].EffectID, "--happened", "--note", "the file is there"); got.State != "settled" ||
		got.SettledBy != "person" || !strings.Contains(got.Note, "the file is there") {
		t.Errorf("settled as %+v", got)
	}
	w.want(1, "effects", "settle", open[0].EffectID, "--did-not-happen") // once
	w.want(0, "work")
	if g := w.goal(id); g.Status != "achieved" {
		t.Errorf("the goal is %+v", g)
	}
	if n := w.lines("counter"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	w.doctor(0)
}

type stopped struct {
	SessionID, GoalID, State string
	PID                      int
}

// After a stop nothing comes back, whether its process lives or not, and its command is ended.
func TestStop_NothingComesBack(t *testing.T) {
	for name, end := range map[string]func(*harness.Agent){"alive": func(*harness.Agent) {}, "killed": (*harness.Agent).Kill,
		"closed": func(a *harness.Agent) { _ = a.CloseInput() }} {
		for _, named := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", named", false: ", all"}[named], func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, pursuing(traced))
				a := w.editor(allow)
				sess, id := w.began(a)
				end(a)
				args := []string{"stop", "--all"}
				if named {
					args[1] = id // of the goal
				}
				got := document[[]stopped](w, args...)
				if len(got) != 1 || got[0].SessionID != sess || got[0].GoalID != id || got[0].State != "stopped" {
					t.Fatalf("stopped as %+v", got)
				}
				if running(w.pid("command")) {
					t.Error("its command runs on")
				}
				if got := document[struct{ Commands []any }](w, "ps"); len(got.Commands) != 0 {
					t.Errorf("ps lists %v", got.Commands)
				}
				asked := len(w.model.Requests())
				r := w.want(0, "work")
				if !strings.Contains(r.out, "holdfast goals resume "+id) {
					t.Errorf("work says %q", r.out)
				}
				if g := w.goal(id); g.Status != "paused" {
					t.Errorf("the goal is %+v", g)
				}
				if n := len(w.model.Requests()); n != asked || w.lines("counter") != 1 {
					t.Errorf("%d more requests, the command ran %d times", n-asked, w.lines("counter"))
				}
				w.doctor(0) // the user wants it to rest
				if name == "alive" {
					a.Kill()
				}
				w.want(0, "goals", "resume", id) // the user's own act
				w.want(0, "work")
				if g := w.goal(id); g.Status != "achieved" || w.lines("counter") != 1 {
					t.Errorf("resumed it is %+v, the command ran %d times", g, w.lines("counter"))
				}
			})
		}
	}
}

// A stop that the process has not confirmed says so, is stored all the same, and holds when the process wakes up.
func TestStop_Unconfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(traced))
	a := w.editor(allow)
	sess, id := w.began(a)
	harness.Suspend(t, w.home, a.PID())
	got := document[[]stopped](w, "stop", sess)
	if len(got) != 1 || got[0].State != "stopping" || got[0].PID != a.PID() {
		t.Errorf("stopped as %+v", got)
	}
	if g := w.goal(id); g.Status != "paused" {
		t.Errorf("the goal is %+v", g)
	}
	asked := len(w.model.Requests())
	a.Signal(syscall.SIGCONT)
	harness.Eventually(t, "the command is ended", func() bool { return !running(w.pid("command")) })
	if got := document[[]stopped](w, "stop", sess); len(got) != 1 || got[0].State != "stopped" {
		t.Errorf("stopped again as %+v", got)
	}
	if n := len(w.model.Requests()); n != asked {
		t.Errorf("%d more requests", n-asked)
	}
}

// Work that is let go in order, or lost, is taken up by the next that watches; a signal is no stop.
func TestWork_HandsOver(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *worker){
		"SIGTERM": func(t *testing.T, p *worker) { p.signal(syscall.SIGTERM); mustEnd(t, p, 0) },
		"SIGINT":  func(t *testing.T, p *worker) { p.signal(syscall.SIGINT); mustEnd(t, p, 0) },
		"SIGKILL": func(t *testing.T, p *worker) { p.signal(syscall.SIGKILL); mustEnd(t, p, -1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pursuing(held))
			first := w.start("--watch")
			harness.Eventually(t, "it is there", func() bool { return len(document[struct{ Processes []any }](w, "ps").Processes) == 1 })
			r := w.want(0, "goals", "create", "--mode", "edit", "Produce out.txt.", "--json")
			if r.errs != "" {
				t.Errorf("a process executes, and it says %q", r.errs)
			}
			g := one[goal](t, r.out)
			var asked []struct{ ApprovalID string }
			harness.Eventually(t, "it asks", func() bool {
				asked = document[[]struct{ ApprovalID string }](w, "sessions", "approvals")
				return len(asked) == 1
			})
			if r := w.want(0, "sessions", "answer", asked[0].ApprovalID, "allow_once"); r.errs != "" {
				t.Errorf("it says %q", r.errs)
			}
			w.begun()
			second := w.start("--watch", "--json")
			harness.Eventually(t, "the second is there", func() bool { return len(document[struct{ Processes []any }](w, "ps").Processes) == 2 })
			end(t, first)
			harness.Eventually(t, "the second has it", func() bool { return strings.Contains(second.said(), g.SessionID) })
			w.put("go")
			harness.Eventually(t, "the goal is achieved", func() bool { return w.goal(g.GoalID).Status == "achieved" })
			if n := w.lines("counter"); n != 1 {
				t.Errorf("the command ran %d times", n)
			}
			if strings.Contains(second.said(), "Produce") {
				t.Errorf("a line tells what was asked for: %s", second.said())
			}
			second.signal(syscall.SIGTERM)
			mustEnd(t, second, 0)
		})
	}
}

func mustEnd(t *testing.T, p *worker, code int) {
	t.Helper()
	if got := p.wait(); got != code || p.errs.Len() > 0 && !strings.HasPrefix(p.errs.String(), "holdfast: left; ") {
		t.Errorf("it ended with %d, stderr %q", got, p.errs.String())
	}
}

// An editor that stays takes up what another one let go of in order.
func TestEditors_HandOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(held))
	stays := w.editor(nil)
	stays.Must("session/list", map[string]any{}, nil)
	leaves := w.editor(allow)
	_, id := w.began(leaves)
	if err := leaves.CloseInput(); err != nil {
		t.Error(err)
	}
	w.put("go")
	harness.Eventually(t, "the goal is achieved", func() bool { return w.goal(id).Status == "achieved" })
	if n := w.lines("counter"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
}

// Two at once share what there is, and nothing is done twice.
func TestWork_Two(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(""))
	const n = 4
	for range n {
		dir := filepath.Join(w.work, strconv.Itoa(len(document[[]goal](w, "goals"))))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		w.want(0, "goals", "create", "--mode", "edit", "--cwd", dir, "Produce out.txt.")
	}
	first, second := w.start(), w.start()
	mustEnd(t, first, 0)
	mustEnd(t, second, 0)
	w.want(0, "work") // what was let go of in the moment the other looked away
	for _, g := range document[[]goal](w, "goals") {
		if g.Status != "achieved" {
			t.Errorf("it is %+v", g)
		}
	}
	steps := map[string]int{}
	for _, r := range w.model.Requests() {
		steps[step(r)]++
	}
	for s, times := range steps {
		if times != n {
			t.Errorf("%q was asked for %d times, want %d", s, times, n)
		}
	}
}

// step says where a request stands in its goal.
func step(r fakemodel.Request) string {
	thread := "work"
	for _, tool := range r.Tools {
		if tool.Name == "submit_review" {
			thread = "review"
		}
	}
	calls := 0
	for _, m := range r.Messages {
		calls += len(m.ToolCalls)
	}
	return thread + " after " + strconv.Itoa(calls)
}

// A session that an editor closed waits for an editor, and 'work' says so.
func TestWork_LeavesAClosedSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(held))
	a := w.editor(allow)
	sess, id := w.began(a)
	a.Must("session/close", map[string]any{"sessionId": sess}, nil)
	if err := a.CloseInput(); err != nil {
		t.Error(err)
	}
	w.put("go")
	r := w.want(3, "work")
	if !strings.Contains(r.out, "closed_by_client") || !strings.Contains(r.out, "holdfast stop "+sess) {
		t.Errorf("work says %q", r.out)
	}
	if g := w.goal(id); g.Status != "active" {
		t.Errorf("the goal is %+v", g)
	}
	if r := w.want(0, "sessions", "send", sess, "go on"); !strings.Contains(r.errs, "an editor opens it") {
		t.Errorf("it says %q", r.errs)
	}
	if got := document[[]stopped](w, "stop", sess); len(got) != 1 || got[0].State != "stopped" {
		t.Errorf("stopped as %+v", got)
	}
	if n := len(document[[]any](w, "effects", "--unknown")); n != 0 {
		t.Errorf("%d outcomes are unknown", n)
	}
}

// The doctor tells a store that cannot be used from one that is well.
func TestDoctor_Store(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(""))
	w.doctor(0).finding(t, "store", "note") // none yet
	w.want(0, "goals", "create", "--mode", "edit", "Produce out.txt.")
	if got := w.doctor(3).finding(t, "unattended", "person"); !strings.HasSuffix(got, "holdfast work") {
		t.Errorf("the doctor says %q", got)
	}
	w.want(0, "work")
	d := w.doctor(0)
	for _, check := range []string{"directory", "space", "model", "schema", "integrity"} {
		d.finding(t, check, "ok")
	}
	if err := os.Chmod(filepath.Join(w.home, "holdfast.db"), 0o644); err != nil {
		t.Fatal(err)
	}
	one[report](t, w.want(0, "doctor", "--json").out).finding(t, "directory", "note")
	if err := os.WriteFile(filepath.Join(w.home, "holdfast.db"), []byte(strings.Repeat("no store ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := w.doctor(1).finding(t, "store", "fault"); !strings.Contains(got, "backups") {
		t.Errorf("the doctor says %q", got)
	}
	for _, args := range [][]string{{"goals"}, {"work"}, {"stop", "--all"}, {"ps"}} {
		if r := w.want(1, args...); !strings.Contains(r.errs, "store_corrupt") || !strings.Contains(r.errs, "backups") {
			t.Errorf("%q: %+v", args, r)
		}
	}
}
