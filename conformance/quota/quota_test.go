package quota_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"holdfast/conformance/harness"
)

const two = "[limits]\nworking = 2\n"

// Runs of two processes are counted together, and who is next is rung by the process that frees a slot.
func TestQuota_CountedOverProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, two)
	first := w.interrupted("a", 2)
	one := w.worker("")
	w.await("both of the first process work", first[0].text, first[1].text)
	w.suspend(one) // so that another process takes the next ones over
	second := w.interrupted("b", 2)
	other := w.worker("")
	for _, l := range second {
		s := w.stands(l, "queued", "waiting_for_slot")
		if !strings.HasPrefix(s.Reason, "2 runs work unattended") || s.OwnerPID != other.PID() {
			t.Errorf("it says %+v", s)
		}
	}
	w.await("nothing more works", first[0].text, first[1].text)
	one.Signal(syscall.SIGCONT)
	w.release(first[0].text)
	w.await("the slot goes to the other process", first[1].text, second[0].text)
	w.release(second[0].text)
	w.await("and on", first[1].text, second[1].text)
	w.release(first[1].text)
	w.release(second[1].text)
	harness.Eventually(t, "all slots are free", func() bool { return len(w.queue()) == 0 })
	if w.most != 2 {
		t.Errorf("%d worked at once; asked %q", w.most, w.asked())
	}
}

// With every slot taken a user's prompt is answered at once, and a session that waits goes on when an editor opens it.
func TestQuota_AttendedPassesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	all := w.interrupted("a", 5)
	w.worker("")
	harness.Eventually(t, "four work", func() bool { return len(w.working()) == 4 })
	waits := all[slices.IndexFunc(all, func(l left) bool { return !slices.Contains(w.working(), l.text) })]
	w.stands(waits, "queued", "waiting_for_slot")
	a := w.launch("")
	w.say(a, a.NewSession(waits.cwd), "quick one")
	w.say(a, a.NewSession(all[0].cwd), "quick two") // in a work tree that an unattended run has
	if n := len(w.working()); n != 4 {
		t.Errorf("%d work", n)
	}
	w.load(a, waits.id, waits.cwd)
	harness.Eventually(t, "what is watched goes on", func() bool { return slices.Contains(w.working(), waits.text) })
	if n := len(w.holders()); n != 4 {
		t.Errorf("%d hold a slot", n)
	}
}

// Two sessions of one work tree do not write in it at once; a third that only reads is not held up. What waits names the session that works.
func TestWorktree_OneAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	repo := w.tree("repo")
	w.must(syscall.Mkdir(repo+"/.git", 0o755))
	all := w.interruptedIn("a", repo, w.tree("repo/sub"), repo)
	w.holdfast(0, nil, "sessions", "mode", all[2].id, "plan")
	w.worker("")
	w.await("one writes and one reads", all[0].text, all[2].text)
	s := w.stands(all[1], "queued", "worktree_busy")
	if !strings.HasPrefix(s.Reason, "Session "+all[0].id+" works unattended in ") {
		t.Errorf("it says %q", s.Reason)
	}
	i := slices.IndexFunc(w.queue(), func(p place) bool { return p.ReasonCode == "worktree_busy" && p.SessionID == all[1].id })
	if i < 0 || !strings.Contains(w.holdfast(0, nil, "ps"), "worktree_busy") {
		t.Errorf("ps shows %+v", w.queue())
	}
	w.release(all[0].text)
	w.await("the other goes on", all[1].text, all[2].text)
}

// A goal keeps its work tree between its turns, and gives it up when it rests.
func TestWorktree_GoalKeepsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	repo := w.tree("repo")
	a := w.launch("")
	g, p := left{a.NewSession(repo), repo, ""}, left{a.NewSession(repo), repo, "p"}
	a.Must("_holdfast/create_goal", map[string]any{"sessionId": g.id, "objective": "g"}, nil)
	w.await("its first turn", "")
	a.Prompt(p.id, p.text)
	w.await("both, while they are watched", "", "p")
	a.Kill()
	w.forget()
	w.worker("")
	w.await("one goes on", "")
	w.stands(p, "queued", "worktree_busy")
	w.release("")
	harness.Eventually(t, "the goal's next turn", func() bool { return w.times("") == 2 })
	w.await("alone", "")
	w.stands(p, "queued", "worktree_busy")
	var all []struct{ GoalID string }
	w.holdfast(0, &all, "goals", "list", "--json")
	w.holdfast(0, nil, "goals", "pause", all[0].GoalID)
	harness.Eventually(t, "the other goes on", func() bool { return slices.Contains(w.working(), "p") })
}

