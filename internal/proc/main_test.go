//go:build linux

package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/ident"
)

// The test binary is also launcher and supervisor: what it is to be comes from its arguments and environment.
func TestMain(m *testing.M) {
	if spec := os.Getenv("HOLDFAST_CRASH"); spec != "" { // a faultpoints build has taken it away and acts itself
		point = crash(spec, os.Getenv("HOLDFAST_CRASH_LOG"), os.Getenv("HOLDFAST_CRASH_RESUME"))
	}
	if Main(os.Args) {
		os.Exit(0)
	}
	if dir := os.Getenv("PROC_TEST_LAUNCH"); dir != "" {
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM) // so that waiting below is no deadlock
		if _, err := Start(counting(dir, os.Getenv("PROC_TEST_COMMAND"))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		<-term
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// crash does what package fault does in a faultpoints build, for NAME and NAME/pause.
func crash(spec, log, resume string) func(string) {
	name, action, _ := strings.Cut(spec, "/")
	return func(n string) {
		if n != name {
			return
		}
		if log != "" {
			if err := os.WriteFile(log, fmt.Appendf(nil, "%s %s %d\n", n, action, os.Getpid()), 0o600); err != nil {
				panic(err)
			}
		}
		if action == "pause" {
			for end := time.Now().Add(limit); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
				if _, err := os.Stat(resume); err == nil {
					return
				}
			}
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

const limit = 60 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// eventually polls until a fact holds.
func eventually(t *testing.T, what string, fact func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !fact(); <-time.After(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// counting runs a command that first adds a line to the counter beside its folder.
func counting(dir, command string) Spec {
	return Spec{Dir: dir, Argv: []string{"/bin/sh", "-c", "echo x >> ../counter; " + command}, Cwd: dir, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

func newDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "call")
}

// runs is how often a command of the folder has begun.
func runs(t *testing.T, dir string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "..", "counter"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}

func start(t *testing.T, s Spec) *Handle {
	t.Helper()
	h, err := Start(s)
	if err != nil {
		t.Fatal(err)
	}
	cleanup(t, h)
	return h
}

// cleanup stops a command before its folder is removed.
func cleanup(t *testing.T, h *Handle) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if _, err := h.Stop(ctx, CauseUser); err != nil && !errors.Is(err, ErrNoReceipt) {
			t.Errorf("stop at the end of the test: %v", err)
		}
	})
}

// launcher starts a process that starts a command.
func launcher(t *testing.T, dir, command string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "PROC_TEST_LAUNCH="+dir, "PROC_TEST_COMMAND="+command), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cleanup(t, Open(dir))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // a second time where the test has waited
	})
	return cmd
}

func verdict(t *testing.T, h *Handle) State {
	t.Helper()
	s, err := h.State()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// until waits for a verdict.
func until(t *testing.T, h *Handle, want Verdict) (s State) {
	t.Helper()
	eventually(t, "verdict "+string(want), func() bool {
		s = verdict(t, h)
		return s.Verdict == want
	})
	return s
}

// running waits until the command and its supervisor are known.
func running(t *testing.T, h *Handle) (s State) {
	t.Helper()
	eventually(t, "the command runs", func() bool {
		s = verdict(t, h)
		return s.Verdict == Live && s.Command.PID != 0
	})
	return s
}

func finished(t *testing.T, h *Handle) Result {
	t.Helper()
	r, err := h.Wait(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// identify waits for a PID in a file.
func identify(t *testing.T, file string) (p ident.Process) {
	t.Helper()
	eventually(t, file, func() bool {
		b, err := os.ReadFile(file)
		var pid int
		if err != nil || !bytes.HasSuffix(b, []byte("\n")) {
			return false
		}
		if _, err := fmt.Sscan(string(b), &pid); err != nil {
			t.Fatal(err)
		}
		if p, err = ident.Start(pid); err != nil {
			t.Fatal(err)
		}
		return true
	})
	return p
}

func exited(r Result, code int) bool { return r.ExitCode != nil && *r.ExitCode == code }
