//go:build faultpoints

package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/session"
)

// A faultpoints build writes down what its transactions do with the ownership of sessions, in a file of its own in the folder that
// HOLDFAST_TRACE names, so that a test can check the history of all processes together. A transaction has two lines: "begin" right before
// it is committed, and "end" when the outcome is known. A process that was killed in between has left the first one only: that
// transaction is stored or is not. Times are those of the machine's one monotonic clock.

// traced is one line.
type traced struct {
	N      int64      `json:"n"` // of the transaction in its process
	Phase  string     `json:"phase"`
	Point  string     `json:"point,omitempty"`
	PID    int        `json:"pid,omitempty"`
	At     int64      `json:"at"`
	Start  int64      `json:"start,omitempty"` // when the transaction had begun
	Steps  []tracedOp `json:"steps,omitempty"`
	Result string     `json:"result,omitempty"` // ok, refused, unknown
}

// tracedOp is what a transaction did, in order.
type tracedOp struct {
	Op         string             `json:"op"` // join, create, own, leave, fence, touch
	Session    session.SessionID  `json:"session,omitempty"`
	Instance   session.InstanceID `json:"instance,omitempty"`
	Generation int64              `json:"generation"`
	Fenced     bool               `json:"fenced,omitempty"`
}

// trace collects the steps of one transaction; nil without a folder.
type trace struct {
	n     int64
	start int64
	steps []tracedOp
}

var tracing struct {
	sync.Mutex
	opened bool
	file   *os.File
	n      int64
}

// traceDir is taken from the environment, so that no child inherits it.
var traceDir = func() string {
	dir := os.Getenv("HOLDFAST_TRACE")
	_ = os.Unsetenv("HOLDFAST_TRACE")
	return dir
}()

// traceBegin is called at the start of a transaction.
func traceBegin() *trace {
	if traceDir == "" {
		return nil
	}
	return &trace{start: monotonic()}
}

// note adds a step.
func (t *trace) note(op string, s session.SessionID, i session.InstanceID, generation int64, fenced bool) {
	if t != nil {
		t.steps = append(t.steps, tracedOp{op, s, i, generation, fenced})
	}
}

// commits writes the first line. What only reads, or concerns no session, leaves none.
func (t *trace) commits(point string) {
	if t == nil || len(t.steps) == 0 {
		return
	}
	tracing.Lock()
	tracing.n++
	t.n = tracing.n
	tracing.Unlock()
	t.write(traced{N: t.n, Phase: "begin", Point: point, PID: os.Getpid(), At: monotonic(), Start: t.start, Steps: t.steps})
}

// ends writes the second line. A transaction that was given up before its commit has done nothing but ask.
func (t *trace) ends(point string, err error) {
	if t == nil || len(t.steps) == 0 {
		return
	}
	result := "ok"
	switch {
	case err == nil:
	case CodeOf(err) == CodeUnknownOutcome:
		result = "unknown"
	default:
		result = "refused"
	}
	if t.n == 0 {
		t.commits(point)
	}
	t.write(traced{N: t.n, Phase: "end", At: monotonic(), Result: result})
}

func (t *trace) write(line traced) {
	b, err := json.Marshal(line)
	if err != nil {
		panic(fmt.Sprintf("store: encode a line of the trace: %v", err))
	}
	tracing.Lock()
	defer tracing.Unlock()
	if !tracing.opened {
		tracing.opened = true
		name := filepath.Join(traceDir, fmt.Sprintf("%d-%d.jsonl", os.Getpid(), time.Now().UnixNano()))
		if tracing.file, err = os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
			panic(fmt.Sprintf("store: the trace: %v", err))
		}
	}
	if _, err := tracing.file.Write(append(b, '\n')); err != nil {
		panic(fmt.Sprintf("store: write the trace: %v", err))
	}
}

func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(fmt.Sprintf("store: read the clock: %v", err))
	}
	return ts.Nano()
}
