// Package bench_test measures the real binary as an editor sees it: over its pipes, with its store on a real disk.
//
// Each benchmark takes a fixed number of samples per iteration and reports the median, so one iteration is enough:
//
//	go test -run '^$' -bench . -benchtime 1x ./conformance/bench
//
// docs/performance.md has the aims and what was measured. Nothing here fails for being slow; everything fails for being wrong.
package bench_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(copies); url != "" {
		if err := copier(url); err != nil {
			panic(err)
		}
		return
	}
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// chunks is how many deltas the long answer comes in.
const chunks = 10_000

// line is what each delta of the long answer holds.
const line = "0123456789abcdef"

// world is a store, a work tree and a scripted model without delay.
type world struct {
	b                          *testing.B
	binary, home, work, script string
}

func newWorld(b *testing.B) *world {
	b.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	w := &world{b: b, binary: plain, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), script: filepath.Join(dir, "script.json")}
	if err := os.Mkdir(w.work, 0o755); err != nil {
		b.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{"rules": []any{
		map[string]any{"when": map[string]any{"user": "long"}, "say": strings.Repeat(line, chunks), "chunks": chunks},
		map[string]any{"say": "Yes.", "usage": map[string]any{"inputTokens": 10, "outputTokens": 1}},
	}})
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(w.script, raw, 0o600); err != nil {
		b.Fatal(err)
	}
	return w
}

// launch starts the binary, under another program when one is given. The messages are not checked against the schema here: that would
// measure the checker.
func (w *world) launch(under ...string) *harness.Agent {
	w.b.Helper()
	words := append(under, w.binary, "acp")
	return harness.Start(w.b, harness.Options{Binary: words[0], Args: words[1:], Invalid: true,
		Env: []string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_MODEL=scripted/" + w.script}})
}

// open launches and opens a session.
func (w *world) open(under ...string) (*harness.Agent, string) {
	w.b.Helper()
	a := w.launch(under...)
	a.Initialize()
	return a, a.NewSession(w.work)
}

// turn runs one prompt to its end.
func (w *world) turn(a *harness.Agent, session, text string) {
	w.b.Helper()
	m := a.Await(a.Prompt(session, text))
	if m.Error != nil || !strings.Contains(string(m.Result), "end_turn") {
		w.b.Fatalf("the turn ended with %v %s", m.Error, m.Result)
	}
}

// end closes the agent's input and expects an orderly end.
func (w *world) end(a *harness.Agent) {
	w.b.Helper()
	if err := a.CloseInput(); err != nil {
		w.b.Fatalf("the agent ended with %v: %s", err, a.Stderr())
	}
}

// samples are times of the same thing.
type samples []time.Duration

func (s *samples) take(f func()) {
	began := time.Now()
	f()
	*s = append(*s, time.Since(began))
}

// report gives the median and the fastest, in milliseconds, in place of the time of a whole iteration. The two lie close together on a
// machine that does nothing else.
func (s samples) report(b *testing.B, name string) {
	b.Helper()
	slices.Sort(s)
	b.ReportMetric(ms(s[len(s)/2]), name+"-ms")
	b.ReportMetric(ms(s[0]), name+"-fastest-ms")
	b.ReportMetric(0, "ns/op")
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
