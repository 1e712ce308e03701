package context_test

import (
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
)

// filler is a message of so many kilobytes that says who it is.
func filler(name string, kib int) string {
	return name + " begins " + strings.Repeat("lorem ipsum dolor sit amet, ", kib*1024/28) + name + " ends"
}

// A request that the provider refuses as too long is compacted once, and goes on: nothing of the newest message is lost.
func TestOverflow_OneCompactionThenOn(t *testing.T) { onEach(t, overflowOneCompactionThenOn) }

func overflowOneCompactionThenOn(t *testing.T, w *world) {
	a := w.launch("", nil)
	s := a.NewSession(w.work)
	for _, name := range []string{"alpha", "beta", "gamma"} {
		w.say(a, s, filler(name, 40))
	}
	w.set(func() { w.window = 150 << 10 })
	said := w.say(a, s, filler("delta", 40))
	w.holds("what was said", said, "You said: delta begins", "The conversation was compacted")
	if n := w.summaries(); n != 1 {
		t.Errorf("%d summaries were asked for, want 1", n)
	}
	r := w.last()
	w.holds("the request", everything(r), summary, "delta ends")
	if strings.Contains(everything(r), "alpha ends") {
		t.Error("what is covered was sent again")
	}
	if got := everything(r); strings.Count(got, "delta ends") != 1 {
		t.Errorf("the message that was not covered is there %d times", strings.Count(got, "delta ends"))
	}
	before := len(w.model.Requests())
	w.say(a, s, "and on")
	if n := len(w.model.Requests()) - before; n != 1 || w.summaries() != 1 {
		t.Errorf("the next message took %d requests and %d summaries", n, w.summaries())
	}
	if kinds := w.entries(s); count(kinds, "compaction") != 1 || count(kinds, "user") != 5 {
		t.Errorf("the history is %v", kinds)
	}
}

// With a known limit nothing is refused: old results are shortened first, and the conversation is compacted before it is too long.
func TestLimit_CompactedBeforeItIsTooLong(t *testing.T) {
	w := newWorld(t)
	w.configure("[model]\nmax_tokens = 4000\n[[models]]\nname = \"" + w.named() + "\"\ncontext_tokens = 40000\n")
	w.set(func() { w.window = 140 << 10 })
	a := w.launch("", nil)
	s := a.NewSession(w.work)
	for _, name := range []string{"alpha", "beta", "gamma", "delta", "epsilon", "zeta"} {
		w.say(a, s, filler(name, 25))
	}
	if w.summaries() == 0 {
		t.Error("nothing was compacted")
	}
	for _, r := range w.model.Requests() {
		if len(r.Body) > 140<<10 {
			t.Errorf("request %d has %d bytes, which is too long", r.N, len(r.Body))
		}
	}
	w.holds("the last request", everything(w.last()), summary, "zeta ends")
}

// What is unknown refuses nothing.
func TestLimit_UnknownCompactsNothing(t *testing.T) {
	w := newWorld(t)
	a := w.launch("", nil)
	s := a.NewSession(w.work)
	for _, name := range []string{"alpha", "beta", "gamma"} {
		w.say(a, s, filler(name, 200))
	}
	if n := w.summaries(); n != 0 {
		t.Errorf("%d summaries were asked for", n)
	}
	w.holds("the last request", everything(w.last()), "alpha ends", "gamma ends")
}

// When the provider refuses everything, at most two compactions follow each other; then the work waits and says for what. No tool runs.
func TestOverflow_ThatCompactingDoesNotHelp(t *testing.T) {
	onEach(t, overflowThatCompactingDoesNotHelp)
}

func overflowThatCompactingDoesNotHelp(t *testing.T, w *world) {
	a := w.launch("", nil)
	s := a.NewSession(w.work)
	for _, name := range []string{"alpha", "beta", "gamma"} {
		w.say(a, s, filler(name, 2))
	}
	before := len(w.model.Requests())
	w.set(func() {
		w.answer = func(fakemodel.Request) fakemodel.Reply {
			return fakemodel.Error(400, "This model's maximum context length is exceeded", "context_length_exceeded")
		}
	})
	said := w.say(a, s, "please go on")
	w.holds("what was said", said, "compacting it did not help")
	if n := w.summaries(); n < 1 || n > 2 {
		t.Errorf("%d summaries were asked for, want one or two", n)
	}
	if n := len(w.model.Requests()) - before; n > 5 {
		t.Errorf("%d requests were made", n)
	}
	w.holds("the list", w.command(0, "sessions", "list"), "context_overflow")
	w.set(func() { w.answer = func(fakemodel.Request) fakemodel.Reply { return fakemodel.Text("All is well.") } })
	if said := w.say(a, s, "/retry"); !strings.Contains(said, "All is well.") {
		t.Errorf("once it fits, the work went on with %q", said)
	}
}

// A message that is too long for the model does not stand in the way of a shorter one after it, whatever was compacted in between.
func TestLimit_TooLongAMessageThenAShortOne(t *testing.T) {
	for _, before := range [][]string{nil, {"hello", "and more"}} {
		w := newWorld(t)
		w.configure("[model]\nmax_tokens = 4000\n[[models]]\nname = \"" + w.named() + "\"\ncontext_tokens = 20000\n")
		a := w.launch("", nil)
		s := a.NewSession(w.work)
		for _, text := range before {
			w.say(a, s, text)
		}
		w.holds("the long message", w.say(a, s, filler("alpha", 200)), "compacting it did not help")
		w.holds("the short one", w.say(a, s, "never mind"), "You said")
		if got := everything(w.last()); !strings.Contains(got, "never mind") || strings.Contains(got, "alpha ends") {
			t.Errorf("after %q the long message is still sent", before)
		}
	}
}
