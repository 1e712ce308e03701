package acp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// approval is a question as the command line shows it.
type approval struct{ ApprovalID, State, Always string }

func (w *world) approvals() []approval {
	w.t.Helper()
	return decode[[]approval](w.t, json.RawMessage(w.cli("sessions", "approvals", "--json")))
}

// answer answers a question on the command line and returns how that ended.
func (w *world) answer(id, option string) (code int, said string) {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(plain, "sessions", "answer", id, option)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOLDFAST_HOME=" + w.home}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // the code is what counts
	return cmd.ProcessState.ExitCode(), out.String()
}

// Two clients are asked. The first answer counts, the other's request is withdrawn, and what the other says all the same is ignored.
func TestAnswers_TwoClients(t *testing.T) {
	for name, ownerFirst := range map[string]bool{"the owner's client": true, "the other client": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, once("echo ran >> out", "done"))
			a := w.asking(unanswered)
			session := a.NewSession(w.work)
			b := w.asking(unanswered)
			w.load(b, session)
			id := a.Prompt(session, "run")
			asks := map[*harness.Agent]harness.Message{a: question(t, a, 1), b: question(t, b, 1)}
			first, second := a, b
			if !ownerFirst {
				first, second = b, a
			}
			choose(first, asks[first], "allow_once")
			message(t, second, "$/cancel_request", fmt.Sprintf(`"requestId":%s}`, asks[second].ID))
			choose(second, asks[second], "reject_once")
			if got := stop(t, a, id); got != "end_turn" {
				t.Errorf("stopped with %s", got)
			}
			if w.file("out") != "ran\n" {
				t.Errorf("it wrote %q", w.file("out"))
			}
			if position(first, "$/cancel_request") >= 0 {
				t.Error("the client that answered is told to forget its question")
			}
			if stop(t, b, b.Prompt(session, "/status")); len(questions(a))+len(questions(b)) != 2 {
				t.Errorf("it asked %d and %d times", len(questions(a)), len(questions(b)))
			}
		})
	}
}

// An answer outlives the owner it was given to, whether it died before it could act on it or never got to see it.
func TestAnswers_HoldAfterATakeover(t *testing.T) {
	for name, stopFirst := range map[string]bool{"answered after the takeover": false, "answered while the owner slept": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, once("echo ran >> out", "done"))
			a := w.asking(unanswered)
			session := a.NewSession(w.work)
			b := w.asking(unanswered)
			w.load(b, session)
			id := b.Prompt(session, "run")
			question(t, a, 1)
			ask := question(t, b, 1)
			if stopFirst {
				harness.Suspend(t, w.home, a.PID())
				choose(b, ask, "allow_once")
				harness.Eventually(t, "the answer is stored", func() bool { return len(w.approvals()) == 0 })
			}
			if w.file("out") != "" {
				t.Fatal("it ran")
			}
			a.Signal(syscall.SIGKILL)
			if !stopFirst {
				harness.Eventually(t, "the other has it", func() bool {
					s := decode[[]struct{ OwnerPID int }](t, json.RawMessage(w.cli("sessions", "list", "--json")))
					return len(s) > 0 && s[0].OwnerPID == b.PID()
				})
				choose(b, ask, "allow_once")
			}
			if got := stop(t, b, id); got != "end_turn" || w.file("out") != "ran\n" {
				t.Errorf("stopped with %s, wrote %q", got, w.file("out"))
			}
			if n := len(questions(b)); n != 1 {
				t.Errorf("it asked %d times", n)
			}
		})
	}
}

// A stop or a revision takes back the question: no count, no answer through any door, and nothing runs.
func TestAnswers_VoidAfterAControl(t *testing.T) {
	for name, control := range map[string]func(*harness.Agent, string){
		"cancel": func(a *harness.Agent, s string) { a.Notify("session/cancel", map[string]any{"sessionId": s}) },
		"pause": func(a *harness.Agent, s string) {
			a.Must("update_goal", map[string]any{"sessionId": s, "action": "pause"}, nil)
		},
		"revision": func(a *harness.Agent, s string) {
			a.Must("update_goal", map[string]any{"sessionId": s, "action": "revise", "objective": "Other.", "reason": "because"}, nil)
		},
		"end": func(a *harness.Agent, s string) {
			a.Must("update_goal", map[string]any{"sessionId": s, "action": "end"}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := make(chan struct{})
			defer close(gate)
			w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
				if r.N == 1 || strings.Contains(r.Messages[0].Content, "Other.") {
					return fakemodel.Calls(fakemodel.Call{Name: "write", Args: `{"path":"out.txt","content":"result\n"}`})
				}
				return fakemodel.Reply{Steps: []fakemodel.Step{fakemodel.Gate(gate)}}
			})
			a := w.asking(unanswered)
			session := a.NewSession(w.work)
			createGoal(t, a, session, nil)
			old := question(t, a, 1)
			before := w.approvals()
			if len(before) != 1 {
				t.Fatalf("open are %+v", before)
			}
			control(a, session)
			message(t, a, "$/cancel_request", fmt.Sprintf(`"requestId":%s}`, old.ID))
			choose(a, old, "allow_once")
			if name == "revision" { // the work goes on, and the same call, made again, is a new question
				question(t, a, 2)
			} else if left := w.approvals(); len(left) != 0 {
				t.Errorf("open are %+v", left)
			}
			if code, said := w.answer(before[0].ApprovalID, "allow_once"); code != 1 || !strings.Contains(said, "no longer open") {
				t.Errorf("the old question is answered with %d: %s", code, said)
			}
			if w.file("out.txt") != "" {
				t.Error("it wrote")
			}
		})
	}
}

