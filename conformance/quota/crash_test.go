package quota_test

import (
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

// A death around the commit that gives a slot to inherited work leaves no slot behind, and the work goes on once.
func TestCrash_JoiningTheQueue(t *testing.T) {
	for _, point := range []string{"queue.joined:before", "queue.joined:after", "owner.takeover:before", "owner.takeover:after", "recovery.decided:before"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "[limits]\nworking = 1\n")
			all := w.interrupted("a", 2)
			_ = w.worker(point).Wait() // killed; the log says so
			w.fired(point)
			w.worker("")
			for _, l := range all {
				w.await(l.text+" goes on", l.text)
				w.release(l.text)
			}
			harness.Eventually(t, "no slot is left", func() bool { return len(w.queue()) == 0 })
			if got := w.asked(); len(got) != 2 {
				t.Errorf("the model was asked %q", got)
			}
		})
	}
}

// The setting is there after the commit and not before.
func TestCrash_SettingRecovery(t *testing.T) {
	for point, want := range map[string]string{"recovery.set:before": "", "recovery.set:after": "off"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			a := w.launch(point)
			l := left{id: a.NewSession(w.tree("t"))}
			a.Prompt(l.id, "/recovery off")
			_ = a.Wait()
			w.fired(point)
			if got := w.states()[l.id].Recovery; got != want {
				t.Errorf("it is %q", got)
			}
		})
	}
}

// With many in line a freed slot costs each process a look at the queue, not one for every session that waits.
func TestFreedSlot_WakesOnlyTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "[limits]\nworking = 1\n")
	all := w.interrupted("a", 12)
	w.worker("")
	harness.Eventually(t, "one works", func() bool { return len(w.working()) == 1 })
	before := w.query("SELECT group_concat(last_seq) FROM (SELECT last_seq FROM sessions ORDER BY id)")
	w.release(all[0].text)
	w.await("the next works", all[1].text)
	harness.Eventually(t, "the first has ended", func() bool { return w.states()[all[0].id].State == "idle" })
	changed := 0
	now := w.query("SELECT group_concat(last_seq) FROM (SELECT last_seq FROM sessions ORDER BY id)")
	for i, seq := range strings.Split(now, ",") {
		if strings.Split(before, ",")[i] != seq {
			changed++
		}
	}
	if changed != 2 || !slices.Equal(w.asked(), []string{all[0].text, all[1].text}) {
		t.Errorf("%d sessions were written to: %s, %s; asked %q", changed, before, now, w.asked())
	}
}
