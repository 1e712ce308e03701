// Package mcp_test holds `holdfast mcp` to the protocol and to its tools, from outside: raw lines, the official Inspector and the official
// TypeScript clients. The work is done by real agents; only the language model is played, by a local server that speaks the real wire.
package mcp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// world is one store, one work tree and one model. They outlive the processes of a test.
type world struct {
	t          *testing.T
	home, work string
	model      *fakemodel.Server
}

func newWorld(t *testing.T, answer func(fakemodel.Request) fakemodel.Reply) *world {
	t.Helper()
	if answer == nil {
		answer = func(fakemodel.Request) fakemodel.Reply { return fakemodel.Text("hello") }
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), model: fakemodel.New(answer)}
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.model.Close)
	return w
}

func (w *world) env() []string {
	return []string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_MODEL=openai/fake", "OPENAI_BASE_URL=" + w.model.URL()}
}

func binary(t testing.TB) string {
	t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// editor launches `holdfast acp` as an editor does.
func (w *world) editor(permission func(json.RawMessage) string) *harness.Agent {
	w.t.Helper()
	a := harness.Start(w.t, harness.Options{Binary: binary(w.t), Env: w.env(), Permission: permission})
	a.Initialize()
	return a
}

// client is one `holdfast mcp` with its client.
type client struct {
	*harness.Agent
	t       testing.TB
	schemas func() map[string]*jsonschema.Resolved
	killed  bool
}

// Kill sends SIGKILL and waits for the end.
func (c *client) Kill() {
	c.killed = true
	c.Agent.Kill()
}

// raw launches `holdfast mcp` and says nothing to it.
func (w *world) raw(args ...string) *client {
	w.t.Helper()
	return launch(w.t, w.env(), args...)
}

func launch(t testing.TB, env []string, args ...string) *client {
	t.Helper()
	a := harness.Start(t, harness.Options{Binary: binary(t), Args: append([]string{"mcp"}, args...), Env: env, Invalid: true})
	c := &client{Agent: a, t: t}
	c.schemas = sync.OnceValue(c.readSchemas)
	t.Cleanup(func() { // runs before the harness kills it
		if err := a.CloseInput(); (err != nil && !c.killed) || a.Stderr() != "" {
			t.Errorf("it ended with %v, stderr %q", err, a.Stderr())
		}
	})
	return c
}

// serve launches it with the work tree trusted, and shakes hands.
func (w *world) serve(args ...string) *client {
	w.t.Helper()
	c := w.raw(append([]string{"--trust", w.work}, args...)...)
	c.hello("2025-11-25")
	return c
}

func (c *client) hello(version string) json.RawMessage {
	c.t.Helper()
	raw, e := c.Agent.Call("initialize", map[string]any{"protocolVersion": version, "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "conformance", "version": "1"}})
	if e != nil {
		c.t.Fatal(e)
	}
	c.Notify("notifications/initialized", nil)
	return raw
}

type listed struct {
	Name, Title, Description  string
	InputSchema, OutputSchema json.RawMessage
	Annotations               map[string]any
}

func (c *client) tools() []listed {
	c.t.Helper()
	var r struct{ Tools []listed }
	c.Must("tools/list", nil, &r)
	return r.Tools
}

func (c *client) readSchemas() map[string]*jsonschema.Resolved {
	out := map[string]*jsonschema.Resolved{}
	for _, tool := range c.tools() {
		var s jsonschema.Schema
		if err := json.Unmarshal(tool.OutputSchema, &s); err != nil {
			c.t.Fatalf("%s: %v", tool.Name, err)
		}
		r, err := s.Resolve(nil)
		if err != nil {
			c.t.Fatalf("%s: %v", tool.Name, err)
		}
		out[tool.Name] = r
	}
	return out
}

// problem is what a refused call says.
type problem struct{ Code, Field, Message, Action string }

// call calls a tool and checks the form of its result: it holds against the output schema, and the text is the same.
func (c *client) call(name string, args any, v any) *problem {
	c.t.Helper()
	raw, e := c.Agent.Call("tools/call", map[string]any{"name": name, "arguments": args})
	if e != nil {
		c.t.Fatalf("%s: %v", name, e)
	}
	return c.result(name, raw, v)
}

func (c *client) result(name string, raw json.RawMessage, v any) *problem {
	c.t.Helper()
	var r struct {
		Content           []struct{ Type, Text string }
		StructuredContent json.RawMessage
		IsError           bool
	}
	decode(c.t, raw, &r)
	var structured any
	decode(c.t, r.StructuredContent, &structured)
	if err := c.schemas()[name].Validate(structured); err != nil {
		c.t.Errorf("%s: the result is not what its schema says: %v\n%s", name, err, raw)
	}
	if len(r.Content) != 1 || r.Content[0].Type != "text" {
		c.t.Fatalf("%s: content %+v", name, r.Content)
	}
	text := r.Content[0].Text
	if r.IsError {
		var failed struct{ Error problem }
		decode(c.t, r.StructuredContent, &failed)
		p := failed.Error
		if p.Code == "" || p.Message == "" || p.Action == "" || !strings.HasPrefix(text, p.Code+": ") || strings.Contains(text, "\n") {
			c.t.Errorf("%s: refused with %s", name, raw)
		}
		return &p
	}
	if text != string(r.StructuredContent) {
		c.t.Errorf("%s: the text differs from the structured content: %s", name, raw)
	}
	if v != nil {
		decode(c.t, r.StructuredContent, v)
	}
	return nil
}

// must is call for what has to succeed.
func (c *client) must(name string, args any, v any) {
	c.t.Helper()
	if p := c.call(name, args, v); p != nil {
		c.t.Fatalf("%s: %+v", name, *p)
	}
}

// refused checks that a call fails with a code, and that the words name what is wrong.
func (c *client) refused(what, name string, args any, code string, words ...string) {
	c.t.Helper()
	p := c.call(name, args, nil)
	if p == nil || p.Code != code {
		c.t.Errorf("%s: got %+v, want %s", what, p, code)
		return
	}
	for _, word := range words {
		if !strings.Contains(p.Field+" "+p.Message+" "+p.Action, word) {
			c.t.Errorf("%s: %+v does not say %q", what, *p, word)
		}
	}
}

func decode(t testing.TB, raw json.RawMessage, v any) {
	t.Helper()
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatalf("decode %s: %v", raw, err)
	}
}

type object = map[string]any

type goal struct {
	GoalID, SessionID, Objective, Status, Phase, ReasonCode string
	ControlVersion, Revision                                int64
	Requirements                                            []struct{ ID, Kind, Text, Result string }
}

type executor struct {
	Alive bool
	Hint  string
}

type changed struct {
	Goal     goal
	Executor executor
}

func (c *client) create(args object) changed {
	c.t.Helper()
	if args["objective"] == nil {
		args["objective"] = "Produce out.txt."
	}
	var r changed
	c.must("create_goal", args, &r)
	return r
}

func (c *client) goal(id string) goal {
	c.t.Helper()
	var r struct{ Goal goal }
	c.must("get_goal", object{"goalId": id}, &r)
	return r.Goal
}

func (c *client) achieved(id string) {
	c.t.Helper()
	harness.Eventually(c.t, "the goal is achieved", func() bool { return c.goal(id).Status == "achieved" })
}

// pursuing plays a worker that writes out.txt and offers it, and a reviewer that reads it and accepts.
func pursuing(r fakemodel.Request) fakemodel.Reply {
	called := map[string]string{}
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			called[c.Name] = c.ID
		}
	}
	for _, tool := range r.Tools {
		if tool.Name != "submit_review" {
			continue
		}
		if called["read"] == "" {
			return fakemodel.Calls(fakemodel.Call{Name: "read", Args: `{"path":"out.txt"}`})
		}
		return fakemodel.Calls(fakemodel.Call{Name: "submit_review", Args: encode(object{"requirements": []any{
			object{"id": "objective", "result": "met", "evidence": []string{called["read"]}, "reason": "it was read"}}})})
	}
	switch {
	case called["write"] == "":
		return fakemodel.Calls(fakemodel.Call{Name: "write", Args: `{"path":"out.txt","content":"result\n"}`})
	case called["update_goal"] == "":
		return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"candidate","text":"out.txt is there"}`})
	}
	return fakemodel.Text("offered")
}

// command is the answer with one shell command.
func command(line string) fakemodel.Reply {
	return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: encode(object{"command": line})})
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (w *world) file(name string) string {
	b, _ := os.ReadFile(filepath.Join(w.work, name))
	return string(b)
}

// unanswered is a client that leaves questions open.
func unanswered(json.RawMessage) string { return "" }
