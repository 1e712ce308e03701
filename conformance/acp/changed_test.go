package acp_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

// asked collects the open questions of a client by their title, in order.
func questions(a *harness.Agent) (out []harness.Message) {
	for _, m := range a.Log() {
		if m.Method == "session/request_permission" {
			out = append(out, m)
		}
	}
	return out
}

// question waits for the n-th question.
func question(t *testing.T, a *harness.Agent, n int) harness.Message {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("question %d is asked", n), func() bool { return len(questions(a)) >= n })
	return questions(a)[n-1]
}

func choose(a *harness.Agent, ask harness.Message, option string) {
	a.Answer(ask.ID, map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": option}})
}

func (w *world) put(name, text string, mode os.FileMode) {
	w.t.Helper()
	if err := os.WriteFile(w.path(name), []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chmod(w.path(name), mode); err != nil {
		w.t.Fatal(err)
	}
}

// programs are command lines that run a file, with the file.
var programs = map[string]string{
	"./x.sh":                      "x.sh",
	"sh x.sh":                     "x.sh",
	"cd sub && ./y.sh":            "sub/y.sh",
	"A=b nohup sh ./x.sh && true": "x.sh",
	"make":                        "Makefile",
	"make -C sub":                 "sub/Makefile",
	"cat x.sh | sh x.sh -v":       "x.sh",
}

// What is allowed is allowed as it was when it was asked about. A script that changed while the answer was on record is asked about again,
// by the process that comes after, and the old answer counts for nothing.
func TestChanged_AfterTheAnswer(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("needs make; install it and run: go test -run TestChanged ./conformance/acp")
	}
	for line, file := range programs {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, once(line, "done"))
			if err := os.Mkdir(w.path("sub"), 0o755); err != nil {
				t.Fatal(err)
			}
			text := func(word string) string {
				if strings.HasSuffix(file, "Makefile") {
					return "all:\n\t@echo " + word + " >> '" + w.path("out") + "'\n"
				}
				return "#!/bin/sh\necho " + word + " >> '" + w.path("out") + "'\n"
			}
			w.put(file, text("first"), 0o755)
			_, faulty, err := harness.Binaries()
			if err != nil {
				t.Fatal(err)
			}
			a := harness.Start(t, harness.Options{Binary: faulty, Env: append([]string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_CRASH=approval.answered:after"}, w.env...),
				Permission: unanswered})
			a.Initialize()
			session := a.NewSession(w.work)
			a.Prompt(session, "run")
			choose(a, question(t, a, 1), "allow_once")
			_ = a.Wait() // it dies with the answer stored
			w.put(file, text("second"), 0o755)
			b := w.asking(unanswered)
			w.load(b, session)
			again := question(t, b, 1)
			if w.file("out") != "" {
				t.Fatalf("it ran: %q", w.file("out"))
			}
			choose(b, again, "allow_once")
			message(t, b, "agent_message_chunk", "done")
			if w.file("out") != "second\n" {
				t.Errorf("it wrote %q", w.file("out"))
			}
		})
	}
}

// What did not change needs no second answer, whatever the process did meanwhile.
func TestChanged_UnchangedIsNotAskedAgain(t *testing.T) {
	for _, point := range []string{"approval.answered:after", "effect.dispatched:before"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, once("sh x.sh", "done"))
			w.put("x.sh", "echo ran >> out\n", 0o755)
			_, faulty, err := harness.Binaries()
			if err != nil {
				t.Fatal(err)
			}
			a := harness.Start(t, harness.Options{Binary: faulty, Env: append([]string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_CRASH=" + point}, w.env...)})
			a.Initialize()
			session := a.NewSession(w.work)
			a.Prompt(session, "run")
			_ = a.Wait()
			b := w.asking(unanswered)
			w.load(b, session)
			message(t, b, "agent_message_chunk", "done")
			if w.file("out") != "ran\n" || len(questions(b)) > 0 {
				t.Errorf("it wrote %q after %d more questions", w.file("out"), len(questions(b)))
			}
		})
	}
}

// between makes the program git, which the agent runs between a judgement and the start of a call to record the work tree, do something
// first, once, when the file is there that it returns.
func (w *world) between(script string) (armed string) {
	w.t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		w.t.Skip("needs git; install it and run: go test -run TestChanged ./conformance/acp")
	}
	if out, err := exec.Command(git, "init", "-q", w.work).CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	bin := filepath.Join(filepath.Dir(w.work), "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		w.t.Fatal(err)
	}
	armed = filepath.Join(bin, "armed")
	text := "#!/bin/sh\nif rm '" + armed + "' 2>/dev/null; then " + script + "; fi\nexec " + git + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(text), 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.env = append(w.env, "PATH="+bin+":"+os.Getenv("PATH"))
	return armed
}

