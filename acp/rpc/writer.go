package rpc

import (
	"context"
	"io"
	"sync"
	"time"
)

// limits of what waits for a peer that does not read.
type limits struct {
	soft  int           // bytes from which on a notification waits
	hard  int           // bytes from which on reading waits
	stall time.Duration // how long a notification waits
}

var defaultLimits = limits{soft: 16 << 20, hard: 64 << 20, stall: 30 * time.Second}

// writer puts lines out in order from one goroutine, which ends with end or a failed write. What gathers while it writes goes out in one
// write.
type writer struct {
	limits
	out  io.Writer
	more chan struct{} // holds one token when there may be something to do

	mu      sync.Mutex
	queue   []byte
	queued  int64         // bytes ever queued
	written int64         // bytes ever written; queued - written wait
	moved   chan struct{} // closed and replaced whenever written or dead changes
	stalled bool          // a notification has waited in vain; cleared when something is written
	dead    error
}

func newWriter(out io.Writer, l limits) *writer {
	return &writer{limits: l, out: out, more: make(chan struct{}, 1), moved: make(chan struct{})}
}

func (w *writer) waiting() int { return int(w.queued - w.written) }

// put queues a line at once, whatever waits.
func (w *writer) put(line []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.add(line)
}

func (w *writer) add(line []byte) error {
	if w.dead != nil {
		return w.dead
	}
	w.queue = append(w.queue, line...)
	w.queued += int64(len(line))
	w.wake()
	return nil
}

func (w *writer) wake() {
	select {
	case w.more <- struct{}{}:
	default: // it is awake already
	}
}

// offer queues a line when there is room, and waits for room no longer than the stall limit.
func (w *writer) offer(ctx context.Context, line []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fits(line) {
		return w.add(line)
	}
	timer := time.NewTimer(w.stall)
	defer timer.Stop()
	for !w.fits(line) {
		if w.stalled {
			return ErrNotReading
		}
		moved := w.moved
		w.mu.Unlock()
		var err error
		select {
		case <-moved:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-timer.C:
			err = ErrNotReading
		}
		w.mu.Lock()
		if err == ErrNotReading {
			w.stalled = !w.fits(line)
			continue
		}
		if err != nil {
			return err
		}
	}
	return w.add(line)
}

// fits also holds when the connection has ended, which add then says.
func (w *writer) fits(line []byte) bool {
	return w.dead != nil || w.waiting() == 0 || w.waiting()+len(line) <= w.soft
}

// until waits for a condition that depends on what has been written.
func (w *writer) until(ctx context.Context, holds func() bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !holds() {
		if w.dead != nil {
			return w.dead
		}
		moved := w.moved
		w.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			w.mu.Lock()
			return context.Cause(ctx)
		}
		w.mu.Lock()
	}
	return nil
}

// calm waits until reading may go on.
func (w *writer) calm(ctx context.Context) error {
	return w.until(ctx, func() bool { return w.waiting() < w.hard })
}

// flush waits until what is queued now is written.
func (w *writer) flush(ctx context.Context) error {
	w.mu.Lock()
	mark := w.queued
	w.mu.Unlock()
	return w.until(ctx, func() bool { return w.written >= mark })
}

// end makes the writer refuse more and drop what it has not begun to write.
func (w *writer) end(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead == nil {
		w.dead = why
		w.queue = nil
	}
	w.move()
	w.wake()
}

func (w *writer) move() {
	close(w.moved)
	w.moved = make(chan struct{})
}

// keepBuffer is the largest buffer kept for the next batch.
const keepBuffer = 1 << 20

// loop writes until end. A failed write is returned.
func (w *writer) loop() error {
	var spare []byte
	for range w.more {
		w.mu.Lock()
		batch, dead := w.queue, w.dead
		w.queue = spare[:0]
		w.mu.Unlock()
		if dead != nil {
			return nil
		}
		if len(batch) == 0 {
			spare = batch
			continue
		}
		_, err := w.out.Write(batch)
		if err != nil {
			w.end(ErrClosed)
			return err
		}
		w.mu.Lock()
		w.written += int64(len(batch))
		w.stalled = false
		w.move()
		w.mu.Unlock()
		if spare = batch; cap(spare) > keepBuffer {
			spare = nil
		}
	}
	return nil
}
