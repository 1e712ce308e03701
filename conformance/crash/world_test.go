package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"holdfast/conformance/fakemodel"
)

// world is one state directory, one work tree and one model.
type world struct {
	t     *testing.T
	dir   string
	home  string
	work  string
	model *fakemodel.Server

	mu    sync.Mutex
	gates map[string]chan struct{}
	hits  map[string]int
	inode uint64 // of the written file, once it was seen
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-") // short: the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // last
		if err := os.RemoveAll(dir); err != nil && !t.Failed() {
			t.Errorf("something still writes there: %v", err)
		}
	})
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), gates: map[string]chan struct{}{}, hits: map[string]int{}}
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.explain)
	w.model = fakemodel.New(w.answer).Think()
	t.Cleanup(w.model.Close)
	t.Cleanup(w.openGates) // before the model closes
	return w
}

// explain logs what the processes and the model saw, when the test has failed.
func (w *world) explain() {
	if !w.t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(w.home, "*.jsonl")) // the pattern is a good one
	for _, name := range logs {
		if b, err := os.ReadFile(name); err == nil {
			w.t.Logf("%s:\n%s", filepath.Base(name), b)
		}
	}
	for _, r := range w.model.Requests() {
		w.t.Logf("request %d %s: %d messages, the last: %+v", r.N, r.Refused, len(r.Messages), r.Messages[max(0, len(r.Messages)-2):])
	}
}

// gate holds the answers that name it until it is opened.
func (w *world) gate(name string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gates[name] == nil {
		w.gates[name] = make(chan struct{})
	}
	return w.gates[name]
}

func (w *world) openGates() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.gates {
		select {
		case <-g:
		default:
			close(g)
		}
	}
}

// hit counts the requests of a kind.
func (w *world) hit(kind string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hits[kind]++
	return w.hits[kind]
}

func (w *world) seen(kind string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hits[kind]
}

// requests is how many model requests have arrived.
func (w *world) requests() int { return len(w.model.Requests()) }

// put makes a file that something waits for or is held by.
func (w *world) put(name string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.dir, name)); err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
}

func (w *world) has(name string) bool {
	_, err := os.Stat(filepath.Join(w.dir, name))
	return err == nil
}

// lines counts the lines of a file; 0 without one.
func (w *world) lines(name string) int {
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		return 0
	}
	return strings.Count(string(b), "\n")
}

// look remembers which file the write call made, and complains when it is another one now.
func (w *world) look() {
	w.t.Helper()
	st, err := os.Stat(filepath.Join(w.work, written))
	if err != nil {
		return
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	if w.inode != 0 && w.inode != sys.Ino {
		w.t.Errorf("the file was written again")
	}
	w.inode = sys.Ino
}

// logged tells whether a process has written the phrase to its log.
func (w *world) logged(pid int, phrase string) bool {
	b, _ := os.ReadFile(filepath.Join(w.home, "log.jsonl")) // it may not be there yet
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, fmt.Sprintf(`"pid":%d,`, pid)) && strings.Contains(line, phrase) {
			return true
		}
	}
	return false
}

// fired is the log of one launch's crash points.
func (w *world) fired(launch int) string {
	return filepath.Join(w.dir, fmt.Sprintf("fired-%d", launch))
}

// mustHaveFired fails when the point was not reached, or more than once, or another one was.
func (w *world) mustHaveFired(launch int, point string) {
	w.t.Helper()
	b, err := os.ReadFile(w.fired(launch))
	name, _, _ := strings.Cut(point, "/")
	if err != nil || strings.Count(string(b), "\n") != 1 || !strings.HasPrefix(string(b), name+" kill ") {
		w.t.Fatalf("the crash point %s did not fire exactly once: %q, %v", point, b, err)
	}
}

// arm is the environment that makes a process, or the supervisors it starts, die at a point.
func (w *world) arm(launch int, point string) []string {
	name := "HOLDFAST_CRASH"
	if strings.HasPrefix(point, "supervisor.") {
		name = "HOLDFAST_SUPERVISOR_CRASH"
	}
	return []string{name + "=" + point, name + "_LOG=" + w.fired(launch)}
}
