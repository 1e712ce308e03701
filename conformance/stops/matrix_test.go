package stops_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/conformance/harness"
)

// moment is one session in the middle of something when everything is stopped.
type moment struct {
	order   string   // what the user says first
	behind  []string // prompts in the queue behind it
	reached func(s *scene, id string)
	goal    bool
}

// moments are where work can be. Each is in a session of its own, and all are stopped at once.
var moments = map[string]moment{
	"in commands": {order: do(background("echo run >> behind; sleep 600"), foreground(stays("front"))),
		behind:  []string{do(foreground("echo run >> queued")), do(foreground("echo run >> queued"))},
		reached: func(s *scene, _ string) { s.w.begun("behind"); s.w.begun("front") }},
	"asking": {order: do(foreground("echo ASK >> asked")),
		reached: func(s *scene, id string) {
			message(s.w.t, s.a, "session/request_permission", id)
		}},
	"in an answer": {order: do("hang"), reached: func(s *scene, id string) { message(s.w.t, s.a, "agent_message_chunk", "early", id) }},
	"in a retry": {order: do("busy"), reached: func(s *scene, id string) {
		harness.Eventually(s.w.t, "it waits for the next try", func() bool { return s.w.state(id) == "waiting" })
	}},
	"in a goal": {order: "/goal " + do(foreground(stays("goal"))), goal: true, reached: func(s *scene, _ string) { s.w.begun("goal") }},
	"in an external call": {order: do("mcp__x__act " + encode(map[string]string{"do": "held", "text": "LATE"})),
		reached: func(s *scene, _ string) {
			harness.Eventually(s.w.t, "the call is sent", func() bool { _, err := os.Stat(s.w.path("calls")); return err == nil })
		}},
	"between the end of a command and nothing": {order: do(background("while [ ! -e later ]; do sleep 0.05; done; echo run >> later-end")),
		reached: func(s *scene, id string) {
			harness.Eventually(s.w.t, "the turn is over", func() bool { return strings.Contains(s.a.Text(id), "done 1") })
		}},
}

// scene is a world in which every moment is reached.
type scene struct {
	w        *world
	a        *harness.Agent
	sessions map[string]string // by moment
	prompts  map[string][]string
}

// server builds the MCP server that answers late.
func (w *world) server() map[string]any {
	w.t.Helper()
	bin := filepath.Join(w.dir, "mcpserver")
	if out, err := exec.Command("go", "build", "-o", bin, "holdfast/conformance/mcpserver").CombinedOutput(); err != nil {
		w.t.Fatalf("build the MCP server: %v\n%s", err, out)
	}
	plan := encode(map[string]any{"log": w.path("calls"), "tools": []any{map[string]any{"name": "act", "inputSchema": map[string]any{"type": "object"}}}})
	return map[string]any{"name": "x", "command": bin, "args": []string{"-plan", plan}, "env": []any{}}
}

func newScene(t *testing.T) *scene {
	w := newWorld(t)
	s := &scene{w: w, sessions: map[string]string{}, prompts: map[string][]string{}}
	s.a = w.start(w.plain(), map[string]any{}, func(params json.RawMessage) string {
		if strings.Contains(string(params), "ASK") {
			return "" // nobody answers
		}
		return "allow_once"
	})
	server := w.server()
	for name, m := range moments {
		var r struct{ SessionID string }
		s.a.Must("session/new", map[string]any{"cwd": w.work, "mcpServers": []any{server}}, &r)
		s.sessions[name] = r.SessionID
		order := strings.ReplaceAll(m.order, "LATE", w.path("release"))
		for _, text := range append([]string{order}, m.behind...) {
			s.prompts[name] = append(s.prompts[name], s.a.Prompt(r.SessionID, text))
		}
	}
	for name, m := range moments {
		m.reached(s, s.sessions[name])
	}
	return s
}

