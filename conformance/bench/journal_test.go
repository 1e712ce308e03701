package bench_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// reads is how many calls of a reader the model makes in one answer.
const reads = 200

// What the journal costs for a call that only reads: a turn with many such calls, over one with a single call.
func BenchmarkReadOnlyCall(b *testing.B) {
	w := newWorld(b)
	if err := os.WriteFile(filepath.Join(w.work, "f"), []byte("one line\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	call := map[string]any{"name": "read", "args": map[string]any{"path": "f"}}
	var many []any
	for range reads {
		many = append(many, call)
	}
	raw, err := json.Marshal(map[string]any{"rules": []any{
		map[string]any{"when": map[string]any{"user": "many", "turn_results": 0}, "calls": many},
		map[string]any{"when": map[string]any{"user": "one", "turn_results": 0}, "calls": []any{call}},
		map[string]any{"say": "Yes."},
	}})
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(w.script, raw, 0o600); err != nil {
		b.Fatal(err)
	}
	var per samples
	var busy time.Duration
	turns := 0
	for b.Loop() {
		for range 5 {
			a, session := w.open() // a new session each time: the history is part of every turn
			w.turn(a, session, "one")
			var one, all samples
			one.take(func() { w.turn(a, session, "one") })
			before := worked(b, a.PID())
			all.take(func() { w.turn(a, session, "many") })
			busy += worked(b, a.PID()) - before
			turns++
			per = append(per, (all[0]-one[0])/(reads-1))
			w.end(a)
		}
	}
	per.report(b, "read-only-call")
	b.ReportMetric(ms(busy/time.Duration(turns*reads)), "read-only-call-cpu-ms")
}

// worked is the processor time that a process has had, in ticks of 10 ms.
func worked(b *testing.B, pid int) time.Duration {
	b.Helper()
	ticks := procNumber(b, fmt.Sprintf("/proc/%d/stat", pid), `\) \S(?: \S+){10} (\d+)`) + procNumber(b, fmt.Sprintf("/proc/%d/stat", pid), `\) \S(?: \S+){11} (\d+)`)
	return time.Duration(ticks) * 10 * time.Millisecond
}
