package bench_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// procNumber reads one number of a /proc file, by the expression around it.
func procNumber(b *testing.B, file, expr string) float64 {
	b.Helper()
	raw, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		if _, err := os.Stat("/proc/self/status"); err != nil {
			b.Skip("this is read from /proc, on Linux: go test -run '^$' -bench 'Memory|Idle' -benchtime 1x ./conformance/bench")
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	m := regexp.MustCompile(expr).FindSubmatch(raw)
	if m == nil {
		b.Fatalf("%s has no %s", file, expr)
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// resident is the resident memory in MB, and the part of it that is not file pages.
func resident(b *testing.B, pid int) (all, own float64) {
	b.Helper()
	status := fmt.Sprintf("/proc/%d/status", pid)
	return procNumber(b, status, `VmRSS:\s+(\d+) kB`) / 1024, procNumber(b, status, `RssAnon:\s+(\d+) kB`) / 1024
}

func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		w := newWorld(b)
		a := w.launch()
		a.Initialize()
		all, own := resident(b, a.PID())
		b.ReportMetric(all, "initialized-MB")
		b.ReportMetric(own, "initialized-own-MB")
		session := a.NewSession(w.work)
		for range 50 {
			w.turn(a, session, "and?")
		}
		all, own = resident(b, a.PID())
		b.ReportMetric(all, "50-turns-MB")
		b.ReportMetric(own, "50-turns-own-MB")
		w.turn(a, session, "long")
		all, _ = resident(b, a.PID())
		b.ReportMetric(all, "10000-chunks-MB")
		w.end(a)
	}
	b.ReportMetric(0, "ns/op")
}

// load is what a process has used so far.
type load struct {
	cpu   time.Duration
	wakes float64 // times that one of its threads began to run after waiting
}

func loadOf(b *testing.B, pid int) (l load) {
	b.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(tasks) == 0 {
		b.Fatalf("process %d has no threads: %v", pid, err)
	}
	for _, task := range tasks {
		l.wakes += procNumber(b, filepath.Join(task, "status"), `(?m)^voluntary_ctxt_switches:\s+(\d+)`)
		l.cpu += threadTime(b, task)
	}
	return l
}

// threadTime is exact where the scheduler keeps statistics, else in ticks of 10 ms.
func threadTime(b *testing.B, task string) time.Duration {
	b.Helper()
	if raw, err := os.ReadFile(filepath.Join(task, "schedstat")); err == nil {
		ns, err := strconv.ParseInt(strings.Fields(string(raw))[0], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		return time.Duration(ns)
	}
	const upTo13 = `\) (?:\S+ ){11}` // the name may hold anything, so count from its end
	ticks := procNumber(b, filepath.Join(task, "stat"), upTo13+`(\d+)`) + procNumber(b, filepath.Join(task, "stat"), upTo13+`\d+ (\d+)`)
	return time.Duration(ticks) * 10 * time.Millisecond
}

const (
	settles = 5 * time.Second // what follows a turn, a collection of garbage among it, is not idling
	watched = 30 * time.Second
)

// A process whose editor is connected, with a session open and nothing to do.
func BenchmarkIdle(b *testing.B) {
	for b.Loop() {
		w := newWorld(b)
		a, session := w.open()
		w.turn(a, session, "and?")
		<-time.After(settles)
		before := loadOf(b, a.PID())
		<-time.After(watched)
		after := loadOf(b, a.PID())
		if after.wakes == before.wakes {
			b.Fatal("no thread woke in all that time: the process does not look for dead owners, or nothing was measured")
		}
		b.ReportMetric(ms(after.cpu-before.cpu), "cpu-ms/30s")
		b.ReportMetric((after.wakes-before.wakes)/watched.Seconds(), "thread-wakes/s")
		w.end(a)
	}
	b.ReportMetric(0, "ns/op")
}

// How often the idle process does anything at all. Go's runtime wakes several threads for one timer, so the switches of threads say
// little; what happens within a twentieth of a second counts as one wake-up.
func BenchmarkIdle_WakeUps(b *testing.B) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		b.Skip("seeing wake-ups needs strace: install it, then go test -run '^$' -bench WakeUps -benchtime 1x ./conformance/bench")
	}
	for b.Loop() {
		w := newWorld(b)
		trace := filepath.Join(b.TempDir(), "trace")
		a, session := w.open(strace, "-f", "-ttt", "-o", trace)
		w.turn(a, session, "and?")
		<-time.After(settles)
		from := time.Now()
		<-time.After(watched)
		to := time.Now()
		w.end(a)
		wakes := moments(b, trace, from, to)
		if wakes == 0 {
			b.Fatal("it did nothing in all that time: the process does not look for dead owners, or nothing was traced")
		}
		b.ReportMetric(float64(wakes)/watched.Seconds(), "wake-ups/s")
	}
	b.ReportMetric(0, "ns/op")
}

// moments counts the groups of system calls in a trace that lie at least a twentieth of a second apart.
func moments(b *testing.B, trace string, from, to time.Time) (n int) {
	b.Helper()
	raw, err := os.ReadFile(trace)
	if err != nil {
		b.Fatal(err)
	}
	last := 0.0
	for _, m := range regexp.MustCompile(`(?m)^\d+ +(\d+\.\d+) `).FindAllSubmatch(raw, -1) {
		at, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			b.Fatal(err)
		}
		if at < float64(from.UnixMicro())/1e6 || at > float64(to.UnixMicro())/1e6 {
			continue
		}
		if at-last > 0.05 {
			n++
		}
		last = at
	}
	return n
}
