package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func init() {
	// Holds the gate inside a transaction until it hears a line.
	roles["hold"] = func(home string, _ []string) error {
		d, err := Open(context.Background(), options(home))
		if err != nil {
			return err
		}
		err = d.Commit(context.Background(), "test", func(tx *sql.Tx) error {
			if err := bump("held")(tx); err != nil {
				return err
			}
			say("inside")
			hear()
			return nil
		})
		return errors.Join(err, d.Close())
	}
	// Raises one counter from several goroutines.
	roles["bump"] = func(home string, args []string) error {
		d, err := Open(context.Background(), options(home))
		if err != nil {
			return err
		}
		say("ready")
		hear()
		times, _ := strconv.Atoi(args[0])
		done := make(chan error)
		for range 2 {
			go func() {
				var err error
				for i := 0; i < times && err == nil; i++ {
					err = d.Commit(context.Background(), "test", bump("x"))
				}
				done <- err
			}()
		}
		return errors.Join(<-done, <-done, d.Close())
	}
}

func TestCommit_ProcessesLoseNoUpdate(t *testing.T) {
	for _, processes := range []int{2, 8} {
		t.Run(fmt.Sprint(processes, " processes"), func(t *testing.T) {
			home := newHome(t)
			d := open(t, options(home))
			var all []*child
			for range processes {
				c := start(t, "bump", home, "25")
				c.line(t, "ready")
				all = append(all, c)
			}
			for _, c := range all {
				_, _ = c.in.Write([]byte("\n"))
			}
			for _, c := range all {
				c.rest(t)
			}
			if n, want := count(t, d, "x"), processes*50; n != want {
				t.Errorf("%d updates of %d are left", n, want)
			}
		})
	}
}

// The kernel frees the gate at any death, and what the dead one wrote is gone.
func TestGate_HolderKilled(t *testing.T) {
	home := newHome(t)
	d := open(t, options(home))
	c := start(t, "hold", home)
	c.line(t, "inside")
	if pid, since := d.gate.holder(); pid != c.Process.Pid || since.IsZero() {
		t.Errorf("the gate names process %d since %v, want %d", pid, since, c.Process.Pid)
	}
	c.kill()
	must(t, d.Commit(context.Background(), "test", bump("x")))
	if held, x := count(t, d, "held"), count(t, d, "x"); held != 0 || x != 1 {
		t.Errorf("held=%d x=%d, want 0 and 1", held, x)
	}
}

func TestGate_SuspendedHolderIsNamed(t *testing.T) {
	home := newHome(t)
	named := make(chan int, 10)
	o := options(home)
	o.OnBusy = func(pid int, _ time.Time) { named <- pid }
	d := open(t, o)
	c := start(t, "hold", home)
	c.line(t, "inside")
	must(t, c.Process.Signal(syscall.SIGSTOP))
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error)
	go func() { result <- d.Commit(ctx, "test", bump("x")) }()
	pid := <-named
	if n := count(t, d, "held"); n != 0 {
		t.Errorf("a reader saw %d", n)
	}
	cancel()
	err := <-result
	var busy *BusyError
	if !errors.As(err, &busy) || busy.PID != c.Process.Pid || pid != c.Process.Pid || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v after being told of %d, want a *BusyError for %d", err, pid, c.Process.Pid)
	}
	wantCode(t, err, CodeBusy)
	must(t, c.Process.Signal(syscall.SIGCONT))
	c.rest(t)
	must(t, d.Commit(context.Background(), "test", bump("x")))
	if held, x := count(t, d, "held"), count(t, d, "x"); held != 1 || x != 1 {
		t.Errorf("held=%d x=%d, want 1 and 1", held, x)
	}
	if len(named) != 0 {
		t.Errorf("told %d times more", len(named))
	}
}

// A holder that is suspended for good cannot hold the others for good.
func TestGate_WaitIsLimited(t *testing.T) {
	home := newHome(t)
	d := open(t, options(home))
	c := start(t, "hold", home)
	c.line(t, "inside")
	d.gate.limit = 300 * time.Millisecond
	err := d.Commit(context.Background(), "test", bump("x"))
	var busy *BusyError
	if !errors.As(err, &busy) || busy.PID != c.Process.Pid || !errors.Is(err, errWaitLimit) {
		t.Fatalf("got %v, want a *BusyError for %d", err, c.Process.Pid)
	}
}

