//go:build linux

package proc

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/fault"
	"holdfast/internal/ident"
)

var (
	serverPoints     = []string{"proc.claimed", "proc.spec", "proc.launched"}
	supervisorPoints = []string{"supervisor.claimed", "supervisor.starting", "supervisor.started", "supervisor.running", "supervisor.exited", "supervisor.receipt"}
)

func TestPoints_AreListed(t *testing.T) {
	for _, p := range slices.Concat(serverPoints, supervisorPoints) {
		if !slices.Contains(fault.Points, p) {
			t.Errorf("%s is not listed", p)
		}
	}
}

// killed runs a launcher to its death at a point.
func killed(t *testing.T, dir, command, point string) {
	t.Helper()
	if err := launcher(t, dir, command, "HOLDFAST_CRASH="+point).Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the launcher was not killed at %s: %v", point, err)
	}
}

// The launcher dies by SIGKILL at each of its points. Nothing runs twice, and the verdict is true.
func TestCrash_Launcher(t *testing.T) {
	for _, point := range serverPoints {
		t.Run(point, func(t *testing.T) {
			if point == "proc.launched" {
				for range 12 { // what has been launched must not need its launcher, not even in its first moment
					dir := newDir(t)
					killed(t, dir, "exit 3", point)
					if r := finished(t, Open(dir)); !exited(r, 3) || runs(t, dir) != 1 {
						t.Errorf("receipt %v, ran %d times", r, runs(t, dir))
					}
				}
				return
			}
			dir := newDir(t)
			killed(t, dir, "exit 3", point)
			h := Open(dir)
			if _, err := h.Wait(within(t)); !errors.Is(err, ErrNoReceipt) {
				t.Errorf("waiting says %v", err)
			}
			if s := verdict(t, h); s.Verdict != NotStarted || runs(t, dir) != 0 {
				t.Errorf("verdict %s, ran %d times", s.Verdict, runs(t, dir))
			}
		})
	}
}

// The launcher dies by SIGKILL at any time.
func TestCrash_LauncherAtRandomTimes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	count := map[Verdict]int{}
	for range 40 {
		dir := newDir(t)
		cmd := launcher(t, dir, "exit 3")
		eventually(t, "the folder is made", func() bool { _, err := os.Stat(dir); return err == nil })
		<-time.After(time.Duration(random.IntN(12_000)) * time.Microsecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
		h := Open(dir)
		r, err := h.Wait(within(t))
		s := verdict(t, h)
		count[s.Verdict]++
		switch n := runs(t, dir); {
		case err == nil && s.Verdict == Done && exited(r, 3) && n == 1:
		case errors.Is(err, ErrNoReceipt) && s.Verdict == NotStarted && n == 0:
		default:
			t.Errorf("verdict %s, receipt %v, %v, ran %d times", s.Verdict, r, err, n)
		}
	}
	t.Logf("verdicts %v", count)
}

// The supervisor dies by SIGKILL at each of its points.
func TestCrash_Supervisor(t *testing.T) {
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
			log := filepath.Join(t.TempDir(), "log")
			t.Setenv("HOLDFAST_SUPERVISOR_CRASH_LOG", log)
			dir := newDir(t)
			h := start(t, counting(dir, "exit 0"))
			s := until(t, h, want.verdict)
			if b, err := os.ReadFile(log); err != nil || !strings.HasPrefix(string(b), point+" ") {
				t.Errorf("the point did not fire: %q, %v", b, err)
			}
			if want.verdict != Done {
				if _, err := h.Wait(within(t)); !errors.Is(err, ErrNoReceipt) {
					t.Errorf("waiting says %v", err)
				}
			}
			// A command whose supervisor died right after its start may still be about to count.
			eventually(t, "the command ran as often as it should", func() bool { return runs(t, dir) >= want.runs })
			if _, err := Start(counting(dir, "exit 0")); !errors.Is(err, ErrUsed) {
				t.Errorf("%s: the folder can be used again: %v", s.Verdict, err)
			}
			if n := runs(t, dir); n != want.runs {
				t.Errorf("%s: the command ran %d times, want %d", s.Verdict, n, want.runs)
			}
		})
	}
}

// orphan is a command whose supervisor was killed.
func orphan(t *testing.T, command string) (*Handle, State) {
	t.Helper()
	h := start(t, counting(newDir(t), command))
	s := running(t, h)
	if err := ident.Signal(s.Supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, h, Orphaned)
	return h, s
}

func TestHandle_OrphanedCommandIsSeenAndStopped(t *testing.T) {
	h, s := orphan(t, "sh -c 'trap \"\" TERM; echo $$ > stubborn; while :; do sleep 1; done' & setsid sh -c 'echo $$ > escaped; exec sleep 60' & wait")
	tree := []ident.Process{s.Command, identify(t, filepath.Join(h.dir, "stubborn")), identify(t, filepath.Join(h.dir, "escaped"))}
	if err := h.Remove(); !errors.Is(err, ErrRunning) {
		t.Errorf("removing an orphan: %v", err)
	}
	if _, err := h.Stop(within(t), CauseUser); !errors.Is(err, ErrNoReceipt) {
		t.Errorf("stopping an orphan says %v", err)
	}
	for i, p := range tree {
		if p.Alive() {
			t.Errorf("process %d of the tree lives on", i)
		}
	}
	if s := verdict(t, h); s.Verdict != Lost {
		t.Errorf("verdict %s", s.Verdict)
	}
}

