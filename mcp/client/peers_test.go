//go:build linux

package client

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

// peer starts one of the published servers.
func peer(t testing.TB, name string, change func(*Config)) *world {
	t.Helper()
	dir := harness.Peers(t, "@modelcontextprotocol/server-"+name)
	return start(t, nil, func(c *Config, o *Options) {
		c.Name, c.Command, c.Args = name, "node", []string{filepath.Join(dir, "dist", "index.js")}
		o.Limits.EOF, o.Limits.Grace = 0, 0
		change(c)
	})
}

func (w *world) use(tool, args string) Outcome {
	w.t.Helper()
	t := w.tool(tool)
	b, err := t.Arguments(json.RawMessage(args))
	if err != nil {
		w.t.Fatal(err)
	}
	sl, err := w.Acquire(soon(w.t), t)
	if err != nil {
		w.t.Fatal(err)
	}
	defer sl.Release()
	return sl.Call(soon(w.t), tool+args, b, nil)
}

func TestPeers_Everything(t *testing.T) {
	w := peer(t, "everything", func(c *Config) { c.Env = []string{"SEEN=yes"} })
	t.Logf("%d tools, aside %v, %+v", len(w.Tools()), w.Aside(), w.State())
	w.wantText(w.use("echo", `{"message":"grüße 😀"}`), KindOK, "grüße 😀")
	w.wantText(w.use("get-sum", `{"a":2,"b":3}`), KindOK, "5")
	w.wantText(w.use("get-tiny-image", `{}`), KindOK, "[image 1 of the answer, image/png, ")
	w.wantText(w.use("get-structured-content", `{"location":"Chicago"}`), KindOK, "temperature")
	if env := w.use("get-env", `{}`).Answer.Text; !strings.Contains(env, "SEEN") || strings.Contains(env, "GOPATH") {
		t.Errorf("its environment is %s", env)
	}
	var steps []string
	sl, err := w.Acquire(soon(t), w.tool("trigger-long-running-operation"))
	if err != nil {
		t.Fatal(err)
	}
	o := sl.Call(soon(t), "long", json.RawMessage(`{"duration":1,"steps":4}`), func(s string) { steps = append(steps, s) })
	sl.Release()
	w.wantText(o, KindOK, "completed")
	if len(steps) == 0 {
		t.Error("no progress was seen")
	}
	if _, err := w.tool("get-sum").Arguments(json.RawMessage(`{"a":"two"}`)); err == nil || !strings.Contains(err.Error(), "missing property 'b'") {
		t.Errorf("wrong arguments: %v", err)
	}
}

func TestPeers_Filesystem(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(file, []byte("hi"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := peer(t, "filesystem", func(c *Config) { c.Args = append(c.Args, dir) })
	w.wantText(w.use("read_text_file", `{"path":"`+file+`"}`), KindOK, "hi")
	w.wantText(w.use("edit_file", `{"path":"`+file+`","edits":[{"oldText":"hi","newText":"hi hi"}]}`), KindOK, "+hi hi")
	if b, err := os.ReadFile(file); err != nil || string(b) != "hi hi" {
		t.Errorf("the file holds %q, %v: it was edited more than once, or not", b, err)
	}
	w.wantText(w.use("read_text_file", `{"path":"/etc/passwd"}`), KindToolError, "denied")
}

func TestPeers_Memory(t *testing.T) {
	w := peer(t, "memory", func(c *Config) { c.Env = []string{"MEMORY_FILE_PATH=" + filepath.Join(t.TempDir(), "m.json")} })
	w.wantText(w.use("create_entities", `{"entities":[{"name":"A","entityType":"t","observations":["o"]}]}`), KindOK, `"A"`)
	w.wantText(w.use("read_graph", `{}`), KindOK, `"A"`)
}
