//go:build linux

package ident

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// eventually polls until a fact holds.
func eventually(t *testing.T, what string, fact func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !fact(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// child starts a program and ends it with the test.
func child(t *testing.T, name string, args ...string) (*exec.Cmd, Process) {
	t.Helper()
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // a second time where the test has waited
	})
	p, err := Start(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, p
}

func TestProcess_RunningComparesEverything(t *testing.T) {
	self := Self()
	if self.Start == 0 || self.Boot == "" || self.Space == "" || self.PID != os.Getpid() {
		t.Fatalf("this process is %+v", self)
	}
	for name, c := range map[string]struct {
		change func(*Process)
		want   bool
		err    error
	}{
		"itself":             {func(*Process) {}, true, nil},
		"PID reused":         {func(p *Process) { p.Start++ }, false, nil},
		"another boot":       {func(p *Process) { p.Boot = "another" }, false, nil},
		"another container":  {func(p *Process) { p.Space = "pid:[1]" }, false, ErrOtherSpace},
		"no PID":             {func(p *Process) { p.PID = 0 }, false, nil},
		"a group, not a PID": {func(p *Process) { p.PID = -p.PID }, false, nil},
		"nothing known":      {func(p *Process) { *p = Process{} }, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := self
			c.change(&p)
			got, err := p.Running()
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("running %v, %v; want %v, %v", got, err, c.want, c.err)
			}
			if p.Alive() != c.want {
				t.Errorf("alive %v, want %v", p.Alive(), c.want)
			}
		})
	}
}

func TestProcess_SurvivesJSON(t *testing.T) {
	b, err := json.Marshal(Self())
	if err != nil {
		t.Fatal(err)
	}
	var back Process
	if err := json.Unmarshal(b, &back); err != nil || back != Self() || !back.Alive() {
		t.Errorf("%s came back as %+v, %v", b, back, err)
	}
}

// I1: when the question cannot be asked, the answer is not "gone".
func TestStart_NoDescriptorsLeftIsNoProof(t *testing.T) {
	_, p := child(t, "sleep", "60")
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	running, err := p.Running()
	_, descErr := Descendants(os.Getpid())
	sigErr := Signal(p, 0)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"Running": err, "Descendants": descErr, "Signal": sigErr} {
		if err == nil || errors.Is(err, ErrGone) {
			t.Errorf("%s without descriptors says %v", what, err)
		}
	}
	if running || !p.Alive() {
		t.Errorf("running %v, then alive %v", running, p.Alive())
	}
}

func TestSignal_OnlyTheSameProcess(t *testing.T) {
	cmd, p := child(t, "sleep", "60")
	for name, change := range map[string]func(*Process){
		"PID reused": func(p *Process) { p.Start++ }, "another boot": func(p *Process) { p.Boot = "another" },
		"everybody": func(p *Process) { p.PID = -1 }, "own group": func(p *Process) { p.PID = 0 },
	} {
		other := p
		change(&other)
		if err := Signal(other, syscall.SIGKILL); !errors.Is(err, ErrGone) {
			t.Errorf("%s: signalled, %v", name, err)
		}
	}
	other := p
	other.Space = "pid:[1]"
	if err := Signal(other, syscall.SIGKILL); !errors.Is(err, ErrOtherSpace) {
		t.Errorf("another container: signalled, %v", err)
	}
	if !p.Alive() {
		t.Fatal("the process was hit although its identity differs")
	}
	if err := Signal(p, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the process ended with %v", err)
	}
	if p.Alive() {
		t.Error("a dead process is alive")
	}
	if err := Signal(p, syscall.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("signalling a dead process: %v", err)
	}
}

func TestProcess_ZombieIsDead(t *testing.T) {
	cmd, p := child(t, "sleep", "60")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the killed process is dead before anybody waits for it", func() bool { return !p.Alive() })
	s, err := read(p.PID)
	if err != nil || s.state != 'Z' {
		t.Errorf("it is no zombie: %+v, %v", s, err)
	}
	if err := Signal(p, syscall.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("signalling a zombie: %v", err)
	}
}

func TestDescendants_WithSessionsOfTheirOwn(t *testing.T) {
	cmd, p := child(t, "sh", "-c", "setsid sleep 60 & sh -c 'sleep 60 & wait' & wait")
	var tree []Process
	eventually(t, "the whole tree is up", func() bool {
		var err error
		if tree, err = Descendants(p.PID); err != nil {
			t.Fatal(err)
		}
		sleeping := 0
		for _, d := range tree {
			if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", d.PID)); string(name) == "sleep\n" {
				sleeping++
			}
		}
		return sleeping == 2 && len(tree) == 3
	})
	for _, d := range tree {
		if !d.Alive() {
			t.Errorf("%+v is listed and not alive", d)
		}
		if err := Signal(d, syscall.SIGKILL); err != nil && !errors.Is(err, ErrGone) { // a parent may end first
			t.Error(err)
		}
	}
	_ = cmd.Wait() // with whatever code
	if tree, err := Descendants(p.PID); err != nil || len(tree) != 0 {
		t.Errorf("after the end: %v, %v", tree, err)
	}
}

func TestBelow_RingsEnd(t *testing.T) {
	got := below(1, map[int][]Process{1: {{PID: 2}}, 2: {{PID: 3}}, 3: {{PID: 1}, {PID: 2}, {PID: 4}}})
	if want := []Process{{PID: 2}, {PID: 3}, {PID: 4}}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("below %v, want %v", got, want)
	}
}

func TestParse(t *testing.T) {
	line := func(name, state, threads string) string {
		return "7 (" + name + ") " + state + " 3 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 " + threads + " 0 12345 1000 10 99\n"
	}
	for name, c := range map[string]struct {
		in   string
		want status
		dead bool
		fail bool
	}{
		"plain":                         {in: line("sh", "S", "1"), want: status{'S', 3, 1, 12345}},
		"name with blanks and parens":   {in: line(") Z 9 (x", "R", "4"), want: status{'R', 3, 4, 12345}},
		"zombie":                        {in: line("sh", "Z", "1"), want: status{'Z', 3, 1, 12345}, dead: true},
		"only the first thread is over": {in: line("sh", "Z", "2"), want: status{'Z', 3, 2, 12345}},
		"cut short":                     {in: "7 (sh) S 3 7", fail: true},
		"empty":                         {in: "", fail: true},
		"no number":                     {in: strings.Replace(line("sh", "S", "1"), "12345", "x", 1), fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse([]byte(c.in))
			if (err != nil) != c.fail || !c.fail && (got != c.want || got.dead() != c.dead) {
				t.Errorf("%+v, dead %v, %v", got, got.dead(), err)
			}
		})
	}
}

// Whatever a process calls itself, the fields after its name are found.
func FuzzParse(f *testing.F) {
	f.Add("sh")
	f.Add(") Z 9 (")
	f.Fuzz(func(t *testing.T, name string) {
		got, err := parse([]byte("7 (" + name + ") S 3 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 12345 1000\n"))
		if want := (status{'S', 3, 1, 12345}); err != nil || got != want {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
		_, _ = parse([]byte(name)) // no text may make it panic
	})
}

func TestHost_StableAndNotTheRawID(t *testing.T) {
	id := strings.TrimSpace(machineID())
	h := Host()
	if len(h) != 32 || h != Host() || id != "" && (strings.Contains(h, id) || strings.Contains(id, h)) {
		t.Errorf("host %q", h)
	}
	if hashed("a") == hashed("b") || hashed("a\n") != hashed("a") {
		t.Error("machines are not told apart, or white space is")
	}
}
