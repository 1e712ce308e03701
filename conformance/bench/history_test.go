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
// it, and its memory. One history is made of the longest results that built-in tools give. The other is of the worst kind, rows of older
// versions that hold both contents of a file.
func BenchmarkHistory(b *testing.B) {
	for _, kind := range []string{"results", "old-diffs"} {
		for _, mb := range sizes(b) {
			b.Run(fmt.Sprintf("%s/%dMB", kind, mb), func(b *testing.B) { history(b, kind, mb) })
		}
	}
}

func history(b *testing.B, kind string, mb int) {
	w := newWorld(b)
	a, session := w.open()
	w.turn(a, session, "first")
	w.end(a)
	calls := w.lengthen(session, kind, mb)
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
			if n := len(a.Updates(session)); n < calls {
				b.Fatalf("%d updates for %d calls", n, calls)
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
}

// result is the length of the longest result of a built-in tool.
const result = 30_000

// lengthen gives a session calls that hold so many megabytes together, and returns how many. A result is kept apart; old-diffs are in the
// rows, as older versions wrote them, a megabyte in each.
func (w *world) lengthen(session, kind string, mb int) int {
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
	exec := func(query string, args ...any) {
		if _, err := tx.Exec(query, args...); err != nil {
			w.b.Fatal(err)
		}
	}
	var last int
	if err := tx.QueryRow(`SELECT last_seq FROM sessions WHERE id = ?`, session).Scan(&last); err != nil {
		w.b.Fatal(err)
	}
	calls := mb
	if kind == "results" {
		calls = mb * 1_000_000 / result
	}
	text := strings.Repeat("0123456789abcde\n", 1<<15)
	for n := range calls {
		tool := map[string]any{"callId": fmt.Sprintf("call %d", n), "name": "edit", "args": `{"path":"f"}`, "effect": fmt.Sprintf("effect-%d", n), "title": "Edit f",
			"kind": "edit", "status": "completed", "fact": "completed", "output": map[string]any{"text": strings.Repeat("a line of the result\n", 50), "isError": false}}
		if kind == "results" {
			digest := fmt.Sprintf("sha256:%d", n)
			tool["output"].(map[string]any)["kept"], tool["output"].(map[string]any)["size"] = digest, result
			exec(`INSERT INTO contents (digest, body) VALUES (?, ?)`, digest, []byte(fmt.Sprint(n, text[:result])))
		} else {
			tool["files"] = []any{map[string]any{"path": "/f", "before": "sha256:1", "after": "sha256:2", "oldText": text + "old", "newText": text + "new"}}
		}
		body, err := json.Marshal(map[string]any{"response": fmt.Sprintf("answer %d", n), "tool": tool})
		if err != nil {
			w.b.Fatal(err)
		}
		exec(`INSERT INTO items (id, session, seq, kind, state, body, created_at) VALUES (?, ?, ?, 'tool', 'complete', ?, 1)`,
			fmt.Sprintf("grown-%06d", n), session, last+1+n, string(body))
	}
	exec(`UPDATE sessions SET last_seq = ? WHERE id = ?`, last+calls, session)
	if err := tx.Commit(); err != nil {
		w.b.Fatal(err)
	}
	return calls
}
