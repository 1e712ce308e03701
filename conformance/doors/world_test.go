// Package doors_test holds every door to a goal against every other: what is done through one is done, is seen through all, and is refused
// with the same words. It drives the real binary; only the language model is played.
package doors_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

type object = map[string]any

// world is one store, one work tree and one model.
type world struct {
	t               *testing.T
	dir, home, work string
	model           *fakemodel.Server
	env             []string
}

func newWorld(t *testing.T, answer func(fakemodel.Request) fakemodel.Reply) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-") // short: the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), model: fakemodel.New(answer)}
	for _, d := range []string{w.home, w.work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.env = append(w.model.Env(fakemodel.Family()), "HOLDFAST_HOME="+w.home)
	t.Cleanup(func() {
		w.model.Close()
		harness.Eventually(t, "nothing writes there any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	return w
}

// start launches the product with a client; more is its environment, and makes it the build with crash points.
func (w *world) start(args []string, more ...string) *harness.Agent {
	w.t.Helper()
	plain, faulty, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	if len(more) > 0 {
		plain = faulty
	}
	return harness.Start(w.t, harness.Options{Binary: plain, Args: args, Env: append(append([]string{}, w.env...), more...), Invalid: args[0] == "mcp"})
}

// editor is an editor's agent.
func (w *world) editor(more ...string) *harness.Agent {
	w.t.Helper()
	a := w.start([]string{"acp"}, more...)
	a.Initialize()
	return a
}

// client is an MCP server that may do everything.
func (w *world) client(more ...string) *harness.Agent {
	w.t.Helper()
	c := w.start([]string{"mcp", "--authority", "full", "--trust", w.work}, more...)
	c.Must("initialize", object{"protocolVersion": "2025-11-25", "capabilities": object{}, "clientInfo": object{"name": "conformance", "version": "1"}}, nil)
	c.Notify("notifications/initialized", nil)
	return c
}

// cli runs a command line.
func (w *world) cli(args ...string) (out, errs string, code int) {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(plain, args...)
	cmd.Env, cmd.Dir = append([]string{"PATH=" + os.Getenv("PATH")}, w.env...), w.work
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// goal is what is looked at of a goal. all is everything that the door said.
type goal struct {
	GoalID, SessionID, Objective, Status, Phase, ReasonCode, Reason string
	ControlVersion, Revision                                        int64
	Requirements                                                    []struct {
		ID, Kind, Text, Result, JudgedBy, Reason, Origin string
		Confirmed                                        bool
	}
	Budget *struct{ Tokens int }
	all    object
}

func (g *goal) confirmed(id string) bool {
	for _, q := range g.Requirements {
		if q.ID == id {
			return q.Confirmed
		}
	}
	return false
}

// limit is how many tokens it may use, 0 without a limit.
func (g *goal) limit() int {
	if g.Budget == nil {
		return 0
	}
	return g.Budget.Tokens
}

func read(t testing.TB, raw []byte) *goal {
	t.Helper()
	g := &goal{}
	for _, v := range []any{g, &g.all} {
		if err := json.Unmarshal(raw, v); err != nil {
			t.Fatalf("no goal: %v\n%s", err, raw)
		}
	}
	if g.GoalID == "" {
		return nil
	}
	return g
}

// refusal is why a door did nothing.
type refusal struct{ code, text string }

func (r *refusal) String() string {
	if r == nil {
		return "done"
	}
	return "refused " + r.code + ": " + r.text
}

// tool calls a tool of an MCP server.
func tool(t testing.TB, c *harness.Agent, name string, args object) (json.RawMessage, *refusal) {
	t.Helper()
	raw, e := c.Call("tools/call", object{"name": name, "arguments": args})
	if e != nil {
		return nil, &refusal{"error", e.Error()}
	}
	return result(t, raw)
}

// result is the structured content of a tool's answer, or why it refused.
func result(t testing.TB, raw json.RawMessage) (json.RawMessage, *refusal) {
	t.Helper()
	var r struct {
		StructuredContent json.RawMessage
		IsError           bool
	}
	var bad struct {
		Error struct{ Code, Field, Message, Action string }
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	if !r.IsError {
		return r.StructuredContent, nil
	}
	if err := json.Unmarshal(r.StructuredContent, &bad); err != nil {
		t.Fatal(err)
	}
	return nil, &refusal{bad.Error.Code, strings.Join([]string{bad.Error.Field, bad.Error.Message, bad.Error.Action}, " ")}
}

// method calls a method of an agent.
func method(t testing.TB, a *harness.Agent, name string, params object) (json.RawMessage, *refusal) {
	t.Helper()
	raw, e := a.Call(name, params)
	if e == nil {
		return raw, nil
	}
	var data struct{ Code, Member string }
	_ = json.Unmarshal(e.Data, &data) // not every error has data
	if data.Code == "" && data.Member != "" {
		data.Code = "invalid_argument"
	}
	return nil, &refusal{data.Code, e.Message}
}
