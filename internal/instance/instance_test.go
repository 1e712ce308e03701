package instance

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Tests that need another process start this binary again; the role says what it does there.
const roleVariable = "HOLDFAST_INSTANCE_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := play(role, os.Args[1], os.Args[2]); err != nil {
		fmt.Println("ERROR", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func play(role, home, id string) error {
	if role == "child" {
		fmt.Println("child", os.Getpid())
		hear()
		return nil
	}
	i, err := Start(Options{Home: home, ID: id, Kind: "test"})
	if err != nil {
		return err
	}
	switch role {
	case "live":
		fmt.Println("alive")
		hear()
	case "parent": // starts a child that outlives it
		cmd := exec.Command(os.Args[0], home, id)
		cmd.Env = append(os.Environ(), roleVariable+"=child")
		cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
		if err := cmd.Start(); err != nil {
			return err
		}
		hear()
	case "bell":
		fmt.Println("alive")
		<-i.Bell()
		fmt.Println("rung")
	}
	return i.Close()
}

func hear() { _, _ = bufio.NewReader(os.Stdin).ReadString('\n') }

type other struct {
	*exec.Cmd
	in  *os.File
	out *bufio.Reader
}

func start(t *testing.T, role, home, id string) *other {
	t.Helper()
	o := &other{Cmd: exec.Command(os.Args[0], home, id)}
	o.Env = append(os.Environ(), roleVariable+"="+role)
	o.Stderr = os.Stderr
	r, w, err := os.Pipe() // kept open by us, so that a child of a killed process lives on
	must(t, err)
	o.Stdin, o.in = r, w
	out, err := o.StdoutPipe()
	must(t, err)
	o.out = bufio.NewReader(out)
	must(t, o.Start())
	_ = r.Close()
	t.Cleanup(func() {
		_ = w.Close()
		_ = o.Process.Kill()
		_ = o.Wait()
	})
	return o
}

func (o *other) line(t *testing.T) string {
	t.Helper()
	s, err := o.out.ReadString('\n')
	must(t, err)
	return strings.TrimSpace(s)
}

func (o *other) kill() {
	_ = o.Process.Kill()
	_ = o.Wait()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func begin(t testing.TB, home, id string) *Instance {
	t.Helper()
	i, err := Start(Options{Home: home, ID: id, Kind: "acp"})
	must(t, err)
	t.Cleanup(func() { _ = i.Close() })
	return i
}

func wantState(t *testing.T, home, id string, want State) *Claim {
	t.Helper()
	got, claim, err := Probe(home, id)
	must(t, err)
	if got != want || (claim != nil) != (want == Dead) {
		t.Fatalf("instance %s is %s (claim %v), want %s", id, got, claim, want)
	}
	if claim != nil {
		t.Cleanup(claim.Release)
	}
	return claim
}

func wantMissing(t *testing.T, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if _, err := os.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", p, err)
		}
	}
}

