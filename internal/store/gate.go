package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

const (
	busyAfter = 2 * time.Second        // one holder for this long is reported
	waitLimit = 10 * time.Second       // no wait for the gate is longer
	lookEvery = 100 * time.Millisecond // how often a waiter looks who holds the gate
)

// gate is the lock in front of BEGIN IMMEDIATE. Waiters block in the kernel, which serves them fairly and frees the lock at any
// death of its holder.
//
// A blocking flock cannot be called off, so it runs in a goroutine of its own, at most one per gate. A waiter that gives up
// leaves it behind; when the lock arrives unwanted, it is let go at once, and a next waiter adopts the goroutine. It is the one
// goroutine nobody waits for: with a suspended holder it ends only when that holder goes on or dies, and close must not hang
// for that.
type gate struct {
	queue chan struct{} // local turn; a token is in it while one caller holds or awaits the lock
	gone  chan struct{} // closed by shut: waiters leave
	f     *os.File
	path  string
	limit time.Duration // waitLimit, shorter in tests

	mu sync.Mutex
	w  *waiter // the goroutine inside flock, nil when there is none
}

// waiter is one blocking flock.
type waiter struct {
	wanted bool       // guarded by gate.mu; false once the caller gave up
	done   chan error // buffered; receives only while wanted
}

func openGate(path string) (*gate, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the gate: %w", err)
	}
	return &gate{queue: make(chan struct{}, 1), gone: make(chan struct{}), f: f, path: path, limit: waitLimit}, nil
}

// lock takes the local turn and then the file lock. It gives up when ctx ends or after the limit; the error is a *BusyError when
// one holder was in the way for busyAfter, else the reason of ctx. onBusy is called from this goroutine, once per such holder.
func (g *gate) lock(ctx context.Context, onBusy func(pid int, since time.Time)) error {
	turn := false
	select {
	case g.queue <- struct{}{}: // the usual case costs no timer
		turn = true
		if ok, err := g.try(); ok || err != nil {
			return g.settle(err)
		}
	default:
	}
	ctx, cancel := context.WithTimeoutCause(ctx, g.limit, errWaitLimit)
	defer cancel()
	watch := newWatch(g, onBusy)
	defer watch.tick.Stop()
	if !turn {
		if err := g.awaitTurn(ctx, watch); err != nil {
			return err
		}
	}
	return g.awaitLock(ctx, watch)
}

// awaitTurn queues behind the other callers of this process.
func (g *gate) awaitTurn(ctx context.Context, watch *watch) error {
	for {
		select {
		case g.queue <- struct{}{}:
			return nil
		case <-watch.tick.C:
			watch.look()
		case <-g.gone:
			return ErrClosed
		case <-ctx.Done():
			return watch.fail(ctx)
		}
	}
}

// awaitLock waits for the other processes. The local turn is ours, and given back when this fails.
func (g *gate) awaitLock(ctx context.Context, watch *watch) error {
	w := g.ask()
	for {
		select {
		case err := <-w.done:
			return g.settle(err)
		case <-watch.tick.C:
			watch.look()
		case <-g.gone:
			g.abandon(w)
			<-g.queue
			return ErrClosed
		case <-ctx.Done():
			g.abandon(w)
			<-g.queue
			return watch.fail(ctx)
		}
	}
}

// unlock lets the next one in. Only the holder calls it.
func (g *gate) unlock() {
	_ = funlock(g.f) // cannot fail on an open file; a closed one has no lock any more
	<-g.queue
}

// shut sends every waiter away. It is called once, before close.
func (g *gate) shut() { close(g.gone) }

// close drops the lock, if held, with the descriptor. A goroutine still inside flock keeps the descriptor alive until it returns.
func (g *gate) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.w != nil {
		g.w.wanted = false
	}
	return g.f.Close()
}

// try takes the file lock if it is free and nobody of ours waits in the kernel already.
func (g *gate) try() (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.w != nil {
		return false, nil
	}
	return flockTry(g.f, true)
}

// ask starts a blocking wait, or adopts the one that an earlier caller left behind.
func (g *gate) ask() *waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.w == nil {
		g.w = &waiter{done: make(chan error, 1)}
		go g.wait(g.w)
	}
	g.w.wanted = true
	return g.w
}

func (g *gate) wait(w *waiter) {
	err := flockWait(g.f)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.w = nil
	switch {
	case w.wanted:
		w.done <- err
	case err == nil:
		_ = funlock(g.f)
	}
}

// abandon gives up a wait. The lock may have arrived in the same instant; then it is let go here.
func (g *gate) abandon(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.wanted = false
	select {
	case err := <-w.done:
		if err == nil {
			_ = funlock(g.f)
		}
	default:
	}
}

// settle ends a wait: it notes the holder for others to read, or returns the local turn.
func (g *gate) settle(err error) error {
	if err != nil {
		<-g.queue
		return fmt.Errorf("lock the gate: %w", err)
	}
	g.note(os.Getpid())
	return nil
}

// note says who is in the way of the next one: the holder, or 0 while that waits itself for a lock of SQLite's that another program has.
func (g *gate) note(pid int) {
	// Fixed length, so that a reader never sees the tail of an older, longer line. Best effort: a full disk must not stop us.
	_, _ = g.f.WriteAt(fmt.Appendf(nil, "%-10d %-20d\n", pid, time.Now().UnixNano()), 0)
}

// holder reads who took the gate last. The lock itself says whether it is still held.
func (g *gate) holder() (pid int, since time.Time) {
	b, err := os.ReadFile(g.path)
	fields := bytes.Fields(b)
	if err != nil || len(fields) != 2 {
		return 0, time.Time{}
	}
	pid, _ = strconv.Atoi(string(fields[0]))
	ns, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return pid, time.Unix(0, ns)
}

// watch observes whether one and the same holder stays in the way. It compares what it reads with what it read before and
// measures on its own clock, so that a set clock makes nobody look stuck.
type watch struct {
	g      *gate
	onBusy func(int, time.Time)
	tick   *time.Ticker
	pid    int
	since  time.Time
	seen   time.Time // when this holder was first seen
	busy   bool
	passed bool // the gate has changed hands meanwhile
}

func newWatch(g *gate, onBusy func(int, time.Time)) *watch {
	w := &watch{g: g, onBusy: onBusy, tick: time.NewTicker(lookEvery), seen: time.Now()}
	w.pid, w.since = g.holder()
	return w
}

func (w *watch) look() {
	pid, since := w.g.holder()
	if pid != w.pid || !since.Equal(w.since) {
		w.pid, w.since, w.seen, w.busy, w.passed = pid, since, time.Now(), false, true
		return
	}
	if !w.busy && time.Since(w.seen) >= busyAfter {
		w.busy = true
		if w.onBusy != nil {
			w.onBusy(pid, since)
		}
	}
}

func (w *watch) fail(ctx context.Context) error {
	w.look()
	if why := ended(ctx); !w.busy && !errors.Is(why, errWaitLimit) {
		return fmt.Errorf("wait for the store: %w", why)
	}
	if w.passed && !w.busy { // a crowd: whoever has it right now is not in the way more than others
		return &BusyError{Err: ended(ctx)}
	}
	return &BusyError{PID: w.pid, Since: w.since, Err: ended(ctx)}
}
