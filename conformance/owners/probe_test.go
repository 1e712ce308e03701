package owners_test

import (
	"strings"
	"sync"
	"testing"

	"holdfast/conformance/harness"
)

// interrupted is a store with a prompt that was accepted and not worked on to its end, whose process is dead.
func interrupted(t *testing.T) (*world, string) {
	t.Helper()
	w := newWorld(t, talk)
	a := w.launch("HOLDFAST_CRASH=request.started:after/kill")
	session := a.NewSession(w.work)
	a.Prompt(session, "hello")
	dies(t, a)
	return w, session
}

// Editors start agents only to look at them. A probe says initialize and goes; ten of them, and two at a time, pay for nothing and change
// nothing.
func TestProbe_StartsNoPaidWork(t *testing.T) {
	t.Parallel()
	w, session := interrupted(t)
	for range 10 {
		w.must(w.launch().CloseInput())
	}
	for range 3 {
		a, b := w.launch(), w.launch()
		var both sync.WaitGroup
		for _, p := range []*harness.Agent{a, b} {
			both.Go(func() {
				if err := p.CloseInput(); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	}
	w.launch().Kill() // an editor that does not even wait
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
	if n := w.number(`SELECT count(*) FROM attempts`); n != 1 {
		t.Errorf("%d attempts", n)
	}
	b := w.launch()
	w.load(b, session)
	harness.Eventually(t, "it goes on", func() bool { return strings.Contains(b.Text(session), "finished well") })
	if n := len(w.model.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// A probe that dies at the place where work begins spends none of the deaths of that work.
func TestProbe_SpendsNoDeaths(t *testing.T) {
	t.Parallel()
	w, session := interrupted(t)
	for range 3 {
		w.launch().Kill()
	}
	b := w.launch()
	w.load(b, session)
	harness.Eventually(t, "it goes on", func() bool { return strings.Contains(b.Text(session), "finished well") })
}

// One that stays for more than three seconds is an editor, though it has asked for nothing; the work goes on.
func TestProbe_ThatStaysIsAClient(t *testing.T) {
	t.Parallel()
	w, _ := interrupted(t)
	w.launch()
	w.wait(1)
}

// A request about sessions makes an editor of it at once, session/list too: whoever shows the list shows what goes on.
func TestProbe_ThatListsIsAClient(t *testing.T) {
	t.Parallel()
	w, _ := interrupted(t)
	a := w.launch()
	a.Must("session/list", map[string]any{}, nil)
	w.wait(1)
}