func TestInstance_LivesAndLeaves(t *testing.T) {
	home := t.TempDir()
	i := begin(t, home, "one")
	if i.ID() != "one" || i.Kind() != "acp" {
		t.Errorf("it is %s, a %s", i.ID(), i.Kind())
	}
	wantState(t, home, "one", Alive) // a probe from the same process is no exception
	wantState(t, home, "one", Alive) // and closing the probe's descriptor has dropped nothing
	for _, name := range []string{"one.lock", "one.sock"} {
		if info, err := os.Lstat(filepath.Join(home, "run", name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	must(t, errors.Join(i.Close(), i.Close()))
	wantMissing(t, filepath.Join(home, "run", "one.lock"), filepath.Join(home, "run", "one.sock"))
	wantState(t, home, "one", Missing)
	i.Poke("one", "two") // after the end it still hurts nobody
}

func TestProbe_KilledIsDead(t *testing.T) {
	home := t.TempDir()
	o := start(t, "live", home, "one")
	o.line(t)
	wantState(t, home, "one", Alive)
	o.kill()
	claim := wantState(t, home, "one", Dead)
	wantState(t, home, "one", Alive) // taken: at most one acts on a death
	claim.Release()
	claim.Release()
	claim = wantState(t, home, "one", Dead)
	must(t, errors.Join(claim.Remove(), claim.Remove()))
	wantMissing(t, filepath.Join(home, "run", "one.lock"), filepath.Join(home, "run", "one.sock"))
	wantState(t, home, "one", Missing)
}

func TestProbe_SuspendedIsAlive(t *testing.T) {
	home := t.TempDir()
	i := begin(t, home, "two")
	o := start(t, "live", home, "one")
	o.line(t)
	must(t, o.Process.Signal(syscall.SIGSTOP))
	wantState(t, home, "one", Alive)
	for range 2000 { // far more than its queue holds: ringing at it must not block
		i.Poke("one")
	}
	must(t, o.Process.Signal(syscall.SIGCONT))
	wantState(t, home, "one", Alive)
}

// I3
func TestProbe_ChildOfDeadDoesNotHoldItsLock(t *testing.T) {
	home := t.TempDir()
	o := start(t, "parent", home, "one")
	var pid int
	if _, err := fmt.Sscanf(o.line(t), "child %d", &pid); err != nil {
		t.Fatal(err)
	}
	must(t, o.Process.Kill())
	_, _ = o.Process.Wait()
	must(t, syscall.Kill(pid, 0)) // the child lives
	wantState(t, home, "one", Dead)
}

// I2
func TestProbe_DeletedFileProvesNothing(t *testing.T) {
	home := t.TempDir()
	i := begin(t, home, "one")
	path := filepath.Join(home, "run", "one.lock")
	must(t, os.Remove(path))
	wantState(t, home, "one", Missing)
	must(t, os.WriteFile(path, nil, 0o600)) // somebody else's now
	must(t, i.Close())
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("a file that was not ours is gone: %v", err)
	}
}

// I1: while instances come and go, a probe never finds a dead one, and nobody fails to start.
func TestStart_ProbesDoNotDisturb(t *testing.T) {
	home := t.TempDir()
	watcher := begin(t, home, "watcher")
	var met atomic.Int64 // probes that found a live one
	var probes sync.WaitGroup
	stop := make(chan struct{})
	probes.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				met.Add(probeAll(t, home, watcher))
			}
		}
	})
	starts := 0
	for deadline := time.Now().Add(20 * time.Second); (starts < 300 || met.Load() < 50) && time.Now().Before(deadline); starts++ {
		i, err := Start(Options{Home: home, ID: fmt.Sprint("i", starts)})
		must(t, err)
		must(t, i.Close())
	}
	close(stop)
	probes.Wait()
	if starts < 300 || met.Load() < 50 {
		t.Errorf("too little happened: %d starts, %d probes that met one", starts, met.Load())
	}
}

func probeAll(t *testing.T, home string, watcher *Instance) (met int64) {
	ids, err := watcher.Others()
	if err != nil {
		t.Error(err)
	}
	for _, id := range ids {
		switch state, claim, err := Probe(home, id); {
		case err != nil:
			t.Error(err)
		case state == Dead:
			t.Errorf("instance %s looked dead while it started or left", id)
			claim.Release()
		case state == Alive:
			met++
		}
	}
	return met
}

func TestStart_RefusesBadAndUsedIDs(t *testing.T) {
	home := t.TempDir()
	for _, id := range []string{"", "../x", "a/b", "gate", "schema", ".", strings.Repeat("x", 65)} {
		if _, err := Start(Options{Home: home, ID: id}); err == nil {
			t.Errorf("%q was accepted", id)
		}
		if _, _, err := Probe(home, id); err == nil {
			t.Errorf("%q was probed", id)
		}
	}
	begin(t, home, "one")
	if _, err := Start(Options{Home: home, ID: "one"}); !errors.Is(err, ErrIDInUse) {
		t.Errorf("got %v", err)
	}
	wantState(t, home, "one", Alive)
}

