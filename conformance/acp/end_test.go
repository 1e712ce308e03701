package acp_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// endLimit is generous: the promise is 1.5 s.
const endLimit = 4 * time.Second

var ends = map[string]func(*harness.Agent) error{
	"end of input": (*harness.Agent).CloseInput,
	"SIGTERM":      func(a *harness.Agent) error { a.Signal(syscall.SIGTERM); return a.Wait() },
	"SIGINT":       func(a *harness.Agent) error { a.Signal(syscall.SIGINT); return a.Wait() },
	"SIGHUP":       func(a *harness.Agent) error { a.Signal(syscall.SIGHUP); return a.Wait() },
}

// ended ends an agent and checks that it went quickly, well and without a word.
func ended(t *testing.T, a *harness.Agent, end func(*harness.Agent) error) {
	t.Helper()
	began := time.Now()
	if err := end(a); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if took := time.Since(began); took > endLimit {
		t.Errorf("it took %v", took)
	}
	if s := a.Stderr(); s != "" {
		t.Errorf("stderr: %s", s)
	}
}

// A client that goes while the model answers leaves the work wanted: the next launch asks the model again and ends the turn.
func TestEnd_InMidStream(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := make(chan struct{})
			defer close(gate)
			w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
				if r.N == 1 {
					return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "half a "}, fakemodel.Gate(gate)}}
				}
				return fakemodel.Text("whole sentence")
			})
			a := w.start()
			session := a.NewSession(w.work)
			a.Prompt(session, "speak")
			message(t, a, "half a")
			ended(t, a, end)
			b := w.start()
			w.load(b, session)
			message(t, b, "agent_message_chunk", "whole sentence")
			if n := strings.Count(b.Text(session), "half a"); n != 1 {
				t.Errorf("the cut answer is shown %d times: %q", n, b.Text(session))
			}
			if n := len(w.requests(2)); n != 2 {
				t.Errorf("%d model requests", n)
			}
		})
	}
}

// A client that goes with a question open has not answered it: the next one is asked again, and the call runs once.
func TestEnd_WithAQuestionOpen(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, once("echo ran >> out", "all done"))
			a := w.asking(unanswered)
			session := a.NewSession(w.work)
			a.Prompt(session, "run")
			message(t, a, "session/request_permission")
			ended(t, a, end)
			if w.file("out") != "" {
				t.Fatal("it ran without a yes")
			}
			b := w.start()
			w.load(b, session)
			message(t, b, "session/request_permission", "echo ran")
			message(t, b, "agent_message_chunk", "all done")
			if w.file("out") != "ran\n" {
				t.Errorf("it wrote %q", w.file("out"))
			}
		})
	}
}

// An agent with nothing to do ends as well, in whatever state: never spoken to, initialized, or with an idle session.
func TestEnd_Idle(t *testing.T) {
	for state, reach := range map[string]func(w *world) *harness.Agent{
		"never spoken to": func(w *world) *harness.Agent { return w.raw(nil) },
		"initialized":     func(w *world) *harness.Agent { return w.start() },
		"an idle session": func(w *world) *harness.Agent {
			a := w.start()
			a.Await(a.Prompt(a.NewSession(w.work), "hi"))
			return a
		},
	} {
		for name, end := range ends {
			if state == "never spoken to" && name != "end of input" {
				continue // a signal may come before the process can catch it
			}
			t.Run(state+"/"+name, func(t *testing.T) {
				t.Parallel()
				ended(t, reach(newWorld(t, nil)), end)
			})
		}
	}
}

// An editor may pass nothing but PATH. What a command gets is enough to work with and holds no key.
func TestEnvironment_OnlyPath(t *testing.T) { families(t, onlyPath) }

func onlyPath(t *testing.T, family string) {
	w := newWorldOf(t, family, once("env > out; echo . >> out", "done"))
	w.env = append(w.env, "OPENAI_API_KEY=very-secret-key", "ANTHROPIC_API_KEY=very-secret-key")
	a := w.start()
	if got := stop(t, a, a.Prompt(a.NewSession(w.work), "show it")); got != "end_turn" {
		t.Errorf("stopped with %s", got)
	}
	env := w.file("out")
	if !strings.Contains(env, "PATH=") || strings.Contains(env, "very-secret-key") {
		t.Errorf("the command's environment: %s", env)
	}
	if strings.Contains(sent(a), "very-secret-key") {
		t.Error("the key is on the wire to the client")
	}
	err := filepath.WalkDir(w.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "very-secret-key") {
			t.Errorf("the key is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	ended(t, a, ends["end of input"])
}
