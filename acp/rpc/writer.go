package rpc

import (
	"io"
	"sync"
	"time"
)

// Limits of what waits for a peer that does not read.
const (
	maxQueued  = 16 << 20
	notReading = 30 * time.Second
)

// writer puts lines out in order from one goroutine; what gathers meanwhile goes out in one write.
type writer struct {
	out io.Writer

	mu      sync.Mutex
	room    *sync.Cond // signalled when the queue shrinks or the writer ends
	more    chan struct{}
	queue   []byte
	writing bool
	dead    error
	done    chan struct{}
}

func newWriter(out io.Writer) *writer {
	w := &writer{out: out, more: make(chan struct{}, 1), done: make(chan struct{})}
	w.room = sync.NewCond(&w.mu)
	go w.loop() // ends with close
	return w
}

// put queues one line. It waits for room, but not for ever.
func (w *writer) put(line []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead == nil && len(w.queue) > 0 && len(w.queue)+len(line) > maxQueued {
		timer := time.AfterFunc(notReading, func() { w.end(ErrNotReading) })
		for w.dead == nil && len(w.queue) > 0 && len(w.queue)+len(line) > maxQueued {
			w.room.Wait()
		}
		timer.Stop()
	}
	if w.dead != nil {
		return w.dead
	}
	w.queue = append(append(w.queue, line...), '\n')
	select {
	case w.more <- struct{}{}:
	default:
	}
	return nil
}

func (w *writer) end(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead == nil {
		w.dead = why
	}
	w.room.Broadcast()
	select {
	case w.more <- struct{}{}:
	default:
	}
}

func (w *writer) loop() {
	defer close(w.done)
	var spare []byte
	for range w.more {
		w.mu.Lock()
		batch := w.queue
		w.queue, w.writing = spare[:0], true
		dead := w.dead
		w.mu.Unlock()
		var err error
		if len(batch) > 0 && dead != ErrNotReading {
			_, err = w.out.Write(batch)
		}
		w.mu.Lock()
		w.writing = false
		if spare = batch; cap(spare) > 1<<20 {
			spare = nil
		}
		if err != nil && w.dead == nil {
			w.dead = ErrClosed
		}
		stop := w.dead != nil && len(w.queue) == 0
		w.room.Broadcast()
		w.mu.Unlock()
		if stop {
			return
		}
	}
}

// flush waits until everything queued is written, at most limit.
func (w *writer) flush(limit time.Duration) {
	timer := time.AfterFunc(limit, func() { w.mu.Lock(); defer w.mu.Unlock(); w.room.Broadcast() })
	defer timer.Stop()
	end := time.Now().Add(limit)
	w.mu.Lock()
	defer w.mu.Unlock()
	for (len(w.queue) > 0 || w.writing) && w.dead != ErrNotReading && time.Now().Before(end) {
		w.room.Wait()
	}
}
