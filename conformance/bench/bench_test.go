// Package bench_test measures the real binary from outside: go test -run '^$' -bench . -benchtime 20x ./conformance/bench
package bench_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

type place struct{ home, work, script, bin string }

func newPlace(b *testing.B) place {
	b.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	p := place{home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), script: filepath.Join(dir, "script.json"), bin: plain}
	if err := os.Mkdir(p.work, 0o755); err != nil {
		b.Fatal(err)
	}
	script := fmt.Sprintf(`{"rules":[{"when":{"user":"much"},"say":%q,"chunks":10000},{"when":{},"say":"ok"}]}`, strings.Repeat("word ", 10000))
	if err := os.WriteFile(p.script, []byte(script), 0o600); err != nil {
		b.Fatal(err)
	}
	return p
}

func (p place) start(b *testing.B) *harness.Agent {
	return harness.Start(b, harness.Options{Binary: p.bin, Invalid: true, Env: []string{"HOLDFAST_HOME=" + p.home, "HOLDFAST_MODEL=scripted/" + p.script}})
}

func BenchmarkLaunchToInitialize(b *testing.B) {
	p := newPlace(b)
	p.start(b).CloseInput()
	for b.Loop() {
		a := p.start(b)
		a.Initialize()
		b.StopTimer()
		a.Kill()
		b.StartTimer()
	}
}

func BenchmarkSessionNew(b *testing.B) {
	p := newPlace(b)
	a := p.start(b)
	a.Initialize()
	a.NewSession(p.work)
	for b.Loop() {
		a.NewSession(p.work)
	}
}

func BenchmarkTurnOfOneText(b *testing.B) {
	p := newPlace(b)
	a := p.start(b)
	a.Initialize()
	session := a.NewSession(p.work)
	for b.Loop() {
		a.Await(a.Prompt(session, "hi"))
	}
}

// BenchmarkTurnSyncs counts the syncs of one turn with strace.
func BenchmarkTurnSyncs(b *testing.B) {
	if _, err := exec.LookPath("strace"); err != nil {
		b.Skip("strace is not installed; with it: go test -run '^$' -bench TurnSyncs ./conformance/bench")
	}
	p := newPlace(b)
	count := func(turns int) int {
		trace := filepath.Join(b.TempDir(), "trace")
		a := harness.Start(b, harness.Options{Binary: "strace", Args: []string{"-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", trace, p.bin, "acp"}, Invalid: true,
			Env: []string{"HOLDFAST_HOME=" + p.home, "HOLDFAST_MODEL=scripted/" + p.script}})
		a.Initialize()
		session := a.NewSession(p.work)
		for range turns {
			a.Await(a.Prompt(session, "hi"))
		}
		if err := a.CloseInput(); err != nil {
			b.Fatal(err)
		}
		text, err := os.ReadFile(trace)
		if err != nil {
			b.Fatal(err)
		}
		return strings.Count(string(text), "sync(")
	}
	count(0)
	for b.Loop() {
		b.ReportMetric(float64(count(21)-count(1))/20, "syncs/turn")
	}
}

func BenchmarkTenThousandChunks(b *testing.B) {
	p := newPlace(b)
	a := p.start(b)
	a.Initialize()
	session := a.NewSession(p.work)
	for b.Loop() {
		a.Await(a.Prompt(session, "say much"))
	}
}

func BenchmarkMemory(b *testing.B) {
	p := newPlace(b)
	for b.Loop() {
		a := p.start(b)
		a.Initialize()
		b.ReportMetric(resident(b, a.PID()), "MB-after-initialize")
		session := a.NewSession(p.work)
		for range 50 {
			a.Await(a.Prompt(session, "hi"))
		}
		b.ReportMetric(resident(b, a.PID()), "MB-after-50-turns")
	}
}

func resident(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("resident memory is read from /proc; on Linux: go test -run '^$' -bench Memory ./conformance/bench")
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kb, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kb / 1024
		}
	}
	b.Fatal("no VmRSS")
	return 0
}

// BenchmarkIdle30s watches a process that has nothing to do for 30 seconds.
func BenchmarkIdle30s(b *testing.B) {
	p := newPlace(b)
	a := p.start(b)
	a.Initialize()
	session := a.NewSession(p.work)
	a.Await(a.Prompt(session, "hi"))
	<-time.After(4 * time.Second)
	for b.Loop() {
		cpu, woken := used(b, a.PID())
		<-time.After(30 * time.Second)
		cpu2, woken2 := used(b, a.PID())
		b.ReportMetric(float64(cpu2-cpu)*10, "cpu-ms") // ticks of 10 ms
		b.ReportMetric(float64(woken2-woken)/30, "switches/s")
	}
	a.Signal(syscall.SIGTERM)
}

// used returns processor ticks and voluntary switches over all threads.
func used(b *testing.B, pid int) (ticks, switches int) {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip("idle work is read from /proc; on Linux: go test -run '^$' -bench Idle ./conformance/bench")
	}
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, i := range []int{11, 12} {
		n, err := strconv.Atoi(f[i])
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, t := range threads {
		text, err := os.ReadFile(t)
		if err != nil {
			continue // the thread has ended
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			if n, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				v, err := strconv.Atoi(strings.TrimSpace(n))
				if err != nil {
					b.Fatal(err)
				}
				switches += v
			}
		}
	}
	return ticks, switches
}
