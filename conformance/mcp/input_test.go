package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/conformance/harness"
)

// Whatever comes in, the connection lives: what is wrong is answered, what is empty is nothing, and the next request is served.
func TestInput_Hostile(t *testing.T) {
	w := newWorld(t, nil)
	c := w.serve()
	alive := func(after string) {
		t.Helper()
		if _, e := c.Agent.Call("ping", object{}); e != nil {
			t.Errorf("after %s: %v", after, e)
		}
	}
	errors := 0
	for _, bad := range []struct {
		what, line string
		code       int // 0: no answer at all
	}{
		{"a blank line", "", 0},
		{"spaces", "  \t ", 0},
		{"no JSON", "hello", -32700},
		{"half of it", `{"jsonrpc":"2.0","id":1`, -32700},
		{"two on a line", `{"jsonrpc":"2.0","id":1,"method":"ping"}{}`, -32700},
		{"an empty batch", "[]", -32600},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, -32600},
		{"a string", `"ping"`, -32600},
		{"null", "null", -32600},
		{"a null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, -32600},
		{"an object as id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600},
		{"an answer to nothing", `{"jsonrpc":"2.0","id":99,"result":{}}`, 0},
		{"a failure of nothing", `{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"x"}}`, 0},
		{"an unknown notification", `{"jsonrpc":"2.0","method":"notifications/unknown"}`, 0},
		{"a cancel of nothing", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`, 0},
		{"a cancel without an id", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, 0},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"method\":\"\xff\xfe\"}", 0},
	} {
		c.SendLine([]byte(bad.line))
		alive(bad.what)
		var last harness.Message
		seen := 0
		for _, m := range c.Log() {
			if m.Error != nil {
				seen, last = seen+1, m
			}
		}
		if want := errors + min(1, -bad.code); seen != want {
			t.Errorf("%s: %d errors, want %d; last %s", bad.what, seen, want, last.Raw)
		} else if bad.code != 0 && (last.Error.Code != bad.code || string(last.ID) != "null") {
			t.Errorf("%s: %s", bad.what, last.Raw)
		}
		errors = seen
	}
	for _, unknown := range []string{"resources/list", "prompts/list", "logging/setLevel", "tools/delete"} {
		if _, e := c.Agent.Call(unknown, object{}); e == nil {
			t.Errorf("%s is answered", unknown)
		}
	}
}

// Ids come back as they went out: big ones, strings, fractions.
func TestInput_IDs(t *testing.T) {
	w := newWorld(t, nil)
	c := w.serve()
	for _, id := range []string{`9007199254740993`, `-1`, `0`, `"a b"`, `""`, `1.5`} {
		c.SendLine([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`))
		if _, ok := c.Find(func(m harness.Message) bool { return string(m.ID) == id && m.Result != nil }); !ok {
			t.Errorf("the id %s does not come back", id)
		}
	}
}

// A long line is served; a longer one is refused and costs no memory.
func TestInput_LongLines(t *testing.T) {
	w := newWorld(t, nil)
	c := w.serve()
	g := c.create(object{"cwd": w.work, "objective": strings.Repeat("long ", 1<<20)}).Goal
	if len(g.Objective) != 5<<20 {
		t.Errorf("the objective has %d bytes", len(g.Objective))
	}
	c.must("update_goal", object{"goalId": g.GoalID, "action": "end"}, nil)
	before := peak(t, c.PID())
	for range 3 {
		c.SendLine(bytes.Repeat([]byte("x"), 50<<20))
	}
	harness.Eventually(t, "the long lines are refused", func() bool {
		n := 0
		for _, m := range c.Log() {
			if m.Error != nil && m.Error.Code == -32600 && strings.Contains(m.Error.Message, "longer") {
				n++
			}
		}
		return n == 3
	})
	if grown := peak(t, c.PID()) - before; grown > 150<<10 {
		t.Errorf("it grew by %d KiB", grown)
	}
	c.must("list_goals", object{"limit": 1}, nil)
}

