package security_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// peak is the most memory that a process has had, in bytes; 0 where the system does not tell.
func peak(t *testing.T, a *harness.Agent) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.PID()))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// bounded checks that an attack has not made the process grow without end.
func bounded(t *testing.T, a *harness.Agent, limit int64) {
	t.Helper()
	n := peak(t, a)
	t.Logf("at most %d MB", n>>20)
	if n > limit {
		t.Errorf("the process had %d MB, want at most %d", n>>20, limit>>20)
	}
}

// usable checks that the agent goes on as if nothing had been.
func (w *world) usable(a *harness.Agent) {
	w.t.Helper()
	id := w.open(a, w.work)
	w.prompt(a, id)
	if a.Text(id) != "done\n" {
		w.t.Errorf("afterwards it says %q", a.Text(id))
	}
}

// A file without an end, a pipe that nobody writes, a device: reading says so and holds nothing up.
func TestAttack_FilesWithoutAnEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, err := range map[string]error{"sparse": os.Truncate(w.put(w.work, "sparse", ""), 5<<30), "pipe": syscall.Mkfifo(filepath.Join(w.work, "pipe"), 0o644),
		"line": os.WriteFile(filepath.Join(w.work, "line"), bytes.Repeat([]byte("x"), 20<<20), 0o644)} {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	w.link("/dev/zero", "zero")
	for _, name := range []string{"sparse", "pipe", "zero", "line", "/dev/zero", "/dev/stdin", "/proc/self/mem"} {
		w.will(reach(name)...)
	}
	w.will(tool("grep", m{"pattern": "."}), tool("glob", m{"pattern": "*"}))
	a, _ := w.attack("edit")
	for i, r := range w.results() {
		if len(r) > 100<<10 {
			t.Errorf("result %d has %d bytes", i, len(r))
		}
	}
	bounded(t, a, 600<<20)
	w.usable(a)
}

// Patterns that would take for ever to match are matched in their time or refused.
func TestAttack_Patterns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.work, strings.Repeat("a", 200), strings.Repeat("a", 100_000)+"\n")
	deep := strings.Repeat("a/", 60)
	w.put(w.work, deep+"b.txt", "a\n")
	w.will(tool("grep", m{"pattern": "(a+)+$"}), tool("grep", m{"pattern": "(a|a)*b"}), tool("grep", m{"pattern": strings.Repeat("(", 2000) + strings.Repeat(")", 2000)}),
		tool("grep", m{"pattern": "((a{900}){900}){900}"}), tool("grep", m{"pattern": strings.Repeat("a?", 2000) + strings.Repeat("a", 2000)}))
	w.will(tool("glob", m{"pattern": strings.Repeat("*a", 60) + "b"}), tool("glob", m{"pattern": strings.Repeat("**/", 30) + "x"}), tool("glob", m{"pattern": strings.Repeat("{a,", 500)}),
		tool("glob", m{"pattern": strings.Repeat("{a*,*a}", 24)}), tool("glob", m{"pattern": strings.Repeat("{a,", 18) + strings.Repeat("}", 18)}),
		tool("glob", m{"pattern": strings.Repeat("**/a*/", 20) + "z"}), tool("grep", m{"pattern": "a", "glob": strings.Repeat("{a*,*a}", 24)}))
	a, _ := w.attack("ask")
	bounded(t, a, 600<<20)
	w.usable(a)
}

// A model sends arguments without an end, thousands of calls at once, a name of a megabyte: the turn ends, the session goes on.
func TestAttack_AnswerWithoutAnEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	big := strings.Repeat("x", 1<<20)
	w.will(tool("write", m{"path": "big.txt", "content": big}), tool("read", m{"path": big}), tool("shell", m{"command": "echo " + big}), fakemodel.Call{Name: big, Args: "{}"})
	w.will(fakemodel.Call{Name: "read", Args: strings.Repeat(`{"path":`, 100_000)}, fakemodel.Call{Name: "write", Args: `{"path":"a","content":` + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000) + `}`})
	a, _ := w.attack("ask")
	if r := w.results(); len(r) != 6 {
		t.Errorf("%d results", len(r))
	}
	w.absent(filepath.Join(w.work, "big.txt"), "a write that was refused")
	for _, q := range w.asked() {
		if len(q.Raw) > 64<<20 {
			t.Errorf("a question has %d bytes", len(q.Raw))
		}
	}
	bounded(t, a, 1500<<20)
	w.usable(a)
}

// A command prints without an end.
func TestAttack_OutputWithoutAnEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.choose = func(ask) string { return "allow_once" }
	w.will(tool("shell", m{"command": "yes evil"}))
	w.will(tool("shell", m{"command": "yes evil | tr -d '\\n'"}))
	a, _ := w.attack("ask")
	for _, r := range w.results() {
		if !strings.Contains(r, "printed too much") || len(r) > 64<<10 {
			t.Errorf("the model is told %d bytes: %.200s", len(r), r)
		}
	}
	bounded(t, a, 400<<20)
	w.usable(a)
}

// Lines that are nested a million deep, at each door.
func TestAttack_NestedInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start()
	id := w.open(a, w.work)
	deep := strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000)
	for i, line := range []string{
		`{"jsonrpc":"2.0","id":"n0","method":"session/prompt","params":{"sessionId":"` + id + `","prompt":` + deep + `}}`,
		`{"jsonrpc":"2.0","id":"n1","method":"session/new","params":{"cwd":"/","mcpServers":[],"_meta":` + deep + `}}`,
		deep, `{"jsonrpc":"2.0","id":` + deep + `}`, strings.Repeat(`{"a":`, 1_000_000),
	} {
		a.SendLine([]byte(line))
		t.Logf("line %d is sent", i)
	}
	w.prompt(a, id)
	bounded(t, a, 800<<20)
	w.usable(a)
}

// Thousands of calls in one answer are thousands of calls: each is on record, none is lost, and the user stops them with one word.
func TestAttack_CallsWithoutAnEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var calls []fakemodel.Call
	for i := range 5000 {
		calls = append(calls, tool("shell", m{"command": "echo " + strconv.Itoa(i)}))
	}
	w.will(calls...)
	w.choose = func(ask) string { return "" } // nobody answers
	a := w.start()
	id := w.open(a, w.work)
	prompt := a.Prompt(id, "go")
	harness.Eventually(t, "the first is asked about", func() bool { return len(w.asked()) > 0 })
	a.Notify("session/cancel", m{"sessionId": id})
	if msg := a.Await(prompt); !bytes.Contains(msg.Result, []byte("cancelled")) {
		t.Errorf("the turn ended with %s %v", msg.Result, msg.Error)
	}
	bounded(t, a, 800<<20)
	w.usable(a)
}
