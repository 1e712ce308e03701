package process_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"holdfast/conformance/harness"
)

// kill ends processes as hard as it goes.
func kill(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if pid <= 1 {
			t.Fatalf("process %d", pid)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}

// read is a small file that a command has written.
func (w *world) read(name string) string {
	b, _ := os.ReadFile(filepath.Join(w.work, name)) // it may not be there
	return strings.TrimSpace(string(b))
}

func (w *world) number(name string) int {
	w.t.Helper()
	n, err := strconv.Atoi(w.read(name))
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// The server, the supervisor and the command are killed, alone, in pairs and all at once. The command runs once; what is told of its end is
// true, and is told once; nothing that runs is missing in the list.
func TestBackground_Kills(t *testing.T) {
	for _, c := range []struct {
		server, supervisor, command bool
		says                        string
	}{
		{server: true, says: "exit code 3"},
		{supervisor: true, says: "its end was never recorded"},
		{command: true, says: "ended by SIGKILL"},
		{server: true, supervisor: true, says: "its end was never recorded"},
		{server: true, command: true, says: "ended by SIGKILL"},
		{supervisor: true, command: true, says: "its end was never recorded"},
		{server: true, supervisor: true, command: true, says: "its end was never recorded"},
	} {
		var names []string
		for name, is := range map[string]bool{"server": c.server, "supervisor": c.supervisor, "command": c.command} {
			if is {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		t.Run(strings.Join(names, " and "), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, obedient)
			w.ends()
			a := w.launch()
			session := a.NewSession(w.work)
			say(t, a, session, do(background("echo $PPID > supervisor; echo $$ > command; echo run >> counter; echo before; "+until("go")+"; echo after; exit 3"),
				output(map[string]any{"id": "bg1", "wait_seconds": 20})))
			harness.Eventually(t, "it runs, and its supervisor has said so", func() bool {
				said, err := filepath.Glob(filepath.Join(w.home, "calls", "*", "running"))
				return w.lines("counter") == 1 && err == nil && len(said) == 1
			})
			requests := len(w.model.Requests())
			if c.server { // first, so that nobody is there to see the others die
				a.Kill()
			}
			if c.supervisor {
				kill(t, w.number("supervisor"))
			}
			if c.command {
				kill(t, w.number("command"))
			}
			state := "running"
			if c.supervisor {
				state = "supervisor_lost"
			}
			harness.Eventually(t, "the list is true", func() bool {
				list := w.ps()
				if c.command {
					return len(list) == 0
				}
				return len(list) == 1 && list[0].State == state && list[0].PID == w.number("command") && list[0].SessionID == session
			})
			if c.server {
				a = w.launch()
				w.load(a, session)
			}
			if !c.command {
				if list := w.ps(); len(list) != 1 {
					t.Errorf("after the launch: %+v", list)
				}
				w.put("go")
				harness.Eventually(t, "it has ended", func() bool { return len(w.ps()) == 0 })
			}
			if n := len(w.model.Requests()) - requests; n != 0 {
				t.Errorf("%d requests were made", n)
			}
			say(t, a, session, do(output(map[string]any{"id": "bg1"})))
			want := "[bg1 has ended: " + c.says
			if !c.command {
				want = "after\n[bg1 has ended: "
			}
			if w.told("bg1") != 1 || !strings.Contains(w.results(), want) || !strings.Contains(w.results(), c.says) || strings.Count(w.results(), "before") != 1 {
				t.Errorf("told %d times, read %s", w.told("bg1"), w.results())
			}
			say(t, a, session, do())
			if w.told("bg1") != 1 || w.lines("counter") != 1 {
				t.Errorf("told %d times, ran %d times", w.told("bg1"), w.lines("counter"))
			}
		})
	}
}

// A number that another process has by now is not the command, and neither is anything from before a restart of the machine. Nothing is
// signalled because of either.
func TestBackground_OtherProcessOrOtherBoot(t *testing.T) {
	for name, c := range map[string]struct {
		file, member string
		change       func(any) any
		says         string
	}{
		"reused number": {"running", "start", func(v any) any { return v.(float64) + 1 }, "its supervisor was lost without a receipt"},
		"other boot":    {"spec", "boot", func(any) any { return "another boot" }, "the machine was restarted under it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, obedient)
			a := w.launch()
			session := a.NewSession(w.work)
			say(t, a, session, do(background("echo $PPID > supervisor; echo $$ > command; echo run >> counter; "+until("go"))))
			harness.Eventually(t, "it runs, and its supervisor has said so", func() bool {
				said, err := filepath.Glob(filepath.Join(w.home, "calls", "*", "running"))
				return w.lines("counter") == 1 && err == nil && len(said) == 1
			})
			a.Kill()
			kill(t, w.number("supervisor"))
			harness.Eventually(t, "it is an orphan", func() bool { list := w.ps(); return len(list) == 1 && list[0].State == "supervisor_lost" })
			files, err := filepath.Glob(filepath.Join(w.home, "calls", "*", c.file))
			if err != nil || len(files) != 1 {
				t.Fatalf("%v, %v", files, err)
			}
			overwrite(t, files[0], func(b []byte) []byte {
				var m map[string]any
				if err := json.Unmarshal(b, &m); err != nil {
					t.Fatal(err)
				}
				if m[c.member] == nil {
					t.Fatalf("%s has no %s: %s", c.file, c.member, b)
				}
				m[c.member] = c.change(m[c.member])
				return []byte(object(m))
			})
			if list := w.ps(); len(list) != 0 {
				t.Errorf("it passes for the command: %+v", list)
			}
			b := w.launch()
			w.load(b, session)
			say(t, b, session, "/stop")
			say(t, b, session, do(output(map[string]any{"id": "bg1"})))
			if w.told("bg1") != 1 || !strings.Contains(w.results(), c.says) {
				t.Errorf("told %d times, read %s", w.told("bg1"), w.results())
			}
			if !alive(w.number("command")) {
				t.Error("a process that could not be proven to be the command was ended")
			}
			w.put("go") // the only end it will get
			harness.Eventually(t, "it is gone", func() bool { return !alive(w.number("command")) })
		})
	}
}

// below lists the processes that descend from one, itself last, as editors find them.
func below(t *testing.T, root int) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	parent := map[int]int{}
	for _, s := range stats {
		b, err := os.ReadFile(s)
		if err != nil {
			continue
		}
		var pid, ppid int
		var state string
		fmt.Sscan(string(b), &pid)
		fmt.Sscan(string(b[strings.LastIndexByte(string(b), ')')+1:]), &state, &ppid)
		parent[pid] = ppid
	}
	var out []int
	for pid := range parent {
		for p, n := pid, 0; p > 1 && n < 100; p, n = parent[p], n+1 {
			if p == root && pid != root {
				out = append(out, pid)
			}
		}
	}
	return append(out, root)
}

