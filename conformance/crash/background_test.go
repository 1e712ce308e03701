package crash_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// serve is the model's part: it starts a command in the background, and again when it was told that it never began.
func serve(r fakemodel.Request) fakemodel.Reply {
	results := r.Results()
	if n := len(results); n > 0 && !strings.Contains(results[n-1].Content, "Not started") {
		return fakemodel.Text("It is served.")
	}
	return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: encode(map[string]any{"command": command, "background": true})})
}

// nothingRuns waits until no command runs any more, as holdfast ps lists them.
func (u *user) nothingRuns() {
	u.w.t.Helper()
	plain, _, err := harness.Binaries()
	u.must(err)
	harness.Eventually(u.w.t, "no command runs", func() bool {
		cmd := exec.Command(plain, "ps", "--json")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOLDFAST_HOME=" + u.w.home}
		out, err := cmd.Output()
		var r struct{ Commands []struct{ State string } }
		return err == nil && json.Unmarshal(out, &r) == nil && r.Commands != nil && len(r.Commands) == 0
	})
}

// backgroundPlay has a command started in the background, waits for its end, and prompts once more.
func backgroundPlay(u *user) error {
	if _, err := u.open(); err != nil {
		return err
	}
	if err := u.say("please server", "It is served."); err != nil {
		return err
	}
	u.nothingRuns()
	if err := u.until("its end is stored", func() (bool, error) {
		b, _ := os.ReadFile(filepath.Join(u.w.home, "log.jsonl")) // it may not be there yet
		return strings.Contains(string(b), "a background command has ended") || u.died == "background.settled:after", u.alive()
	}); err != nil { // the prompt must not be on its way when the agent dies at that
		return err
	}
	return u.say("please report", "So it goes.")
}

const toldEnd = "[Background command bg"

// served checks that the command ran so often, and that its end was told once, in these words.
func served(commands int, words string) func(*user) {
	return func(u *user) {
		t := u.w.t
		t.Helper()
		answered(commands, "please server", "please report")(u)
		reqs := u.w.model.Requests()
		n, said := 0, ""
		for _, m := range reqs[len(reqs)-1].Messages {
			if strings.Contains(m.Content, toldEnd) {
				n, said = n+1, m.Content
			}
		}
		if n != 1 || !strings.Contains(said, words) {
			t.Errorf("the end was told %d times: %s", n, said)
		}
	}
}

// TestBackground_Points dies at each point on the way of a background command: from the call to the telling of its end.
func TestBackground_Points(t *testing.T) {
	for _, point := range []string{"approval.answered:after", "effect.dispatched:before", "effect.dispatched:after", "proc.claimed", "proc.spec", "proc.launched",
		"effect.settled:before", "effect.settled:after", "request.started:before/2", "request.started:after/2", "turn.ended:before", "turn.ended:after",
		"run.admitted:before/2", "run.admitted:after/2", "request.started:before/3", "request.started:after/3"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			trial{point: point, play: backgroundPlay, check: served(1, "exit code 7")}.run(t)
		})
	}
}

// TestBackground_PointsTwice dies again while the first death is recovered from.
func TestBackground_PointsTwice(t *testing.T) {
	for _, first := range []string{"effect.dispatched:after", "proc.launched", "effect.settled:before"} {
		for _, again := range []string{"recovery.decided:before", "recovery.decided:after", "background.settled:before", "background.settled:after"} {
			t.Run(first+" "+again, func(t *testing.T) {
				t.Parallel()
				trial{point: first, again: again, play: backgroundPlay, check: served(1, "exit code 7")}.run(t)
			})
		}
	}
}

// TestBackground_Supervisor lets the supervisor die at each of its points, and the agent once that has happened.
func TestBackground_Supervisor(t *testing.T) {
	for point, c := range map[string]struct {
		runs  int
		words string
	}{
		"supervisor.claimed":  {0, "never started"},
		"supervisor.starting": {0, "outcome is unknown"},
		"supervisor.started":  {1, "outcome is unknown"},
		"supervisor.running":  {1, "outcome is unknown"},
		"supervisor.exited":   {1, "outcome is unknown"},
		"supervisor.receipt":  {1, "exit code 7"},
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			trial{point: point, check: served(c.runs, c.words), play: func(u *user) error {
				if u.died != "" {
					return backgroundPlay(u)
				}
				if _, err := u.open(); err != nil {
					return err
				}
				if err := u.say("please server", "It is served."); err != nil {
					return err
				}
				harness.Eventually(t, "the supervisor dies", func() bool { return u.w.lines(filepath.Base(u.w.fired(1))) == 1 })
				return nil
			}}.run(t)
		})
	}
}

// A stop that comes when the agent has died right after the start of a background command ends that as well, and nothing takes it up again.
func TestBackground_StopOfAStart(t *testing.T) {
	for _, point := range []string{"proc.launched", "effect.settled:before", "effect.settled:after"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			u := newUser(newWorld(t))
			u.w.put("hold")
			u.launch(point)
			u.must(u.hello())
			_, err := u.open()
			u.must(err)
			u.a.Prompt(u.session, "please server")
			_ = u.a.Wait() // killed; the log says so
			u.w.mustHaveFired(1, point)
			u.commandRuns()
			requests := u.w.requests()
			plain, _, err := harness.Binaries()
			u.must(err)
			cmd := exec.Command(plain, "stop", "--all", "--json")
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOLDFAST_HOME=" + u.w.home}
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), `"stopped"`) {
				t.Errorf("holdfast stop: %v %s", err, out)
			}
			u.nothingRuns()
			u.again()
			_, err = u.open()
			u.must(err)
			if n := u.w.requests() - requests; n != 0 {
				t.Errorf("%d requests after the stop", n)
			}
			u.must(u.say("please report", "So it goes."))
			u.must(u.leave())
			served(1, "stopped on request")(u)
		})
	}
}

// A start that was cut off is settled at once when the command is found running: nobody waits for its end.
func TestBackground_CutOffStartIsNotWaitedFor(t *testing.T) {
	for _, point := range []string{"proc.launched", "effect.settled:before"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			u := newUser(newWorld(t))
			u.w.put("hold")
			u.launch(point)
			u.must(u.hello())
			_, err := u.open()
			u.must(err)
			u.sent = "please server"
			u.a.Prompt(u.session, u.sent)
			_ = u.a.Wait() // killed; the log says so
			u.w.mustHaveFired(1, point)
			u.commandRuns()
			u.again()
			_, err = u.open()
			u.must(err)
			u.must(u.say("please server", "It is served."))
			u.w.remove("hold")
			u.nothingRuns()
			u.must(u.say("please report", "So it goes."))
			u.must(u.leave())
			served(1, "exit code 7")(u)
		})
	}
}