func arm(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A file that changes between the answer and the start, in one process: the last look finds it.
func TestChanged_RightBeforeTheStart(t *testing.T) {
	for call, wrote := range map[string]string{
		"run sh x.sh": "echo first >> out\n# end\necho second >> out\n",
		`edit {"path":"x.sh","edits":[{"old":"# end","new":"echo ran >> out"}]}`: "echo first >> out\necho ran >> out\necho second >> out\n",
	} {
		t.Run(strings.Fields(call)[0], func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, obeying)
			armed := w.between("echo 'echo second >> out' >> '" + w.path("x.sh") + "'")
			w.put("x.sh", "echo first >> out\n# end\n", 0o755)
			a := w.asking(unanswered)
			session := a.NewSession(w.work)
			id := a.Prompt(session, call)
			first := question(t, a, 1)
			arm(t, armed)
			choose(a, first, "allow_once")
			second := question(t, a, 2)
			if w.file("out") != "" || strings.Contains(w.file("x.sh"), "echo ran") {
				t.Fatalf("it happened: %q, %q", w.file("out"), w.file("x.sh"))
			}
			choose(a, second, "allow_once")
			if got := stop(t, a, id); got != "end_turn" || w.file("x.sh") != wrote {
				t.Errorf("stopped with %s, the file is %q", got, w.file("x.sh"))
			}
			if strings.HasPrefix(call, "run") && w.file("out") != "first\nsecond\n" {
				t.Errorf("it wrote %q", w.file("out"))
			}
		})
	}
}

// What is no longer allowed when the call is about to start does not start: a rule was revoked or made, the mode was changed.
func TestChanged_PermissionRightBeforeTheStart(t *testing.T) {
	plain, _, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		answer string // "" when a rule allows it
		change func(w *world, session string) string
		asked  int
		told   string
	}{
		"revoked":                  {"", func(w *world, _ string) string { return "rules revoke " + w.rules()[0].RuleID }, 1, "refused"},
		"denied":                   {"", func(*world, string) string { return "rules add deny --command 'touch a' --cwd ''" }, 0, "rejects it"},
		"denied after the answer":  {"allow_once", func(*world, string) string { return "rules add deny --command 'touch a' --cwd ''" }, 1, "rejects it"},
		"planned after the answer": {"allow_once", func(_ *world, s string) string { return "sessions mode " + s + " plan" }, 1, "plan mode"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, obeying)
			command := filepath.Join(filepath.Dir(w.work), "command")
			armed := w.between("HOLDFAST_HOME='" + w.home + "' sh '" + command + "' >'" + command + ".out' 2>&1")
			if c.answer == "" {
				w.cli("rules", "add", "allow", "--command", "touch a")
			}
			q := &asks{answer: c.answer}
			if c.answer == "" {
				q.answer = "reject_once"
			}
			a := w.asking(q.permission)
			session := a.NewSession(w.work)
			if err := os.WriteFile(command, []byte("exec "+plain+" "+c.change(w, session)+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			arm(t, armed)
			if got := stop(t, a, a.Prompt(session, "run touch a")); got != "end_turn" {
				t.Errorf("stopped with %s", got)
			}
			if _, err := os.Stat(armed); err == nil {
				t.Fatal("nothing was changed in between")
			}
			if _, err := os.Stat(w.path("a")); err == nil {
				t.Error("it ran")
			}
			if n := q.next(""); n != c.asked {
				t.Errorf("it asked %d times", n)
			}
			if reqs := w.requests(2); !strings.Contains(string(reqs[1].Body), c.told) {
				t.Errorf("the model is told %s", reqs[1].Body)
			}
			if left := w.approvals(); len(left) != 0 {
				t.Errorf("open are %+v", left)
			}
		})
	}
}

// A standing answer about a script covers the script as it was.
func TestChanged_AlwaysIsAboutWhatWasSeen(t *testing.T) {
	s := play(t)
	s.w.put("x.sh", "echo first >> out\n", 0o755)
	s.must(true, "run sh x.sh", "allow_always")
	if title := s.q.last(); !strings.Contains(title, "while the files it runs stay as they are") {
		t.Errorf("it asks %q", title)
	}
	s.must(false, "run sh x.sh", "")
	s.w.put("x.sh", "echo second >> out\n", 0o755)
	s.must(true, "run sh x.sh", "reject_once")
	if s.w.file("out") != "first\nfirst\n" {
		t.Errorf("it wrote %q", s.w.file("out"))
	}
}
