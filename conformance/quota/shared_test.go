package quota_test

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// apart is a configuration with a model more for each wire, which has limits of its own.
const apart = "[[models]]\nname = \"openai/apart\"\nimages = true\n[[models]]\nname = \"anthropic/apart\"\nimages = true\n"

// apart has a process answer something with another model, so that it has had the time to do what it should not.
func (w *world) apart(a *harness.Agent) {
	w.t.Helper()
	s := a.NewSession(w.tree("apart"))
	name := "openai/apart"
	if cmp.Or(w.family, fakemodel.Family()) == "anthropic" {
		name = "anthropic/apart"
	}
	a.Must("session/set_config_option", map[string]any{"sessionId": s, "configId": "model", "value": name}, nil)
	w.say(a, s, "quick")
}

// asks is a session of its own with a prompt that the model is not asked now.
func (w *world) asks(a *harness.Agent, text string) left {
	w.t.Helper()
	l := left{a.NewSession(w.tree(text)), w.tree(text), text}
	a.Prompt(l.id, text)
	return l
}

const learned = "learned from another session"

// waits checks that a session waits for what another one was told, until the same time, and was not asked itself.
func (w *world) waits(l, told left) {
	w.t.Helper()
	s := w.stands(l, "waiting", "model_retry")
	if !strings.Contains(s.Reason, "used up") || !strings.Contains(s.Reason, learned) || !strings.Contains(s.Reason, "not asked again before") {
		w.t.Errorf("%s says %q", l.text, s.Reason)
	}
	if d := w.due(l) - w.due(told); d < -5*time.Second || d > 5*time.Second {
		w.t.Errorf("%s is asked %s later", l.text, d)
	}
	if n := w.times(l.text); n != 0 {
		w.t.Errorf("%s was asked %d times", l.text, n)
	}
}

// A limit that one session was told of holds every other one that asks the same, in every process and after restarts, prompts and goals.
func TestShared_NobodyElseAsks(t *testing.T) {
	for _, family := range fakemodel.Families {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, apart)
			w.family = family
			a, told := w.limited(usedUp("Retry-After", "18000"))
			w.waits(w.asks(a, "second"), told)
			b := w.launch("")
			third := w.asks(b, "third")
			w.waits(third, told)
			harness.Eventually(t, "the editor is told", func() bool {
				return strings.Contains(b.Text(third.id), notice) && strings.Contains(b.Text(third.id), learned)
			})
			goal := left{b.NewSession(w.tree("g")), w.tree("g"), "a goal"}
			b.Must("_holdfast/create_goal", map[string]any{"sessionId": goal.id, "objective": "g"}, nil)
			w.waits(goal, told)
			a.Kill()
			b.Kill()
			c := w.launch("")
			w.waits(w.asks(c, "fourth"), told)
			if n := w.notices(c, third); n != 1 {
				t.Errorf("it is said %d times", n)
			}
			w.apart(c)
			if n := len(w.model.Requests()); n != 2 {
				t.Errorf("%d requests were made; asked %q", n, w.asked())
			}
		})
	}
}

// Work that is in the middle of a turn asks nothing more once another session was told.
func TestShared_InTheMiddle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, apart)
	a := w.launch("")
	gate := make(chan struct{})
	w.mu.Lock()
	w.plays["second"] = func(fakemodel.Request) fakemodel.Reply {
		r := fakemodel.Calls(fakemodel.Call{Name: "list", Args: `{"path":"."}`})
		r.Steps = []fakemodel.Step{fakemodel.Gate(gate)}
		return r
	}
	w.mu.Unlock()
	l := w.asks(a, "second")
	harness.Eventually(t, "it is asked", func() bool { return w.times("second") == 1 })
	w.refuse("big", usedUp("Retry-After", "18000"))
	told := w.asks(w.launch(""), "big")
	w.stands(told, "waiting", "model_retry")
	close(gate)
	s := w.stands(l, "waiting", "model_retry")
	if w.apart(a); w.times("second") != 1 || !strings.Contains(s.Reason, learned) {
		t.Errorf("it was asked %d times, and says %q", w.times("second"), s.Reason)
	}
}

// The user's word asks all the same, once. When that is answered the limit is no more, and whoever waited for it goes on.
func TestShared_RetryThatWorksIsForAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, apart)
	a, told := w.limited(usedUp("Retry-After", "18000"))
	b := w.launch("")
	second, third := w.asks(b, "second"), w.asks(a, "third")
	w.waits(second, told)
	w.waits(third, told)
	w.mu.Lock()
	delete(w.plays, "big")
	w.mu.Unlock()
	w.holdfast(0, nil, "sessions", "retry", second.id)
	w.await("only that one is asked", "second")
	w.waits(third, told)
	w.release("second")
	w.await("the others go on", "big", "third")
	w.release("big")
	w.release("third")
	w.say(a, a.NewSession(w.tree("new")), "quick")
}

