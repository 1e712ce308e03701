package crash_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"holdfast/conformance/harness"
)

// begin launches an agent on a new world and sets the Goal.
func begin(t *testing.T, prepare func(*user)) *user {
	t.Helper()
	t.Parallel()
	u := newUser(newWorld(t))
	if prepare != nil {
		prepare(u)
	}
	u.launch("")
	u.must(u.hello())
	_, err := u.open()
	u.must(err)
	u.must(u.create())
	return u
}

// again launches the next agent and says hello, and no more: nobody asks for the session.
func (u *user) again() {
	u.w.t.Helper()
	u.launch("")
	u.must(u.hello())
}

// finish opens the session, waits for the Goal's end and checks it.
func (u *user) finish(check func(*user)) {
	u.w.t.Helper()
	u.must(goalPlay(u))
	u.must(u.leave())
	check(u)
}

func (u *user) commandRuns() {
	u.w.t.Helper()
	harness.Eventually(u.w.t, "the command runs", func() bool { return u.w.lines("counter") == 1 })
}

// What was committed of an answer is kept, marked as interrupted, and the prompt is answered by itself.
func TestKill_InTheMiddleOfAnAnswer(t *testing.T) {
	t.Parallel()
	u := newUser(newWorld(t))
	u.launch("")
	u.must(u.hello())
	_, err := u.open()
	u.must(err)
	u.a.Prompt(u.session, "please tale")
	watcher := newUser(u.w)
	watcher.launches, watcher.session = 50, u.session // a second window sees what is committed
	watcher.launch("")
	watcher.must(watcher.hello())
	watcher.must(watcher.until("the text is stored", func() (bool, error) {
		_, err := watcher.open()
		return strings.Contains(watcher.a.Text(u.session), "and stormy night "), err
	}))
	watcher.must(watcher.leave())
	u.a.Kill()
	u.again()
	harness.Eventually(t, "the prompt is taken up without a client", func() bool { return u.w.seen("tale") == 2 })
	_, err = u.open()
	u.must(err)
	u.must(u.until("the rest is shown", func() (bool, error) { return strings.Contains(u.a.Text(u.session), "was over."), u.alive() }))
	u.must(u.leave())
	said, person := u.transcript()
	if strings.Count(said, "It was a dark and stormy night ") != 1 || !strings.Contains(said, "interrupted") || strings.Contains(said, "never sent") {
		t.Errorf("the transcript holds: %s", said)
	}
	if strings.Count(person, "please tale") != 1 {
		t.Errorf("the prompt is in the transcript: %s", person)
	}
	u.honest()
}

// A question that was open is asked again: once, not before the session is open, and the call runs once.
func TestKill_QuestionOpen(t *testing.T) {
	u := begin(t, func(u *user) { u.choose = func(string) string { return "" } })
	asked := func(m harness.Message) bool { return m.Method == "session/request_permission" }
	u.find("a question", asked)
	u.a.Kill()
	u.choose = nil
	u.again()
	u.alone()
	if _, early := first(u.a.Log(), asked); early {
		t.Error("a client that has not opened the session was asked")
	}
	if n := u.w.lines("counter"); n != 0 {
		t.Error("the command ran without permission")
	}
	_, err := u.open()
	u.must(err)
	u.must(u.end())
	if n := u.asked("echo run"); n != 1 {
		t.Errorf("it was asked %d times after the restart", n)
	}
	u.must(u.leave())
	achieved(u)
}

func first(log []harness.Message, want func(harness.Message) bool) (harness.Message, bool) {
	for _, m := range log {
		if want(m) {
			return m, true
		}
	}
	return harness.Message{}, false
}