// A killed process frees its slots; a suspended one keeps them, and is shown to have them.
func TestHolder_KilledAndSuspended(t *testing.T) {
	t.Parallel()
	w := newWorld(t, two)
	first := w.interrupted("a", 2)
	one := w.worker("")
	w.await("both work", first[0].text, first[1].text)
	w.suspend(one)
	second := w.interrupted("b", 1)
	w.worker("")
	w.stands(second[0], "queued", "waiting_for_slot")
	aside := w.launch("")
	w.say(aside, aside.NewSession(w.dir), "quick aside") // it has had the time to do what it should not
	w.await("the suspended one keeps its slots", first[0].text, first[1].text)
	for _, p := range w.queue() {
		if p.State == "working" && p.PID != one.PID() {
			t.Errorf("process %d is shown to work", p.PID)
		}
	}
	one.Kill()
	harness.Eventually(t, "the slot is free", func() bool { return slices.Contains(w.working(), second[0].text) })
}

// Who is next and suspended does not hold up the others: its slot is kept for a moment and then goes to the one behind it.
func TestNext_SuspendedHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "[limits]\nworking = 1\n")
	a, b := w.launch(""), w.launch("")
	b0 := w.begin(b, w.tree("b0"), "b0")
	a0, a1 := w.begin(a, w.tree("a0"), "a0"), w.begin(a, w.tree("a1"), "a1")
	b1 := w.begin(b, w.tree("b1"), "b1")
	w.suspend(b) // or it takes the other's over
	w.kill(a, a0, a1)
	one := w.worker("")
	w.stands(a1, "queued", "waiting_for_slot")
	w.suspend(one)
	w.kill(b, b0, b1)
	w.worker("")
	w.stands(b0, "queued", "waiting_for_slot")
	w.stands(b1, "queued", "waiting_for_slot")
	one.Signal(syscall.SIGCONT)
	w.await("the first", "a0")
	w.release("a0")
	w.await("the one that was served least recently", "b0")
	w.suspend(one)
	w.release("b0")
	w.await("the one behind it", "b1")
	one.Signal(syscall.SIGCONT)
	w.release("b1")
	w.await("it has not lost its place", "a1")
}

// Sixty sessions go on by turns, never more than four at once, each exactly once, also when the process is killed in the middle.
func TestSixty_ByTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.looks = true // so that a turn makes progress before it is cut off
	all := w.interrupted("s", 60)
	p := w.worker("")
	for i := range all {
		if i == 30 { // in the middle
			harness.Eventually(t, "four work", func() bool { return len(w.working()) == 4 })
			p.Kill()
			w.mu.Lock()
			w.open = map[string]chan struct{}{}
			w.mu.Unlock()
			p = w.worker("")
		}
		harness.Eventually(t, fmt.Sprintf("four work, or what is left, %d", i), func() bool { return len(w.working()) == min(4, 60-i) })
		w.release(w.working()[0])
	}
	harness.Eventually(t, "all have ended", func() bool {
		for _, s := range w.states() {
			if s.State != "idle" {
				return false
			}
		}
		return true
	})
	if w.most > 4 {
		t.Errorf("%d worked at once", w.most)
	}
	var first []string
	for _, text := range w.asked() {
		if !slices.Contains(first, text) {
			first = append(first, text)
		}
	}
	if n := len(w.asked()); len(first) != 60 || n != 64 { // the four that were cut off were asked again
		t.Errorf("%d sessions went on with %d requests: %q", len(first), n, w.asked())
	}
}
