package stops_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/harness"
)

// pollLimit is generous: the promise is 200 ms where something runs, and five seconds where nothing does.
const pollLimit = 8 * time.Second

// Without a doorbell everything still arrives, only later: the sockets are removed, or their path is too long for the system.
func TestBell_Polling(t *testing.T) {
	for name, mute := range map[string]func(w *world) (rung func()){
		"the sockets are removed": func(w *world) func() {
			return func() {
				all, err := filepath.Glob(filepath.Join(w.home, "run", "*.sock"))
				if err != nil || len(all) == 0 {
					w.t.Fatalf("no sockets: %v", err)
				}
				for _, s := range all {
					if err := os.Remove(s); err != nil {
						w.t.Error(err)
					}
				}
			}
		},
		"the path is too long": func(w *world) func() {
			w.home = filepath.Join(w.dir, strings.Repeat("deep/", 30), "home")
			w.env = append(w.env, "HOLDFAST_HOME="+w.home)
			return func() {
				if all, _ := filepath.Glob(filepath.Join(w.home, "run", "*.sock")); len(all) != 0 {
					w.t.Fatalf("there are sockets: %v", all)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			rung := mute(w)
			a, b := w.launch(), w.launch()
			session := a.NewSession(w.work)
			w.load(b, session)
			say(t, b, session, do())
			rung()
			soon := func(what string, since time.Time) {
				t.Helper()
				if took := time.Since(since); took > pollLimit {
					t.Errorf("%s took %v", what, took)
				}
			}
			began := time.Now()
			id := b.Prompt(session, do(foreground(stays("front")))) // the owner is idle
			w.begun("front")
			soon("a prompt to an idle owner", began)
			began = time.Now()
			cancel(b, session)
			if got := ended(t, b, id); got != "cancelled" {
				t.Errorf("stopped with %s", got)
			}
			harness.Eventually(t, "the command ends", func() bool { return len(w.running()) == 0 })
			soon("a cancel", began)
			a.Prompt(session, do(background(stays("behind")), foreground(stays("more"))))
			w.begun("behind")
			w.begun("more")
			began = time.Now()
			_ = document[[]stopped](w, "stop", session)
			harness.Eventually(t, "both commands end", func() bool { return len(w.running()) == 0 })
			soon("a stop", began)
			began = time.Now()
			if _, errs, err := w.cli("sessions", "send", session, do(foreground("echo run >> sent"))); err != nil {
				t.Fatal(errs)
			}
			w.begun("sent")
			soon("a prompt of a process that was gone at once", began)
		})
	}
}

// A control that somebody stored and left, with no bell to tell, reaches running work at once: not with the slow look of idle processes.
func TestBell_AControlOfAPassingProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.launch()
	session := a.NewSession(w.work)
	a.Prompt(session, "/goal "+do(foreground(stays("front"))))
	w.begun("front")
	all, _ := filepath.Glob(filepath.Join(w.home, "run", "*.sock"))
	for _, s := range all {
		_ = os.Remove(s)
	}
	if _, errs, err := w.cli("goals", "pause", w.goalID(a, session)); err != nil {
		t.Fatal(errs)
	}
	began := time.Now()
	harness.Eventually(t, "the command ends", func() bool { return len(w.running()) == 0 })
	if took := time.Since(began); took > pollLimit/2 {
		t.Errorf("the pause took %v", took)
	}
}
