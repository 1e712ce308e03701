package bench_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"holdfast/conformance/harness"
)

// sizes are megabytes of history. The largest takes a while to build and is measured when it is asked for:
//
//	HOLDFAST_BENCH_MB=500 go test -run '^$' -bench History -benchtime 1x ./conformance/bench
func sizes(b *testing.B) []int {
	more := os.Getenv("HOLDFAST_BENCH_MB")
	if more == "" {
		return []int{1, 10, 100}
	}
	n, err := strconv.Atoi(more)
	if err != nil {
		b.Fatalf("HOLDFAST_BENCH_MB: %v", err)
	}
	return []int{n}
}

// What a new process takes for a session whose history has a size: to list it, to show the first of it and all of it, to answer a prompt in
// it, and its memory. The history is of the worst kind, rows of older versions that hold both contents of a file.
func BenchmarkHistory(b *testing.B) {
	for _, mb := range sizes(b) {
		b.Run(fmt.Sprintf("%dMB", mb), func(b *testing.B) {
			w := newWorld(b)
			a, session := w.open()
			w.turn(a, session, "first")
			w.end(a)
			w.lengthen(session, mb)
			var list, first, whole, prompt samples
			var rss, own float64
			for b.Loop() {
				for range 3 {
					a := w.launch()
					a.Initialize()
					list.take(func() { a.Must("session/list", map[string]any{}, nil) })
					began := time.Now()
					id := a.Begin("session/load", map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": []any{}})
					if _, ok := a.Find(func(m harness.Message) bool { return m.Method == "session/update" }); !ok {
						b.Fatal("nothing is shown")
					}
					first = append(first, time.Since(began))
					if m := a.Await(id); m.Error != nil {
						b.Fatal(m.Error)
					}
					whole = append(whole, time.Since(began))
					if n := len(a.Updates(session)); n < mb {
						b.Fatalf("%d updates for %d calls", n, mb)
					}
					prompt.take(func() { w.turn(a, session, "and?") })
					rss = max(rss, procNumber(b, fmt.Sprintf("/proc/%d/status", a.PID()), `VmHWM:\s+(\d+) kB`)/1024)
					_, last := resident(b, a.PID())
					own = max(own, last)
					w.end(a)
				}
			}
			list.report(b, "list")
			first.report(b, "first-update")
			whole.report(b, "load")
			prompt.report(b, "prompt")
			b.ReportMetric(rss, "peak-MB")
			b.ReportMetric(own, "own-after-MB")
		})
	}
}

// lengthen gives a session so many calls that each hold a megabyte, in the rows that older versions wrote.
func (w *world) lengthen(session string, calls int) {
	w.b.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(w.home, "holdfast.db"))
	if err != nil {
		w.b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tx, err := db.Begin()
	if err != nil {
		w.b.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	var last int
	if err := tx.QueryRow(`SELECT last_seq FROM sessions WHERE id = ?`, session).Scan(&last); err != nil {
		w.b.Fatal(err)
	}
	text := strings.Repeat("0123456789abcde\n", 1<<15)
	for n := range calls {
		body, err := json.Marshal(map[string]any{"response": fmt.Sprintf("answer %d", n), "tool": map[string]any{"callId": fmt.Sprintf("call %d", n), "name": "edit",
			"args": `{"path":"f"}`, "effect": fmt.Sprintf("effect-%d", n), "title": "Edit f", "kind": "edit", "status": "completed", "fact": "completed",
			"files":  []any{map[string]any{"path": "/f", "before": "sha256:1", "after": "sha256:2", "oldText": text + "old", "newText": text + "new"}},
			"output": map[string]any{"text": strings.Repeat("a line of the result\n", 50), "isError": false}}})
		if err != nil {
			w.b.Fatal(err)
		}
		if _, err := tx.Exec(`INSERT INTO items (id, session, seq, kind, state, body, created_at) VALUES (?, ?, ?, 'tool', 'complete', ?, 1)`,
			fmt.Sprintf("grown-%06d", n), session, last+1+n, string(body)); err != nil {
			w.b.Fatal(err)
		}
	}
	if _, err := tx.Exec(`UPDATE sessions SET last_seq = ? WHERE id = ?`, last+calls, session); err != nil {
		w.b.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		w.b.Fatal(err)
	}
}
