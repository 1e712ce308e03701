//go:build linux

package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestHandle_ExitCodeOutputAndTimes(t *testing.T) {
	dir := newDir(t)
	h := start(t, counting(dir, "echo out; echo err >&2; exit 7"))
	r := finished(t, h)
	if !exited(r, 7) || r.Signal != "" || r.Stopped != "" || r.Failure != "" || r.Left != 0 {
		t.Errorf("receipt %v", r)
	}
	if r.Ended.Before(r.Started) || r.OutputBytes != 8 {
		t.Errorf("times or size: %+v", r)
	}
	v, err := h.Output(1000, true)
	if err != nil || string(v.Head) != "out\nerr\n" || v.Digest != "sha256:"+sum([]byte("out\nerr\n")) {
		t.Errorf("output %+v, %v", v, err)
	}
	if s := verdict(t, Open(dir)); s.Verdict != Done || !exited(s.Result, 7) || s.Supervisor.PID == 0 {
		t.Errorf("another process sees %+v", s)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		if st, err := e.Info(); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", e.Name(), st.Mode().Perm(), err)
		}
	}
	if want := []string{"alive", "exit", "out", "running", "spec", "starting"}; !slices.Equal(names, want) {
		t.Errorf("files %v, want %v", names, want)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, %v", st.Mode().Perm(), err)
	}
}

func TestStart_AnOpenFolderIsMadePrivate(t *testing.T) {
	dir := newDir(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	finished(t, start(t, counting(dir, "exit 0")))
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, %v", st.Mode().Perm(), err)
	}
}

func TestHandle_EndsThatAreNoExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Spec)
		signal string
		code   int
		fails  bool
	}{
		"killed":           {change: func(s *Spec) { s.Argv[2] += "kill -9 $$" }, signal: "SIGKILL"},
		"real-time signal": {change: func(s *Spec) { s.Argv[2] += "kill -40 $$" }, signal: "signal 40"},
		"no such program":  {change: func(s *Spec) { s.Argv = []string{"/no/such/program"} }, code: 127, fails: true},
		"not on the path":  {change: func(s *Spec) { s.Argv, s.Env = []string{"sh"}, []string{"PATH=/no/such"} }, code: 127, fails: true},
		"no path":          {change: func(s *Spec) { s.Argv, s.Env = []string{"sh"}, nil }, code: 127, fails: true},
		"no such folder":   {change: func(s *Spec) { s.Cwd = "/no/such/folder" }, code: 127, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := counting(newDir(t), "")
			c.change(&s)
			r := finished(t, start(t, s))
			if r.Signal != c.signal || (r.Failure != "") != c.fails || c.signal == "" && !exited(r, c.code) || c.signal != "" && r.ExitCode != nil {
				t.Errorf("receipt %v", r)
			}
			if n := runs(t, s.Dir); (n == 0) != c.fails {
				t.Errorf("ran %d times", n)
			}
		})
	}
}

func TestStart_RefusesWhatMakesNoSense(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"no folder":    func(s *Spec) { s.Dir = "" },
		"no program":   func(s *Spec) { s.Argv = nil },
		"zero byte":    func(s *Spec) { s.Argv[2] = "a\x00b" },
		"zero in env":  func(s *Spec) { s.Env = []string{"A=\x00"} },
		"a file there": func(s *Spec) { s.Dir = os.Args[0] + "/x" },
	} {
		t.Run(name, func(t *testing.T) {
			s := counting(newDir(t), "exit 0")
			change(&s)
			if h, err := Start(s); err == nil {
				cleanup(t, h)
				t.Error("it started")
			}
		})
	}
}

// The environment is exactly what was given, and its values are in no file of the folder.
func TestStart_EnvironmentIsCompleteAndNotStored(t *testing.T) {
	t.Setenv("PROC_TEST_OURS", "ours")
	s := counting(newDir(t), "")
	s.Argv = []string{"sh", "-c", "env; echo > up; while [ ! -e go ]; do sleep 0.01; done"}
	s.Env = []string{"PATH=" + os.Getenv("PATH"), "PWD=" + s.Dir, "TOKEN=very secret", "odd-name.x=1", "LINES2=a\"b"}
	h := start(t, s)
	eventually(t, "the command is up", func() bool { _, err := os.Stat(filepath.Join(s.Dir, "up")); return err == nil })
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if b, err := os.ReadFile(filepath.Join(s.Dir, e.Name())); err != nil || e.Name() != "out" && strings.Contains(string(b), "very secret") {
			t.Errorf("%s holds the value of a variable, %v", e.Name(), err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	finished(t, h)
	v, err := h.Output(10000, false)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(v.Head)), "\n")
	got = slices.DeleteFunc(got, func(kv string) bool { return strings.HasPrefix(kv, "_=") || strings.HasPrefix(kv, "OLDPWD") }) // the shell's own
	want := slices.Clone(s.Env)
	want = slices.DeleteFunc(want, func(kv string) bool { return strings.HasPrefix(kv, "odd") && !slices.Contains(got, kv) }) // not every shell passes it on
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q", got, want)
	}
}