// A question is raised again when a client attaches, however much later, and says since when it waits and for what.
func TestAnswers_RaisedAgain(t *testing.T) {
	w := newWorld(t, pursuing(opened()))
	a := w.asking(unanswered)
	session := a.NewSession(w.work)
	createGoal(t, a, session, nil)
	first := question(t, a, 1)
	a.Kill()
	b := w.asking(unanswered)
	w.load(b, session)
	again := question(t, b, 1)
	title := decode[struct{ ToolCall struct{ Title string } }](t, again.Params).ToolCall.Title
	if !regexp.MustCompile(`^Write out\.txt \(asked at \d\d:\d\d, goal: Produce out\.txt\.\)`).MatchString(title) {
		t.Errorf("it asks %q", title)
	}
	if !strings.Contains(string(again.Params), "result") || strings.Contains(string(first.Params), "asked at") {
		t.Errorf("first %s, then %s", first.Params, again.Params)
	}
	choose(b, again, "allow_once")
	harness.Eventually(t, "the goal is achieved", func() bool { return getGoal(t, b, session).Status == "achieved" })
	if n := len(questions(b)); n != 1 {
		t.Errorf("it asked %d times", n)
	}
}

// The same answer once more is the same outcome; another one is refused and names the one that counts. Either way the call runs once.
func TestAnswers_Twice(t *testing.T) {
	w := newWorld(t, once("echo ran >> out", "done"))
	a := w.asking(unanswered)
	session := a.NewSession(w.work)
	id := a.Prompt(session, "run")
	question(t, a, 1)
	p := w.approvals()[0]
	for range 2 {
		if code, said := w.answer(p.ApprovalID, "allow_once"); code != 0 {
			t.Errorf("ended with %d: %s", code, said)
		}
	}
	if got := stop(t, a, id); got != "end_turn" {
		t.Errorf("stopped with %s", got)
	}
	if code, said := w.answer(p.ApprovalID, "allow_once"); code != 0 {
		t.Errorf("ended with %d: %s", code, said)
	}
	if code, said := w.answer(p.ApprovalID, "reject_once"); code != 1 || !strings.Contains(said, "allow_once") {
		t.Errorf("another answer ended with %d: %s", code, said)
	}
	if w.file("out") != "ran\n" {
		t.Errorf("it wrote %q", w.file("out"))
	}
}

// Nobody answers: after the limit the prompt ends with one line, nothing was refused, and a later answer goes on with the work.
func TestAnswers_ParkedAfterTheLimit(t *testing.T) {
	w := newWorld(t, once("echo ran >> out", "done"))
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, "config.toml"), []byte("[permissions]\npark_minutes = 0.005\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := w.asking(unanswered)
	session := a.NewSession(w.work)
	if got := stop(t, a, a.Prompt(session, "run")); got != "end_turn" {
		t.Errorf("stopped with %s", got)
	}
	if n := strings.Count(a.Text(session), "Waiting for your permission"); n != 1 {
		t.Errorf("it says so %d times: %q", n, a.Text(session))
	}
	if w.file("out") != "" || position(a, `"failed"`) >= 0 {
		t.Errorf("it wrote %q: %s", w.file("out"), sent(a))
	}
	w.noMore(2, 500*time.Millisecond, "the model was told something")
	if code, said := w.answer(w.approvals()[0].ApprovalID, "allow_once"); code != 0 {
		t.Errorf("ended with %d: %s", code, said)
	}
	message(t, a, "agent_message_chunk", "done")
	if w.file("out") != "ran\n" {
		t.Errorf("it wrote %q", w.file("out"))
	}
}
