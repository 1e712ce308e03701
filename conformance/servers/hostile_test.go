package servers_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"holdfast/conformance/harness"
)

var hostile struct {
	once sync.Once
	dir  string
	err  error
}

// hostileBinary builds the server that misbehaves, once for all tests.
func hostileBinary(t testing.TB) string {
	t.Helper()
	hostile.once.Do(func() {
		if hostile.dir, hostile.err = os.MkdirTemp("", "hostile-"); hostile.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", filepath.Join(hostile.dir, "mcpserver"), "holdfast/conformance/mcpserver").CombinedOutput()
		if err != nil {
			t.Logf("%s", out)
		}
		hostile.err = err
	})
	if hostile.err != nil {
		t.Fatal(hostile.err)
	}
	return filepath.Join(hostile.dir, "mcpserver")
}

// plan is how a hostile server behaves.
type plan map[string]any

// hostile adds a server that behaves as planned. It logs each call in the file NAME.calls, and each of its lives in NAME.lives.
func (w *world) hostile(name string, p plan) {
	w.t.Helper()
	w.serve(name, hostileBinary(w.t), "-plan", w.planned(name, p))
}

func (w *world) planned(name string, p plan) string {
	all := plan{"log": w.path(name + ".calls"), "lives": w.path(name + ".lives")}
	for k, v := range p {
		all[k] = v
	}
	return encode(all)
}

// path is a file beside the work tree.
func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) touch(name string) {
	w.t.Helper()
	if err := os.WriteFile(w.path(name), nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) lines(name string) []string {
	b, err := os.ReadFile(w.path(name))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// calls are the calls that a server has received, by what they said.
func (w *world) calls(name string) []string {
	var out []string
	for _, l := range w.lines(name + ".calls") {
		var c struct{ Do string }
		if json.Unmarshal([]byte(l), &c) == nil {
			out = append(out, c.Do)
		}
	}
	return out
}

// lives are the processes that a server has had.
func (w *world) lives(name string) []int {
	var out []int
	for _, l := range w.lines(name + ".lives") {
		if pid, err := strconv.Atoi(l); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// begun waits until a server has received so many calls.
func (w *world) begun(name string, n int) {
	w.t.Helper()
	harness.Eventually(w.t, "the call reaches the server", func() bool { return len(w.calls(name)) >= n })
}

// alive tells whether a process runs. A zombie does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// allGone waits until none of a server's processes is left.
func (w *world) allGone(name string) {
	w.t.Helper()
	harness.Eventually(w.t, "the processes of "+name+" end", func() bool {
		for _, pid := range w.lives(name) {
			if alive(pid) {
				return false
			}
		}
		return true
	})
}

// act is a call of the hostile server's tool.
func act(do string, n int, text string) map[string]any {
	return map[string]any{"do": do, "n": n, "text": text}
}
