package soak_test

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// step is what a transaction did, as the agents write it down.
type step struct {
	Op         string `json:"op"` // join, create, own, leave, fence, touch
	Session    string `json:"session"`
	Instance   string `json:"instance"`
	Generation int64  `json:"generation"`
	Fenced     bool   `json:"fenced"`
}

// transaction is one transaction of one process. Its end lies in the endless future when the process died before it was known.
type transaction struct {
	point      string
	pid        int
	start, end int64
	result     string // ok, refused, unknown
	steps      []step
}

// readTraces reads what all processes wrote down. A line that was cut off by the death of its process has not happened: it is written
// before the commit, or after it.
func readTraces(t *testing.T, dir string) (all []*transaction) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		open := map[int64]*transaction{}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var l struct {
				N      int64  `json:"n"`
				Phase  string `json:"phase"`
				Point  string `json:"point"`
				PID    int    `json:"pid"`
				At     int64  `json:"at"`
				Start  int64  `json:"start"`
				Steps  []step `json:"steps"`
				Result string `json:"result"`
			}
			if json.Unmarshal(lines.Bytes(), &l) != nil {
				continue
			}
			if l.Phase == "begin" {
				open[l.N] = &transaction{point: l.Point, pid: l.PID, start: l.Start, end: math.MaxInt64, result: "unknown", steps: l.Steps}
				all = append(all, open[l.N])
			} else if o := open[l.N]; o != nil {
				o.result = l.Result
				if l.Result != "unknown" {
					o.end = l.At
				}
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	return all
}
