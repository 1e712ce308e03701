//go:build linux

package client

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/internal/ident"
)

// carrying lists the running processes with a tag.
func carrying(tag string) (pids []int) {
	for pid, p := range processes() {
		if !p.dead && tagged(pid, tag) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// wrapped runs the server below a shell that stays, as npx and the like do.
func wrapped(c *Config) {
	c.Args = []string{"-c", "'" + c.Command + "' -plan '" + c.Args[1] + "'; true"}
	c.Command = "sh"
}

// Whatever a server does with its end, nothing of it is left, and the end has a bound.
func TestClose_NothingIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		plan    plan
		wrapped bool
	}{
		"polite":                        {plan{}, false},
		"ignores the end of its input":  {plan{"ignore_eof": true}, false},
		"ignores that and TERM":         {plan{"ignore_eof": true, "ignore_term": true}, false},
		"below a shell":                 {plan{}, true},
		"below a shell, ignores it all": {plan{"ignore_eof": true, "ignore_term": true}, true},
		"does not read, below a shell":  {plan{"deaf": true, "ignore_term": true}, true},
		"writes on, and ignores it all": {plan{"ignore_eof": true, "ignore_term": true, "stderr": 1 << 20}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, c.plan, func(cfg *Config, o *Options) {
				if c.wrapped {
					wrapped(cfg)
				}
			})
			want := 1
			if c.wrapped {
				want = 2
			}
			if got := carrying(w.opts.Tag); len(got) != want {
				t.Fatalf("%d processes, want %d", len(got), want)
			}
			w.Close()
			if got := carrying(w.opts.Tag); len(got) != 0 {
				t.Errorf("left: %v", got)
			}
			w.Close()
		})
	}
}

// The wrapper dies and the real server goes on: it is ended with the group, and calls are unknown.
func TestClose_LeaderDiesAlone(t *testing.T) {
	w := start(t, plan{"ignore_eof": true, "ignore_term": true}, func(c *Config, _ *Options) { wrapped(c) })
	pid := w.State().PID
	go func() {
		eventually(t, "the call arrives", func() bool { return w.sent() == 1 })
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}()
	w.wantUnknown(w.act(map[string]any{"do": "hang"}), "exited (killed by SIGKILL)")
	eventually(t, "the group is gone", func() bool { return len(carrying(w.opts.Tag)) == 0 })
}

func TestClose_DuringTheStart(t *testing.T) {
	w := prepare(t, plan{"start_ms": 60000, "ignore_term": true, "ignore_eof": true})
	w.Start()
	eventually(t, "it runs", func() bool { return len(carrying(w.opts.Tag)) == 1 })
	w.Close()
	if got := carrying(w.opts.Tag); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
	if err := w.Wait(soon(t)); err != ErrClosed {
		t.Errorf("wait says %v", err)
	}
}

// driver is this test binary as a process of its own that runs one server, and dies as it is told.
type driver struct {
	Config   Config
	Tag      string
	Children string
	Point    string // where it kills itself
	Do       string // the call it makes; "" makes none
	Ready    string // file that it writes once the server is ready
}

func drive(text string) {
	var d driver
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		panic(err)
	}
	point = func(name string) {
		if name == d.Point {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	s := New(d.Config, Options{Tag: d.Tag, Children: d.Children})
	s.Start()
	ctx, cancel := contextFor(limit)
	defer cancel()
	if err := s.Wait(ctx); err != nil {
		panic(err)
	}
	if err := os.WriteFile(d.Ready, nil, 0o600); err != nil {
		panic(err)
	}
	if d.Do == "" {
		<-ctx.Done()
	}
	sl, err := s.Acquire(ctx, s.Tools()[0])
	if err != nil {
		panic(err)
	}
	o := sl.Call(ctx, "T", json.RawMessage(fmt.Sprintf(`{"do":%q}`, d.Do)), nil)
	panic(fmt.Sprintf("it did not die: %+v", o))
}

func drove(t *testing.T, p plan, wrap bool, d driver) (driver, *exec.Cmd) {
	t.Helper()
	w := prepare(t, p, func(c *Config, o *Options) {
		if wrap {
			wrapped(c)
		}
	})
	d.Config, d.Tag, d.Children, d.Ready = w.cfg, w.opts.Tag, filepath.Join(t.TempDir(), "children"), filepath.Join(t.TempDir(), "ready")
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "MCP_TEST_DRIVER="+string(b))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // a second time where the test has waited
	})
	return d, cmd
}