func TestOthers_ListsLocksOnly(t *testing.T) {
	home := t.TempDir()
	i := begin(t, home, "one")
	begin(t, home, "two")
	for _, name := range []string{"gate.lock", "schema.lock", "three.lock.new", "notes.txt"} {
		must(t, os.WriteFile(filepath.Join(home, "run", name), nil, 0o600))
	}
	ids, err := i.Others()
	if err != nil || !slices.Equal(ids, []string{"two"}) {
		t.Errorf("got %v, %v", ids, err)
	}
}

func TestBell_RingsAcrossProcesses(t *testing.T) {
	home := t.TempDir()
	i := begin(t, home, "one")
	o := start(t, "bell", home, "two")
	o.line(t)
	i.Poke("nobody", "../one", "two")
	if got := o.line(t); got != "rung" {
		t.Errorf("it said %q", got)
	}
}

func TestBell_ManyRingsAreOne(t *testing.T) {
	i := begin(t, t.TempDir(), "one")
	i.Poke("one", "one", "one")
	<-i.Bell()
	select {
	case <-i.Bell():
		t.Error("rang twice")
	default:
	}
}

// A path too long for a socket costs the bell, nothing else.
func TestStart_LongPath(t *testing.T) {
	home := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	i := begin(t, home, "one")
	wantMissing(t, filepath.Join(home, "run", "one.sock"))
	wantState(t, home, "one", Alive)
	i.Poke("two", "one")
	<-i.Bell()
}

// A socket left by a dead process of the same name is in nobody's way.
func TestStart_OldSocket(t *testing.T) {
	home := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(home, "run"), 0o700))
	must(t, os.WriteFile(filepath.Join(home, "run", "one.sock"), nil, 0o600))
	i, j := begin(t, home, "one"), begin(t, home, "two")
	j.Poke("one")
	<-i.Bell()
}

func BenchmarkProbeAlive(b *testing.B) {
	home := b.TempDir()
	begin(b, home, "one")
	for range b.N {
		_, _, _ = Probe(home, "one")
	}
}

func BenchmarkPoke(b *testing.B) {
	home := b.TempDir()
	i := begin(b, home, "one")
	begin(b, home, "two")
	for range b.N {
		i.Poke("two")
	}
}

// I4
func TestProbe_CopyProvesNothing(t *testing.T) {
	home, other := t.TempDir(), t.TempDir()
	o := start(t, "live", home, "one")
	o.line(t)
	b, err := os.ReadFile(filepath.Join(home, "run", "one.lock"))
	must(t, err)
	must(t, os.Mkdir(filepath.Join(other, "run"), 0o700))
	must(t, os.WriteFile(filepath.Join(other, "run", "one.lock"), b, 0o600))
	wantState(t, other, "one", Copied)
	o.kill()
	wantState(t, other, "one", Copied)
	wantState(t, home, "one", Dead)
}

func TestPulse_MovesWithEachBeat(t *testing.T) {
	home := t.TempDir()
	i := begin(t, home, "one")
	path := filepath.Join(home, "run", "one.lock")
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(path, old, old))
	if got := Pulse(home, "one"); time.Since(got) < time.Minute {
		t.Errorf("a pulse of %v", got)
	}
	i.Beat()
	if got := Pulse(home, "one"); time.Since(got) > time.Minute {
		t.Errorf("a pulse of %v after a beat", got)
	}
	must(t, os.WriteFile(path, []byte("1 acp\n"), 0o600)) // of a program that gives no signs
	if got := Pulse(home, "one"); !got.IsZero() {
		t.Errorf("a pulse of %v of a program that gives none", got)
	}
	Ring(home, "one")
	<-i.Bell()
	Ring(home, "nobody")
}
