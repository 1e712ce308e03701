package soak_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// world is one store, one model, and everything that anybody was told.
type world struct {
	t     *testing.T
	plan  plan
	seed  uint64
	rng   *rand.Rand // of the chaos goroutine, which is the test's
	bin   string
	dir   string
	home  string
	trace string
	model *fakemodel.Server
	gate  chan struct{} // holds answers to "please wait"; closed at the end

	windows []*window
	clis    sync.WaitGroup
	wal     walSize

	mu       sync.Mutex
	sessions []*session
	prompts  []*prompt
	goals    []*goal
	stops    []*stop
	arrivals []arrival
	deaths   map[int]int64 // by pid: when its end was asked for
	counts   map[string]int
	next     int // for tokens
}

// session is one session as its users know it.
type session struct {
	id, dir string
	home    *window
}

// prompt is one prompt, and what its sender was told.
type prompt struct {
	token, text string
	session     *session
	launch      *launch
	sent        int64 // order in which this client sent it
	answered    int64 // 0 while it has no answer
	stopReason  string
	failed      *harness.Error
}

// goal is a goal that was acknowledged.
type goal struct {
	id, token string
	session   *session
	stopped   bool // its pause was acknowledged; nobody resumes it
}

// stop is a stop from the command line that was acknowledged.
type stop struct{ session *session }

// arrival is one request at the endpoint.
type arrival struct {
	token string
	at    int64
}

func newWorld(t *testing.T, p plan, seed uint64) *world {
	t.Helper()
	_, faulty, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "hf-") // short: the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, plan: p, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), bin: faulty, dir: dir, home: filepath.Join(dir, "home"),
		trace: filepath.Join(dir, "trace"), gate: make(chan struct{}), deaths: map[int]int64{}, counts: map[string]int{}}
	t.Cleanup(func() { // last
		if t.Failed() {
			t.Logf("seed %d; the store and the trace are kept in %s", seed, dir)
			return
		}
		harness.Eventually(t, "nothing writes there any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	for _, d := range []string{w.home, w.trace, filepath.Join(dir, "work")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.model = fakemodel.New(w.answer)
	t.Cleanup(w.model.Close)
	t.Cleanup(func() { close(w.gate) })
	t.Cleanup(w.clis.Wait)
	t.Cleanup(w.wal.watch(filepath.Join(w.home, "holdfast.db-wal")))
	return w
}

func (w *world) env() []string {
	return append([]string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_LOG=info", "HOLDFAST_TRACE=" + w.trace}, w.model.Env(fakemodel.Family())...)
}

// newSessionDir makes a work tree with the file that edits change.
func (w *world) newSessionDir(n int) string {
	dir := filepath.Join(w.dir, "work", fmt.Sprintf("s%d", n))
	if err := os.Mkdir(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ledger), []byte("END\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return dir
}

// did counts what happened.
func (w *world) did(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// now is the machine's monotonic clock, which the agents' traces use as well.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// walSize watches a file from outside: it asks for its size and never opens it.
type walSize struct {
	mu      sync.Mutex
	largest int64
	looks   int
}

func (s *walSize) watch(path string) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if info, err := os.Stat(path); err == nil {
					s.mu.Lock()
					s.largest, s.looks = max(s.largest, info.Size()), s.looks+1
					s.mu.Unlock()
				}
			}
		}
	}()
	return func() { close(done); <-ended }
}