// When it is refused once more there is a new limit, with a time of its own, and nobody else asks.
func TestShared_RetryThatIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, apart)
	a, told := w.limited(usedUp("Retry-After", "18000"))
	second, third := w.asks(a, "second"), w.asks(a, "third")
	w.waits(second, told)
	w.waits(third, told)
	w.refuse("second", usedUp("Retry-After", "36000"))
	a.Prompt(second.id, "/retry")
	harness.Eventually(t, "it was asked and waits longer", func() bool {
		return w.query("SELECT count(*) FROM runs WHERE session = ? AND retry_at > ?", second.id, time.Now().Add(9*time.Hour).UnixMilli()) == "1"
	})
	if s := w.stands(second, "waiting", "model_retry"); strings.Contains(s.Reason, learned) {
		t.Errorf("it says %q", s.Reason)
	}
	fourth := w.asks(a, "fourth")
	w.waits(fourth, second)
	if w.apart(a); w.times("third") != 0 || w.times("big") != 1 {
		t.Errorf("asked %q", w.asked())
	}
}

// Another model, another key and another endpoint have limits of their own.
func TestShared_NotWithOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, apart)
	a, told := w.limited(usedUp("Retry-After", "18000"))
	w.apart(a)
	w.also = []string{"OPENAI_API_KEY=another", "ANTHROPIC_API_KEY=another"}
	b := w.launch("")
	w.say(b, b.NewSession(w.tree("key")), "quick key")
	w.also = nil
	here := w.model
	w.model = fakemodel.New(func(fakemodel.Request) fakemodel.Reply { return fakemodel.Text("elsewhere") })
	c := w.launch("")
	w.say(c, c.NewSession(w.tree("address")), "quick address")
	w.model.Close()
	w.model = here
	w.waits(w.asks(w.launch(""), "second"), told)
}

// What is over is forgotten, and holds nobody.
func TestShared_OverAndForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, apart)
	a, _ := w.limited(usedUp("Retry-After", "18000"))
	w.edit("UPDATE limits SET until = 1000000")
	w.say(a, a.NewSession(w.tree("new")), "quick")
	if n := w.query("SELECT count(*) FROM limits"); n != "0" {
		t.Errorf("%s limits are left", n)
	}
}

// A clock that was put back makes no limit longer than the provider said.
func TestShared_ClockPutBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, apart)
	a, _ := w.limited(usedUp("Retry-After", "18000"))
	w.edit("UPDATE limits SET until = until + 8640000000")
	l := w.asks(a, "second")
	w.stands(l, "waiting", "model_retry")
	if d := w.due(l); d > 5*time.Hour {
		t.Errorf("it waits %s", d)
	}
}

// A death around the commit that stores a limit, and around the one of a session that waits for it, loses nothing and asks nothing twice that is
// known to be used up.
func TestCrash_SharedLimit(t *testing.T) {
	for _, point := range []string{"model.retry:before", "model.retry:after"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, apart)
			w.refuse("big", usedUp("Retry-After", "18000"))
			a := w.launch(point)
			told := left{a.NewSession(w.tree("t")), w.tree("t"), "big"}
			a.Prompt(told.id, told.text)
			_ = a.Wait() // killed; the log says so
			w.fired(point)
			b := w.launch("")
			w.load(b, told.id, told.cwd)
			w.stands(told, "waiting", "model_retry")
			asked := map[bool]int{true: 1, false: 2}[strings.HasSuffix(point, "after")]
			if n := w.times("big"); n != asked {
				t.Errorf("it was asked %d times", n)
			}
			w.must(os.Remove(filepath.Join(w.dir, "fired")))
			c := w.launch(point) // it dies as it begins to wait for what the other was told
			l := left{c.NewSession(w.tree("second")), w.tree("second"), "second"}
			c.Prompt(l.id, l.text)
			_ = c.Wait()
			w.fired(point)
			w.load(b, l.id, l.cwd)
			w.waits(l, told)
			if n := w.notices(w.launch(""), l); n != 1 {
				t.Errorf("it is said %d times", n)
			}
			if n := w.query("SELECT count(*) FROM limits"); n != "1" {
				t.Errorf("%s limits are stored", n)
			}
		})
	}
}

// A word that is stored and not yet carried out counts after a death.
func TestCrash_SharedRetry(t *testing.T) {
	for _, point := range []string{"redo.accepted:after", "recovery.decided:before"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, apart)
			a, told := w.limited(usedUp("Retry-After", "18000"))
			l := w.asks(a, "second")
			w.waits(l, told)
			a.Kill()
			b := w.launch(point)
			w.load(b, l.id, l.cwd)
			b.Prompt(l.id, "/retry")
			_ = b.Wait()
			w.fired(point)
			c := w.launch("")
			w.load(c, l.id, l.cwd)
			w.await("it is asked", "second")
			w.release("second")
			w.stands(l, "idle", "")
		})
	}
}