// peak is the largest resident size so far, in KiB.
func peak(t *testing.T, pid int) (kib int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("there is no /proc here; to run it: go test ./conformance/mcp on Linux")
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	if _, err := fmt.Sscanf(rest, "%d", &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}

// The end of input does not lose what was asked before it, not even a last line without its end.
func TestEnd_AfterTheLastRequests(t *testing.T) {
	w := newWorld(t, nil)
	c := w.raw("--trust", w.work)
	var ids []string
	for i := range 20 {
		ids = append(ids, c.Begin("tools/call", object{"name": "create_goal", "arguments": object{"cwd": w.work, "objective": "x", "idempotencyKey": fmt.Sprint(i)}}))
	}
	if err := c.CloseInput(); err != nil {
		t.Fatalf("it ended with %v", err)
	}
	for _, id := range ids {
		if m := c.Await(id); m.Error != nil || strings.Contains(string(m.Result), "isError") {
			t.Errorf("request %s: %s", id, m.Raw)
		}
	}
	var all struct{ Goals []goal }
	if w.serve().must("list_goals", object{}, &all); len(all.Goals) != 20 {
		t.Errorf("%d goals", len(all.Goals))
	}
}

// SIGTERM is an end like the end of input, also before anything was said.
func TestEnd_SIGTERM(t *testing.T) {
	w := newWorld(t, nil)
	for _, args := range [][]string{nil, {"--work"}} {
		c := w.raw(args...)
		c.must("list_goals", object{}, nil)
		c.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Errorf("%v: ended with %v", args, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(w.home, "run", "*-*.lock")); err != nil || len(left) != 0 {
		t.Errorf("lock files are left: %v, %v", left, err)
	}
}

// A cancelled request gets no answer. What it stored stands, and its key finds it.
func TestInput_Cancelled(t *testing.T) {
	w := newWorld(t, nil)
	c := w.serve()
	c.must("list_goals", object{}, nil)
	free := w.hold()
	args := object{"cwd": w.work, "objective": "x", "idempotencyKey": "k"}
	id := c.Begin("tools/call", object{"name": "create_goal", "arguments": args})
	c.Notify("notifications/cancelled", object{"requestId": json.RawMessage(id)})
	if _, e := c.Agent.Call("ping", object{}); e != nil { // the cancel has been read
		t.Fatal(e)
	}
	free()
	var all struct{ Goals []goal }
	harness.Eventually(t, "the goal is stored", func() bool { c.must("list_goals", object{}, &all); return len(all.Goals) == 1 })
	if again := c.create(args); again.Goal.GoalID != all.Goals[0].GoalID {
		t.Errorf("a repeat made %s besides %s", again.Goal.GoalID, all.Goals[0].GoalID)
	}
	if err := c.CloseInput(); err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Log() {
		if string(m.ID) == id {
			t.Errorf("a cancelled request is answered with %s", m.Raw)
		}
	}
}

// hold keeps everybody from writing to the store, as a suspended process does, until the result is called.
func (w *world) hold() (free func()) {
	w.t.Helper()
	gate, err := os.OpenFile(filepath.Join(w.home, "run", "gate.lock"), os.O_RDWR, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := syscall.Flock(int(gate.Fd()), syscall.LOCK_EX); err != nil {
		w.t.Fatal(err)
	}
	return func() { _ = gate.Close() }
}

// A store that cannot be used is named by every call, and everything that needs none is served. Once it is repaired, calls work.
func TestStore_CannotBeOpened(t *testing.T) {
	w := newWorld(t, nil)
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(w.home, "holdfast.db")
	if err := os.WriteFile(db, []byte("this is not a database, whatever it is"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {"--work"}} {
		c := w.serve(args...)
		if n := len(c.tools()); n != 11 {
			t.Errorf("%d tools", n)
		}
		c.refused("a listing", "list_goals", object{}, "store_corrupt", "backups")
		c.refused("a goal", "create_goal", object{"cwd": w.work, "objective": "x"}, "store_corrupt", "backups")
		if b, err := os.ReadFile(db); err != nil || !bytes.HasPrefix(b, []byte("this is not")) {
			t.Errorf("the file is now %q, %v", b, err)
		}
		if err := c.CloseInput(); err != nil {
			t.Errorf("%v: ended with %v", args, err)
		}
	}
	c := w.serve()
	c.refused("a listing", "list_goals", object{}, "store_corrupt")
	if err := os.RemoveAll(w.home); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	c.must("list_goals", object{}, nil)
	relative := launch(t, []string{"HOLDFAST_HOME=here"})
	relative.refused("a relative home", "list_goals", object{}, "store_unwritable", "HOLDFAST_HOME")
}

// Somebody who holds the store delays only who writes: reading goes on, and a write is refused in words instead of waiting for ever.
func TestStore_Busy(t *testing.T) {
	w := newWorld(t, nil)
	c := w.serve()
	c.create(object{"cwd": w.work})
	defer w.hold()()
	var writes []string
	for range 20 {
		writes = append(writes, c.Begin("tools/call", object{"name": "create_goal", "arguments": object{"cwd": w.work, "objective": "x"}}))
	}
	for range 20 {
		c.must("list_goals", object{}, nil)
	}
	for _, m := range c.Log() {
		for _, id := range writes {
			if string(m.ID) == id {
				t.Errorf("a write was answered while the store was held: %s", m.Raw)
			}
		}
	}
	for _, id := range writes {
		if p := c.result("create_goal", c.Await(id).Result, nil); p == nil || p.Code != "store_busy" {
			t.Errorf("a write ended with %+v", p)
		}
	}
}

// A client that does not read, or goes away, does not keep the process.
func TestEnd_ClientThatDoesNotRead(t *testing.T) {
	w := newWorld(t, nil)
	in, out := pipe(t), pipe(t)
	cmd := start(t, w, in.r, out.w)
	_ = in.r.Close()
	_ = out.w.Close()
	list := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n")
	for range 20 { // more than a pipe holds
		if _, err := in.w.Write(list); err != nil {
			t.Fatal(err)
		}
	}
	_ = in.w.Close()
	ended(t, cmd)

	in, out = pipe(t), pipe(t)
	cmd = start(t, w, in.r, out.w)
	_ = in.r.Close()
	_ = out.w.Close()
	_ = out.r.Close()
	_, _ = in.w.Write(list)
	ended(t, cmd) // its input is still open
	_ = in.w.Close()
}

func ended(t *testing.T, wait <-chan error) {
	t.Helper()
	select {
	case err := <-wait:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(harness.Limit):
		t.Fatal("it did not end")
	}
}
