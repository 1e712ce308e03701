package bench_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

// From the launch of the process to the answer of initialize.
func BenchmarkInitialize(b *testing.B) {
	w := newWorld(b)
	var s samples
	for b.Loop() {
		for range 30 {
			var a *harness.Agent
			s.take(func() { a = w.launch(); a.Initialize() })
			w.end(a)
		}
	}
	s.report(b, "initialize")
}

// The first session of a process opens the store; the first one of all makes it.
func BenchmarkSessionNew(b *testing.B) {
	var makes, opens, more samples
	for b.Loop() {
		w := newWorld(b)
		for n := range 10 {
			a := w.launch()
			a.Initialize()
			first := &opens
			if n == 0 {
				first = &makes
			}
			first.take(func() { a.NewSession(w.work) })
			for range 10 {
				more.take(func() { a.NewSession(w.work) })
			}
			w.end(a)
		}
	}
	makes.report(b, "makes-store")
	opens.report(b, "opens-store")
	more.report(b, "session-new")
}

// From the prompt to its answer, all commits included.
func BenchmarkOneTextTurn(b *testing.B) {
	w := newWorld(b)
	a, session := w.open()
	w.turn(a, session, "first") // names the session
	var s samples
	for b.Loop() {
		for range 50 {
			s.take(func() { w.turn(a, session, "and?") })
		}
	}
	s.report(b, "turn")
	w.end(a)
}

// How often a turn of one text waits for the disk: the difference between a process with turns and one without.
func BenchmarkOneTextTurn_Syncs(b *testing.B) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		b.Skip("counting needs strace: install it, then go test -run '^$' -bench Syncs -benchtime 1x ./conformance/bench")
	}
	const turns = 20
	perTurn := 0.0
	for b.Loop() {
		w := newWorld(b)
		syncs := func(turns int) float64 {
			trace := filepath.Join(b.TempDir(), "trace")
			a, session := w.open(strace, "-f", "-o", trace, "-e", "trace=fsync,fdatasync")
			w.turn(a, session, "first")
			for range turns {
				w.turn(a, session, "and?")
			}
			w.end(a)
			raw, err := os.ReadFile(trace)
			if err != nil {
				b.Fatal(err)
			}
			return float64(len(regexp.MustCompile(`(?m)^\d+ +f(data)?sync\(`).FindAll(raw, -1)))
		}
		syncs(0) // makes the store
		without, with := syncs(0), syncs(turns)
		if without == 0 || with <= without {
			b.Fatalf("%v syncs with turns, %v without: the trace shows nothing", with, without)
		}
		perTurn = (with - without) / turns
	}
	b.ReportMetric(perTurn, "syncs/turn")
	b.ReportMetric(0, "ns/op")
}

// An answer that streams in many deltas, from the prompt to its answer.
func BenchmarkTenThousandChunks(b *testing.B) {
	w := newWorld(b)
	a, session := w.open()
	var s samples
	updates := 0
	for b.Loop() {
		for range 3 {
			before, text := len(a.Updates(session)), len(a.Text(session))
			s.take(func() { w.turn(a, session, "long") })
			if got, want := a.Text(session)[text:], strings.Repeat(line, chunks); got != want {
				b.Fatalf("%d of %d bytes arrived, or in another order", len(got), len(want))
			}
			updates = len(a.Updates(session)) - before
		}
	}
	s.report(b, "chunks")
	b.ReportMetric(float64(updates), "updates")
	w.end(a)
}