// Killed at each point, the server has seen the call exactly as often as the point says, and no direct child outlives us.
func TestCrash_AtEachPoint(t *testing.T) {
	for at, want := range map[string]int{"mcp.sending": 0, "mcp.written": 1, "mcp.answer_read": 1} {
		t.Run(at, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			d, cmd := drove(t, plan{"log": log, "ignore_eof": true}, false, driver{Point: at, Do: "ok"})
			if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Fatalf("the driver ended with %v", err)
			}
			eventually(t, "the child is gone", func() bool { return len(carrying(d.Tag)) == 0 })
			if got := lives(t, log); got > want || at == "mcp.answer_read" && got != want {
				t.Errorf("sent %d times, want %d", got, want)
			}
			if n, err := Sweep(d.Children); n != 0 || err != nil {
				t.Errorf("swept %d, %v", n, err)
			}
		})
	}
}

// What a dead instance left below a shell is found by its tag and ended, TERM or not.
func TestSweep_EndsWhatADeadInstanceLeft(t *testing.T) {
	d, cmd := drove(t, plan{"ignore_eof": true, "ignore_term": true}, true, driver{})
	eventually(t, "the server is ready", func() bool { _, err := os.Stat(d.Ready); return err == nil })
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	eventually(t, "the shell is gone and the server is not", func() bool { return len(carrying(d.Tag)) == 1 })
	n, err := Sweep(d.Children)
	if n != 1 || err != nil || len(carrying(d.Tag)) != 0 {
		t.Errorf("swept %d, %v, left %v", n, err, carrying(d.Tag))
	}
	if n, err := Sweep(d.Children); n != 0 || err != nil {
		t.Errorf("the second time %d, %v", n, err)
	}
}

// A process without the proof is nobody's: a recycled PID, another tag, another boot.
func TestSweep_TouchesNobodyElse(t *testing.T) {
	tag := fmt.Sprintf("mine-%d-%d", os.Getpid(), tags.Add(1))
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = []string{tagName + "=" + tag}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }() // the test is its parent; who sweeps after a death is not
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-waited
	})
	var self ident.Process
	eventually(t, "it is a sleep", func() bool {
		var err error
		self, err = ident.Start(cmd.Process.Pid)
		return err == nil && tagged(self.PID, tag)
	})
	file := filepath.Join(t.TempDir(), "children")
	sweepOf := func(records ...record) int {
		t.Helper()
		_ = os.Remove(file) // the first time there is none
		for _, r := range records {
			if err := announce(file, r); err != nil {
				t.Fatal(err)
			}
		}
		n, err := Sweep(file)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	other := self
	other.Boot = "another"
	recycled := self
	recycled.Start--
	for name, r := range map[string]record{
		"another tag":           {self, "other"},
		"recycled, another tag": {recycled, "other"},
		"recycled, no tag":      {recycled, ""},
		"another boot":          {other, tag},
	} {
		if n := sweepOf(record{Tag: r.Tag}, r); n != 0 || !self.Alive() {
			t.Fatalf("%s: swept %d, alive %v", name, n, self.Alive())
		}
	}
	if err := os.WriteFile(file, []byte("\n{}\nnull\n[1]\n{\"pid\":"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := Sweep(file); n != 0 || err != nil {
		t.Errorf("of garbage: %d, %v", n, err)
	}
	if n, err := Sweep(file + ".none"); n != 0 || err != nil {
		t.Errorf("of nothing: %d, %v", n, err)
	}
	if n := sweepOf(record{Tag: tag}); n != 1 {
		t.Errorf("a launch without a process: swept %d", n)
	}
}

func TestChildren_AreNotedBeforeAndAfter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "children")
	w := start(t, nil, func(_ *Config, o *Options) { o.Children = file })
	all, err := children(file)
	if err != nil || len(all) != 2 || all[0].PID != 0 || all[1].PID != w.State().PID || !all[1].Alive() || all[1].Tag != w.opts.Tag {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestChildren_WithoutTheFileNothingStarts(t *testing.T) {
	w := prepare(t, nil, func(_ *Config, o *Options) { o.Children = "/no/such/folder/children" })
	e := failure(t, w)
	if !strings.Contains(e.Reason, "note a child") || w.State().Generation == 0 {
		t.Errorf("%+v", e)
	}
	if got := carrying(w.opts.Tag); len(got) != 0 {
		t.Errorf("running: %v", got)
	}
}