// doors are the ways to stop everything. What they return is the window that has the sessions afterwards, nil for none.
var doors = map[string]func(s *scene){
	"/stop in each session": func(s *scene) {
		for _, id := range s.sessions {
			s.a.Prompt(id, "/stop")
		}
	},
	"/stop all": func(s *scene) { say(s.w.t, s.a, s.a.NewSession(s.w.work), "/stop all") },
	"/stop all in another window": func(s *scene) {
		b := s.w.launch()
		say(s.w.t, b, b.NewSession(s.w.work), "/stop all")
	},
	"holdfast stop --all": func(s *scene) { _ = document[[]stopped](s.w, "stop", "--all") },
	"holdfast stop, each by its name": func(s *scene) {
		args := []string{"stop"}
		for _, id := range s.sessions {
			args = append(args, id)
		}
		_ = document[[]stopped](s.w, args...)
	},
	"holdfast stop --all twice at once": func(s *scene) {
		first := s.w.command(s.w.plain(), "stop", "--all")
		if err := first.Start(); err != nil {
			s.w.t.Fatal(err)
		}
		_ = document[[]stopped](s.w, "stop", "--all")
		if err := first.Wait(); err != nil {
			s.w.t.Error(err)
		}
	},
	"holdfast stop --all, the process is dead": func(s *scene) {
		s.a.Kill()
		for _, v := range document[[]stopped](s.w, "stop", "--all") {
			if v.State != "stopped" {
				s.w.t.Errorf("stopped as %+v", v)
			}
		}
	},
	"holdfast stop --all, the process sleeps and dies": func(s *scene) {
		s.w.suspend(s.a.PID())
		for _, v := range document[[]stopped](s.w, "stop", "--all") {
			if v.State == "stopped" && v.PID != 0 {
				s.w.t.Errorf("stopped as %+v", v)
			}
		}
		s.a.Kill()
		s.w.launch() // whoever looks next carries it out
	},
	"holdfast stop --all, the process sleeps": func(s *scene) {
		s.w.suspend(s.a.PID())
		_ = document[[]stopped](s.w, "stop", "--all")
		wake(s.w.t, s.a.PID())
	},
}

// Whatever is stopped, by whichever door: it ends with its commands, and nothing of it comes back. Not when commands end and answers arrive,
// not when the next try is due, not after kill -9, not with 'holdfast work', and not when the sessions are opened.
func TestStop_NothingComesBack(t *testing.T) {
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			w := s.w
			door(s)
			harness.Eventually(t, "nothing runs", func() bool { return len(w.running()) == 0 })
			for name, id := range s.sessions {
				harness.Eventually(t, name+" is idle", func() bool { return w.state(id) == "idle" })
			}
			if alive(s.a) {
				for name, ids := range s.prompts {
					for _, id := range ids {
						if got := ended(t, s.a, id); got != "cancelled" && name != "between the end of a command and nothing" {
							t.Errorf("%s: a prompt stops with %s", name, got)
						}
					}
				}
			}
			w.requests(5) // each that asks the model has
			asked := w.asked()
			w.put("later")
			w.put("release")
			w.silent(asked, time.Second, "it came back when a command ended or an answer came")
			s.a.Kill()
			b := w.launch() // goes on after three seconds with what it finds, and the next try would be due
			w.silent(asked, 5*time.Second, "it came back after a restart")
			if out, errs, err := w.cli("work"); err != nil {
				t.Errorf("work: %v\n%s%s", err, out, errs)
			}
			if open := document[[]any](w, "sessions", "approvals"); len(open) != 0 {
				t.Errorf("questions are open: %v", open)
			}
			for name, id := range s.sessions {
				w.load(b, id)
				if moments[name].goal {
					if status, code := w.goal(b, id); status != "paused" || code != "user_cancelled" {
						t.Errorf("the goal is %s (%s)", status, code)
					}
				}
			}
			w.silent(asked, time.Second, "it came back when it was opened")
			for name, id := range s.sessions {
				if got := say(t, b, id, do()); got != "end_turn" {
					t.Errorf("%s: the next prompt stops with %s", name, got)
				}
			}
			if n := w.asked() - asked; n != len(s.sessions) {
				t.Errorf("%d prompts made %d requests", len(s.sessions), n)
			}
			for file, n := range map[string]int{"behind": 1, "front": 1, "goal": 1, "queued": 0, "asked": 0, "later-end": 0, "calls": 1} {
				if w.lines(file) != n {
					t.Errorf("%s has %d lines, want %d", file, w.lines(file), n)
				}
			}
		})
	}
}

// alive tells whether an agent runs.
func alive(a *harness.Agent) bool {
	b, err := os.ReadFile("/proc/" + itoa(a.PID()) + "/stat")
	if err != nil {
		return syscall.Kill(a.PID(), 0) == nil
	}
	_, state, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(state, "Z")
}