// I5: also while the first still runs, after its end, and when many try at once.
func TestStart_AFolderIsUsedOnce(t *testing.T) {
	dir := newDir(t)
	var wg sync.WaitGroup
	results := make(chan error, 8)
	for range cap(results) {
		wg.Go(func() {
			_, err := Start(counting(dir, "while [ ! -e go ]; do sleep 0.01; done"))
			results <- err
		})
	}
	wg.Wait()
	cleanup(t, Open(dir))
	close(results)
	started := 0
	for err := range results {
		if err == nil {
			started++
		} else if !errors.Is(err, ErrUsed) {
			t.Errorf("refused with %v", err)
		}
	}
	if started != 1 {
		t.Errorf("%d started", started)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	finished(t, Open(dir))
	if _, err := Start(counting(dir, "exit 0")); !errors.Is(err, ErrUsed) {
		t.Errorf("after its end: %v", err)
	}
	if n := runs(t, dir); n != 1 {
		t.Errorf("ran %d times", n)
	}
}

// I4: whoever looks at a folder all the time neither hinders a start nor sees what is not so.
func TestHandle_LookingDoesNotDisturb(t *testing.T) {
	for range 10 {
		dir := newDir(t)
		h := Open(dir)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				last := NotStarted
				for order := []Verdict{NotStarted, Live, Done}; ; {
					s, err := h.State()
					if err != nil || slices.Index(order, s.Verdict) < slices.Index(order, last) {
						t.Errorf("after %s: %s, %v", last, s.Verdict, err)
						return
					}
					last = s.Verdict
					select {
					case <-stop:
						return
					case <-time.After(100 * time.Microsecond): // so that the start gets a turn on a busy machine
					}
				}
			})
		}
		r := finished(t, start(t, counting(dir, "exit 4")))
		close(stop)
		wg.Wait()
		if !exited(r, 4) || runs(t, dir) != 1 {
			t.Errorf("receipt %v, ran %d times", r, runs(t, dir))
		}
	}
}

func TestHandle_WaitEndsWithItsContext(t *testing.T) {
	h := start(t, counting(newDir(t), "sleep 60"))
	running(t, h)
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := h.Wait(ctx); !errors.Is(err, why) {
		t.Errorf("waiting ended with %v", err)
	}
	if _, err := h.Stop(ctx, CauseUser); !errors.Is(err, why) {
		t.Errorf("stopping ended with %v", err)
	}
}

func TestHandle_RemoveOnlyWhatDoesNotRun(t *testing.T) {
	dir := newDir(t)
	h := start(t, counting(dir, "sleep 60"))
	if err := h.Remove(); !errors.Is(err, ErrRunning) {
		t.Errorf("removing a live one: %v", err)
	}
	if _, err := h.Stop(within(t), CauseUser); err != nil {
		t.Fatal(err)
	}
	if err := h.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if s := verdict(t, h); s.Verdict != NotStarted {
		t.Errorf("without a folder: %s", s.Verdict)
	}
	if _, err := h.Wait(within(t)); !errors.Is(err, ErrNoReceipt) {
		t.Errorf("waiting without a folder: %v", err)
	}
}

func BenchmarkStartToReceipt(b *testing.B) {
	for b.Loop() {
		dir := filepath.Join(b.TempDir(), "call")
		h, err := Start(Spec{Dir: dir, Argv: []string{"/bin/true"}, Cwd: "/", Env: []string{"PATH=" + os.Getenv("PATH")}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := h.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPlainExec is the same command without a supervisor, to compare with.
func BenchmarkPlainExec(b *testing.B) {
	for b.Loop() {
		cmd := exec.Command("/bin/true")
		cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH")}
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
	}
}