// A command that runs is found again, by a process that was told nothing but hello, and its real exit code arrives.
func TestKill_CommandRunning(t *testing.T) {
	u := begin(t, func(u *user) { u.w.put("hold") })
	u.commandRuns()
	u.a.Kill()
	before := u.w.requests()
	u.again()
	harness.Eventually(t, "the work is taken over without a client", func() bool { return u.w.logged(u.a.PID(), "took over") })
	u.must(u.until("the command is found again", func() (bool, error) {
		g, err := u.goal()
		for _, m := range g.History {
			if m.Mode == "reconnect" {
				return true, err
			}
		}
		return false, err
	}))
	if n := u.w.requests() - before; n != 0 {
		t.Errorf("%d model requests were made while the command ran", n)
	}
	u.w.remove("hold")
	harness.Eventually(t, "the work goes on without a client", func() bool { return u.w.requests() > before })
	g, err := u.goal()
	u.must(err)
	for _, m := range g.History {
		if m.Title == command && m.SettledBy != "receipt" {
			t.Errorf("the command was settled by %q", m.SettledBy)
		}
	}
	u.finish(achieved)
}

// A command that ended while nobody was there has left its receipt.
func TestKill_CommandEndsAlone(t *testing.T) {
	u := begin(t, func(u *user) { u.w.put("hold") })
	u.commandRuns()
	u.a.Kill()
	u.w.remove("hold")
	supervisor := u.supervisor()
	harness.Eventually(t, "the supervisor has ended", func() bool { return syscall.Kill(supervisor, 0) != nil })
	before := u.w.requests()
	u.again()
	harness.Eventually(t, "the work goes on without a client", func() bool { return u.w.requests() > before })
	u.finish(achieved)
}

// supervisor is the process id that the command saw as its parent.
func (u *user) supervisor() int {
	u.w.t.Helper()
	b, err := os.ReadFile(filepath.Join(u.w.dir, "supervisor"))
	u.must(err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	u.must(err)
	return pid
}

// The review is interrupted while its evidence command runs, and before either answer of the reviewer.
func TestKill_InTheReview(t *testing.T) {
	for _, moment := range []string{"check", "reading", "verdict"} {
		t.Run(moment, func(t *testing.T) {
			u := begin(t, func(u *user) { u.w.put("hold-" + moment) })
			harness.Eventually(t, "the review is there", func() bool { return u.w.seen(moment) == 1 || moment == "check" && u.w.lines("checks") == 1 })
			u.a.Kill()
			u.w.remove("hold-" + moment)
			u.again()
			harness.Eventually(t, "the review goes on without a client", func() bool { return u.w.seen("review") > 0 })
			u.finish(achieved)
		})
	}
}

// A command whose supervisor was killed has an unknown outcome. It is never repeated, the next calls ask and name it, and either answer
// of the user lets the work go on.
func TestKill_Supervisor(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		both   bool // the agent dies as well
	}{
		"it happened":       {"it_happened", false},
		"it did not":        {"it_did_not", false},
		"both, it happened": {"it_happened", true},
		"both, it did not":  {"it_did_not", true},
	} {
		t.Run(name, func(t *testing.T) {
			u := begin(t, func(u *user) {
				u.w.put("hold")
				u.unknown = func() string { return c.answer }
			})
			u.commandRuns()
			if err := syscall.Kill(u.supervisor(), syscall.SIGKILL); err != nil { // a grandchild of this test
				t.Fatal(err)
			}
			if c.both {
				u.a.Kill()
			}
			u.w.remove("hold")
			if c.both {
				u.again()
				u.alone()
			}
			u.must(goalPlay(u))
			u.must(u.leave())
			if c.answer == "it_happened" {
				lost(u)
				return
			}
			u.settledByWord()
		})
	}
}

// settledByWord checks the end of a Goal whose user said that the lost command did not happen. The model saw that it had.
func (u *user) settledByWord() {
	t := u.w.t
	t.Helper()
	u.honest()
	if n := u.w.lines("counter"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	u.again()
	g, err := u.goal()
	u.must(err)
	if g.Status != "achieved" {
		t.Errorf("the goal is %s (%s %s)", g.Status, g.ReasonCode, g.Reason)
	}
	told := false
	for _, m := range g.History {
		told = told || m.Title == command && m.Fact == "not_started" && m.SettledBy == "person"
	}
	if !told {
		t.Errorf("the history does not have the user's word: %+v", g.History)
	}
	u.must(u.leave())
}