// An editor that ends its agent's whole process tree, parent by parent, reaches no command.
func TestBackground_SurvivesTheEditorsTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, obedient)
	w.ends()
	a := w.launch()
	session := a.NewSession(w.work)
	say(t, a, session, do(background("echo $$ > command; echo run >> counter; "+until("go")+"; exit 4")))
	a.Prompt(session, do(foreground("echo $$ > foreground; echo run >> counter; "+until("go")+"; exit 5")))
	harness.Eventually(t, "both run", func() bool { return w.lines("counter") == 2 })
	kill(t, below(t, a.PID())...)
	a.Kill()
	if !alive(w.number("command")) || !alive(w.number("foreground")) || len(w.ps()) != 2 {
		t.Errorf("after the end of the tree: %+v", w.ps())
	}
	b := w.launch()
	w.load(b, session)
	w.put("go")
	harness.Eventually(t, "the turn goes on", func() bool { return strings.Contains(b.Text(session), "done 1") })
	say(t, b, session, do())
	if got := w.results(); !strings.Contains(got, "exit code 5") || w.told("bg1") != 1 || w.lines("counter") != 2 {
		t.Errorf("told %d times, ran %d times, read %s", w.told("bg1"), w.lines("counter"), got)
	}
}

// A command whose session this store does not know is listed all the same.
func TestBackground_WithoutASessionIsListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, obedient)
	a := w.launch()
	session := a.NewSession(w.work)
	say(t, a, session, do(background("echo $$ > command; "+until("go"))))
	harness.Eventually(t, "it runs", func() bool { list := w.ps(); return len(list) == 1 && list[0].PID > 0 })
	a.Kill()
	other := &world{t: t, home: filepath.Join(t.TempDir(), "home"), work: w.work, model: w.model, extra: w.extra}
	other.launch().NewSession(w.work)
	if err := os.Rename(filepath.Join(w.home, "calls"), filepath.Join(other.home, "calls")); err != nil {
		t.Fatal(err)
	}
	list := other.ps()
	if len(list) != 1 || list[0].SessionID != "" || list[0].PID != w.number("command") || !strings.Contains(list[0].Command, "echo $$ > command") {
		t.Errorf("holdfast ps: %+v", list)
	}
	w.put("go")
	harness.Eventually(t, "it has ended", func() bool { return len(other.ps()) == 0 })
}