// Where many take turns, nobody is named: the one that has the gate in the end has only just got it.
func TestGate_ACrowdIsNotOneHolder(t *testing.T) {
	d := open(t, options(newHome(t)))
	ctx, cancel := context.WithCancelCause(context.Background())
	w := newWatch(d.gate, nil)
	defer w.tick.Stop()
	for range 2 {
		must(t, d.Commit(ctx, "test", bump("x")))
		w.look()
	}
	cancel(errWaitLimit)
	var busy *BusyError
	if err := w.fail(ctx); !errors.As(err, &busy) || busy.PID != 0 || strings.Contains(err.Error(), "suspended") {
		t.Errorf("got %v, want a *BusyError that names nobody", err)
	}
}

// A caller that gave up leaves a wait behind in the kernel. When the lock arrives, it must not stay with us.
func TestGate_CancelledWaitLetsGo(t *testing.T) {
	home := newHome(t)
	d := open(t, options(home))
	c := start(t, "hold", home)
	c.line(t, "inside")
	ctx, cancel := context.WithCancelCause(context.Background())
	result := make(chan error)
	go func() { result <- d.Commit(ctx, "test", bump("x")) }()
	until(t, "a wait in the kernel", func() bool { return waiting(d.gate) })
	why := errors.New("the user left")
	cancel(why)
	if err := <-result; !errors.Is(err, why) {
		t.Fatalf("got %v", err)
	}
	c.rest(t)
	second := start(t, "hold", home) // would wait for ever if the gate had stayed with us
	second.line(t, "inside")
	second.rest(t)
	if n := count(t, d, "x"); n != 0 {
		t.Errorf("a cancelled commit was stored %d times", n)
	}
}

// The next caller adopts the wait that an earlier one left behind.
func TestGate_WaitIsAdopted(t *testing.T) {
	home := newHome(t)
	d := open(t, options(home))
	c := start(t, "hold", home)
	c.line(t, "inside")
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error)
	go func() { result <- d.Commit(ctx, "test", bump("x")) }()
	until(t, "a wait in the kernel", func() bool { return waiting(d.gate) })
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	go func() { result <- d.Commit(context.Background(), "test", bump("x")) }()
	until(t, "a second wait", func() bool { d.gate.mu.Lock(); defer d.gate.mu.Unlock(); return d.gate.w != nil && d.gate.w.wanted })
	c.rest(t)
	must(t, <-result)
	must(t, d.Commit(context.Background(), "test", bump("x")))
	if n := count(t, d, "x"); n != 2 {
		t.Errorf("the counter is %d", n)
	}
}

func waiting(g *gate) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.w != nil
}

func TestClose_SendsWaitersAway(t *testing.T) {
	home := newHome(t)
	d := open(t, options(home))
	c := start(t, "hold", home)
	c.line(t, "inside")
	result := make(chan error)
	for range 2 { // one waits in the kernel, one for its local turn
		go func() { result <- d.Commit(context.Background(), "test", bump("x")) }()
	}
	until(t, "a wait in the kernel", func() bool { return waiting(d.gate) })
	must(t, d.Close())
	for range 2 {
		if err := <-result; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	c.rest(t)
	until(t, "the end of the wait in the kernel", func() bool { return !waiting(d.gate) })
}

func TestClose_Twice(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	d := open(t, options(newHome(t)))
	must(t, d.Commit(context.Background(), "test", bump("x")))
	must(t, errors.Join(d.Close(), d.Close()))
	wantCode(t, d.Commit(context.Background(), "test", bump("x")), CodeClosed)
	wantCode(t, d.Read(context.Background(), func(*sql.Tx) error { return nil }), CodeClosed)
	if _, err := os.Stat(d.home.db() + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the log was not folded in: %v", err)
	}
}

// I5: every start of a process is killed somewhere, and the next one still finds no store or a whole one.
func TestOpen_KilledWhileCreating(t *testing.T) {
	for i := range 20 {
		home := newHome(t)
		c := start(t, "create", home)
		c.line(t, "ready")
		_, _ = c.in.Write([]byte("\n"))
		stages := []string{"run/gate.lock", "holdfast.db.new", "holdfast.db.new-wal", "holdfast.db", "store.id"}
		stage := filepath.Join(home, stages[i%len(stages)])
		until(t, "stage "+stage, func() bool {
			_, err := os.Stat(stage)
			return err == nil || bytes.HasSuffix([]byte(stage), []byte("new-wal")) && stored(home) || bytes.HasSuffix([]byte(stage), []byte("new")) && stored(home)
		})
		c.kill()
		d := open(t, options(home))
		must(t, d.Commit(context.Background(), "test", bump("x")))
		must(t, d.Close())
	}
}

// stored tells that a short-lived stage has passed unseen.
func stored(home string) bool {
	_, err := os.Stat(filepath.Join(home, "holdfast.db"))
	return err == nil
}
