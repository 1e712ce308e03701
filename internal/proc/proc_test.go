package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/ident"
)

// The test binary is also launcher and supervisor: what it is to be comes from its arguments and environment.
func TestMain(m *testing.M) {
	if name := os.Getenv("HOLDFAST_CRASH"); name != "" {
		point = func(n string) {
			if n == name {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
	}
	if Main(os.Args) {
		os.Exit(0)
	}
	if dir := os.Getenv("PROC_TEST_LAUNCH"); dir != "" {
		if _, err := Start(counting(dir, os.Getenv("PROC_TEST_COMMAND"))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {} // killed by the test
	}
	os.Exit(m.Run())
}

const limit = 30 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// counting runs a command that first adds a line to the counter beside its folder.
func counting(dir, command string) Spec {
	return Spec{Dir: dir, Argv: []string{"/bin/sh", "-c", "echo x >> ../counter; " + command}, Cwd: dir, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

func newDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "call")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

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
	t.Cleanup(func() { _, _ = h.Stop(context.WithoutCancel(t.Context()), "user") })
	return h
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
func until(t *testing.T, h *Handle, want Verdict) State {
	t.Helper()
	for end := time.Now().Add(limit); ; {
		s := verdict(t, h)
		if s.Verdict == want {
			return s
		}
		if time.Now().After(end) {
			t.Fatalf("verdict %s, want %s", s.Verdict, want)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func TestHandle_ExitCodeOutputAndTimes(t *testing.T) {
	dir := newDir(t)
	h := start(t, counting(dir, "echo out; echo err >&2; exit 7"))
	r, err := h.Wait(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if r.ExitCode == nil || *r.ExitCode != 7 || r.Signal != "" || r.Stopped != "" {
		t.Errorf("receipt %+v", r)
	}
	if r.Ended.Before(r.Started) || r.OutputBytes != 8 {
		t.Errorf("times or size: %+v", r)
	}
	v, err := h.Output(1000, true)
	if err != nil || string(v.Head) != "out\nerr\n" || v.Digest == "" {
		t.Errorf("output %+v, %v", v, err)
	}
	if s := verdict(t, Open(dir)); s.Verdict != Done || *s.Result.ExitCode != 7 {
		t.Errorf("another process sees %+v", s)
	}
	for name, mode := range map[string]os.FileMode{".": 0o700, "spec": 0o600, "out": 0o600, "exit": 0o600} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, %v", name, st.Mode().Perm(), err)
		}
	}
}

func TestHandle_SignalAndMissingProgram(t *testing.T) {
	h := start(t, counting(newDir(t), "kill -9 $$"))
	if r, err := h.Wait(within(t)); err != nil || r.ExitCode != nil || r.Signal != "SIGKILL" {
		t.Errorf("receipt %+v, %v", r, err)
	}
	s := counting(newDir(t), "")
	s.Argv = []string{"/no/such/program"}
	if r, err := start(t, s).Wait(within(t)); err != nil || r.ExitCode == nil || *r.ExitCode != 127 || r.Failure == "" {
		t.Errorf("receipt %+v, %v", r, err)
	}
}

// The launcher dies by SIGKILL at each of its points. Nothing runs twice, and the verdict is true.
func TestStart_LauncherKilled(t *testing.T) {
	for point, want := range map[string]Verdict{"proc.spec": NotStarted, "proc.claimed": NotStarted, "proc.launched": Done} {
		t.Run(point, func(t *testing.T) {
			dir := newDir(t)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "PROC_TEST_LAUNCH="+dir, "PROC_TEST_COMMAND=exit 3", "HOLDFAST_CRASH="+point)
			if err := cmd.Run(); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Fatalf("the launcher was not killed at the point: %v", err)
			}
			s := until(t, Open(dir), want)
			count := 0
			if want == Done {
				count = 1
				if *s.Result.ExitCode != 3 {
					t.Errorf("exit code %d", *s.Result.ExitCode)
				}
			}
			if n := runs(t, dir); n != count {
				t.Errorf("the command ran %d times", n)
			}
		})
	}
}

// The supervisor dies by SIGKILL at each of its points.
func TestSupervisor_Killed(t *testing.T) {
	for point, want := range map[string]struct {
		verdict Verdict
		runs    int
	}{
		"supervisor.claimed":  {NotStarted, 0},
		"supervisor.starting": {MaybeStarted, 0},
		"supervisor.started":  {MaybeStarted, 1},
		"supervisor.running":  {Lost, 1},
		"supervisor.exited":   {Lost, 1},
		"supervisor.receipt":  {Done, 1},
	} {
		t.Run(point, func(t *testing.T) {
			t.Setenv("HOLDFAST_SUPERVISOR_CRASH", point)
			dir := newDir(t)
			h := start(t, counting(dir, "exit 0"))
			s := until(t, h, want.verdict)
			if want.verdict != Done {
				if _, err := h.Wait(within(t)); !errors.Is(err, ErrNoReceipt) {
					t.Errorf("waiting says %v", err)
				}
			}
			for end := time.Now().Add(limit); runs(t, dir) < want.runs && time.Now().Before(end); {
				<-time.After(2 * time.Millisecond) // a command whose supervisor died right after its start
			}
			if n := runs(t, dir); n != want.runs {
				t.Errorf("%s: the command ran %d times, want %d", s.Verdict, n, want.runs)
			}
		})
	}
}

func TestHandle_OrphanedCommandIsSeenAndStopped(t *testing.T) {
	h := start(t, counting(newDir(t), "sleep 60"))
	s := until(t, h, Live)
	for s.Command.PID == 0 {
		s = verdict(t, h)
	}
	if err := ident.Signal(s.Supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, h, Orphaned)
	if _, err := h.Stop(within(t), "user"); !errors.Is(err, ErrNoReceipt) {
		t.Errorf("stopping an orphan says %v", err)
	}
	if s.Command.Alive() {
		t.Error("the command lives on")
	}
}

func TestHandle_ReusedPIDAndReboot(t *testing.T) {
	h := start(t, counting(newDir(t), "sleep 60"))
	s := until(t, h, Live)
	for s.Command.PID == 0 {
		s = verdict(t, h)
	}
	if err := ident.Signal(s.Supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, h, Orphaned)
	t.Cleanup(func() { _ = ident.Signal(s.Command, syscall.SIGKILL) })
	other := s.Command
	other.Start++
	if err := put(h.dir, "running", other, false); err != nil {
		t.Fatal(err)
	}
	if got := verdict(t, h).Verdict; got != Lost {
		t.Errorf("a reused PID passes for the command: %s", got)
	}
	var spec Spec
	if _, err := take(h.dir, "spec", &spec); err != nil {
		t.Fatal(err)
	}
	spec.Boot = "another boot"
	if err := put(h.dir, "spec", spec, false); err != nil {
		t.Fatal(err)
	}
	if got := verdict(t, h).Verdict; got != Rebooted {
		t.Errorf("after a reboot: %s", got)
	}
}

func TestHandle_StopEndsTheWholeTree(t *testing.T) {
	dir := newDir(t)
	// One child in the group that ignores TERM, one in a session of its own.
	h := start(t, counting(dir, "sh -c 'trap \"\" TERM; echo $$ > stubborn; while :; do sleep 1; done' & setsid sh -c 'echo $$ > escaped; exec sleep 60' & wait"))
	var pids []ident.Process
	for _, name := range []string{"stubborn", "escaped"} {
		pids = append(pids, identify(t, filepath.Join(dir, name)))
	}
	r, err := h.Stop(within(t), "user")
	if err != nil || r.Stopped != "user" {
		t.Errorf("receipt %+v, %v", r, err)
	}
	for _, p := range pids {
		if p.Alive() {
			t.Errorf("process %d survived the stop", p.PID)
		}
	}
}

// identify waits for a PID in a file.
func identify(t *testing.T, file string) ident.Process {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		b, err := os.ReadFile(file)
		var pid int
		if err == nil && strings.HasSuffix(string(b), "\n") {
			if _, err := fmt.Sscan(string(b), &pid); err != nil {
				t.Fatal(err)
			}
			p, err := ident.Start(pid)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
	}
	t.Fatalf("%s did not appear", file)
	return ident.Process{}
}

func TestHandle_GrandchildWithTheOutputDoesNotHang(t *testing.T) {
	dir := newDir(t)
	h := start(t, counting(dir, "sh -c 'echo $$ > left; exec sleep 60' & while [ ! -s left ]; do :; done; echo done"))
	r, err := h.Wait(within(t))
	left := identify(t, filepath.Join(dir, "left"))
	t.Cleanup(func() { _ = ident.Signal(left, syscall.SIGKILL) })
	if err != nil || r.ExitCode == nil || *r.ExitCode != 0 || r.Left != 1 {
		t.Errorf("receipt %+v, %v", r, err)
	}
	if !left.Alive() {
		t.Error("the process in the background was ended")
	}
}

func TestHandle_DeadlineAndOutputCap(t *testing.T) {
	s := counting(newDir(t), "sleep 60")
	s.Timeout = 100 * time.Millisecond
	if r, err := start(t, s).Wait(within(t)); err != nil || r.Stopped != "deadline" {
		t.Errorf("receipt %+v, %v", r, err)
	}
	s = counting(newDir(t), "yes")
	s.OutputCap = 100_000
	if r, err := start(t, s).Wait(within(t)); err != nil || r.Stopped != "output_cap" || r.OutputBytes < s.OutputCap {
		t.Errorf("receipt %+v, %v", r, err)
	}
}

func TestHandle_OutputKeepsBothEndsWhole(t *testing.T) {
	h := start(t, counting(newDir(t), `i=0; while [ $i -lt 2000 ]; do printf 'é€😀'; i=$((i+1)); done`))
	if _, err := h.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	for limit := 100; limit < 120; limit++ {
		v, err := h.Output(limit, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(v.Head) + string(v.Tail); strings.ContainsRune(got, '\uFFFD') || strings.ToValidUTF8(got, "!") != got {
			t.Fatalf("limit %d cuts inside a character: %q", limit, got)
		}
		if v.Cut+int64(len(v.Head)+len(v.Tail)) != v.Total || v.Total != 2000*9 {
			t.Fatalf("limit %d: sizes do not add up: %+v", limit, v)
		}
	}
}

// Ending the launcher's process tree, as editors do, does not reach the command.
func TestStart_SurvivesTheLaunchersTree(t *testing.T) {
	dir := newDir(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PROC_TEST_LAUNCH="+dir, "PROC_TEST_COMMAND=while [ ! -e go ]; do sleep 0.01; done; exit 5")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := Open(dir)
	s := until(t, h, Live)
	for s.Command.PID == 0 {
		s = verdict(t, h)
	}
	tree := append(below(cmd.Process.Pid), cmd.Process.Pid)
	for _, pid := range tree {
		if pid == s.Supervisor.PID || pid == s.Command.PID {
			t.Errorf("process %d is still below the launcher", pid)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	_ = cmd.Wait() // killed
	if got := verdict(t, h).Verdict; got != Live {
		t.Fatalf("the command ended with its launcher: %s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := h.Wait(within(t)); err != nil || *r.ExitCode != 5 || runs(t, dir) != 1 {
		t.Errorf("receipt %+v, %v, ran %d times", r, err, runs(t, dir))
	}
}

// below lists the descendants of a process by parent.
func below(pid int) []int {
	var all []int
	for _, c := range children(pid) {
		all = append(append(all, c), below(c)...)
	}
	return all
}

func TestStart_TwiceInOneFolderIsRefused(t *testing.T) {
	dir := newDir(t)
	start(t, counting(dir, "sleep 60"))
	if _, err := Start(counting(dir, "exit 0")); err == nil {
		t.Error("a second command took a folder in use")
	}
	if n := runs(t, dir); n > 1 {
		t.Errorf("ran %d times", n)
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