func TestHandle_OrphanThatEndsIsLost(t *testing.T) {
	h, _ := orphan(t, "while [ ! -e go ]; do sleep 0.01; done; echo late")
	if err := os.WriteFile(path(h.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Wait(within(t)); !errors.Is(err, ErrNoReceipt) {
		t.Errorf("waiting for an orphan says %v", err)
	}
	if v, err := h.Output(100, false); err != nil || string(v.Head) != "late\n" || verdict(t, h).Verdict != Lost {
		t.Errorf("output %q, %v, verdict %s", v.Head, err, verdict(t, h).Verdict)
	}
}

func TestHandle_ReusedPIDAndReboot(t *testing.T) {
	h, s := orphan(t, "sleep 60")
	t.Cleanup(func() { _ = ident.Signal(s.Command, syscall.SIGKILL) }) // Stop will not find it any more
	write := func(name string, v any) {
		t.Helper()
		if err := put(h.dir, name, v, false); err != nil {
			t.Fatal(err)
		}
	}
	other := s.Command
	other.Start++
	write("running", other)
	if got := verdict(t, h).Verdict; got != Lost {
		t.Errorf("a reused PID passes for the command: %s", got)
	}
	other = s.Command
	other.Space = "pid:[1]"
	write("running", other)
	if got, err := h.State(); !errors.Is(err, ident.ErrOtherSpace) {
		t.Errorf("from another container: %s, %v", got.Verdict, err)
	}
	write("running", other)
	var r record
	if _, err := take(h.dir, "spec", &r); err != nil {
		t.Fatal(err)
	}
	r.Boot = "another boot"
	write("spec", r)
	if got := verdict(t, h).Verdict; got != Rebooted {
		t.Errorf("after a reboot: %s", got)
	}
	// The identities were never synced: a power cut may leave them empty, or take them away.
	for _, name := range []string{"running", "starting"} {
		if err := os.Truncate(path(h.dir, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := verdict(t, h).Verdict; got != Rebooted {
		t.Errorf("after a power cut with empty files: %s", got)
	}
	for _, name := range []string{"running", "starting"} {
		if err := os.Remove(path(h.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := verdict(t, h).Verdict; got != Rebooted {
		t.Errorf("after a power cut without files: %s", got)
	}
	code := 5
	write("exit", Result{ExitCode: &code})
	if got := verdict(t, h); got.Verdict != Done || !exited(got.Result, 5) {
		t.Errorf("a receipt from before a reboot: %+v", got)
	}
}

// Ending the launcher's process tree, as editors do, does not reach the command.
func TestStart_SurvivesTheLaunchersTree(t *testing.T) {
	dir := newDir(t)
	cmd := launcher(t, dir, "while [ ! -e go ]; do sleep 0.01; done; exit 5")
	h := Open(dir)
	s := running(t, h)
	self, err := ident.Start(cmd.Process.Pid)
	if err != nil {
		t.Fatalf("the launcher ended by itself: %v", err)
	}
	tree, err := ident.Descendants(self.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range append(tree, self) {
		if p == s.Supervisor || p == s.Command {
			t.Errorf("process %d is still below the launcher", p.PID)
		}
		if err := ident.Signal(p, syscall.SIGKILL); err != nil && !errors.Is(err, ident.ErrGone) {
			t.Error(err)
		}
	}
	_ = cmd.Wait() // killed
	for _, p := range []ident.Process{s.Supervisor, s.Command} {
		if sid, err := getsid(p.PID); err != nil || sid == self.PID || sid != s.Supervisor.PID {
			t.Errorf("process %d is in session %d, %v", p.PID, sid, err)
		}
	}
	if got := verdict(t, h).Verdict; got != Live {
		t.Fatalf("the command ended with its launcher: %s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := finished(t, h); !exited(r, 5) || runs(t, dir) != 1 {
		t.Errorf("receipt %v, ran %d times", r, runs(t, dir))
	}
}

// An upgrade that replaces the binary under a running server changes nothing for its commands.
func TestStart_BinaryIsGone(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "old")
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, b, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, log, resume := newDir(t), filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "resume")
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), "PROC_TEST_LAUNCH="+dir, "PROC_TEST_COMMAND=exit 6",
		"HOLDFAST_CRASH=proc.spec/pause", "HOLDFAST_CRASH_LOG="+log, "HOLDFAST_CRASH_RESUME="+resume)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	paused(t, log)
	if err := os.Remove(binary); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(resume, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := finished(t, Open(dir)); !exited(r, 6) {
		t.Errorf("receipt %v", r)
	}
}

// paused waits until a process pauses at a point.
func paused(t *testing.T, log string) {
	t.Helper()
	eventually(t, "the point is reached", func() bool {
		b, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(b), " pause ")
	})
}

// A supervisor that was not given the folder's lock runs nothing, whatever else it was given.
func TestMain_WithoutTheLockRunsNothing(t *testing.T) {
	dir := newDir(t)
	killed(t, dir, "exit 0", "proc.spec")
	other, err := os.Create(filepath.Join(t.TempDir(), "other"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	env, err := unnamed(dir, handed{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = env.Close() }()
	for name, files := range map[string][]*os.File{"by hand": nil, "with another lock": {other, env}} {
		cmd := exec.Command(os.Args[0], hidden, dir)
		cmd.Env, cmd.ExtraFiles = []string{}, files
		if out, err := cmd.CombinedOutput(); err == nil || len(out) != 0 {
			t.Errorf("%s: it says %q, %v", name, out, err)
		}
		if s := verdict(t, Open(dir)); s.Verdict != NotStarted || runs(t, dir) != 0 {
			t.Errorf("%s: verdict %s, ran %d times", name, s.Verdict, runs(t, dir))
		}
	}
}

func getsid(pid int) (int, error) {
	sid, _, errno := syscall.Syscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(sid), nil
}
