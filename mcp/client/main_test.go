//go:build linux

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

var hostile string // the built server of the suite

func TestMain(m *testing.M) {
	if text := os.Getenv("MCP_TEST_DRIVER"); text != "" {
		drive(text)
	}
	dir, err := os.MkdirTemp("", "mcp-client-")
	if err != nil {
		panic(err)
	}
	hostile = filepath.Join(dir, "mcpserver")
	if out, err := exec.Command("go", "build", "-o", hostile, "holdfast/conformance/mcpserver").CombinedOutput(); err != nil {
		panic(err.Error() + ": " + string(out))
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			println(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

const limit = 60 * time.Second

func contextFor(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// eventually polls until a fact holds.
func eventually(t testing.TB, what string, fact func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !fact(); <-time.After(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// world is one server under test and what was seen of it.
type world struct {
	*Server
	t    testing.TB
	log  string // of the server program
	logs *bytes.Buffer

	mu      sync.Mutex
	late    map[string]Answer
	changed int
}

var tags atomic.Int64 // each world has its own

type plan map[string]any

// start brings the hostile server up. Options may be changed before.
func start(t testing.TB, p plan, change ...func(*Config, *Options)) *world {
	t.Helper()
	w := prepare(t, p, change...)
	w.Start()
	if err := w.Wait(soon(t)); err != nil {
		var e *StartError
		errors.As(err, &e)
		t.Fatalf("%v\n%+v", err, e)
	}
	return w
}

func prepare(t testing.TB, p plan, change ...func(*Config, *Options)) *world {
	t.Helper()
	w := &world{t: t, log: filepath.Join(t.TempDir(), "calls"), late: map[string]Answer{}, logs: &bytes.Buffer{}}
	if p == nil {
		p = plan{}
	}
	if p["log"] == nil {
		p["log"] = w.log
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Name: "hostile", Command: hostile, Args: []string{"-plan", string(b)}, Dir: t.TempDir()}
	o := Options{Tag: fmt.Sprintf("test-%d-%d", os.Getpid(), tags.Add(1)), Log: zerolog.New(&locked{b: w.logs}), Limits: Limits{EOF: 500 * time.Millisecond, Term: 500 * time.Millisecond,
		Grace: 300 * time.Millisecond, Backoff: 10 * time.Millisecond}}
	o.Late = func(ticket string, a Answer) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.late[ticket] = a
	}
	o.Changed = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.changed++
	}
	for _, f := range change {
		f(&cfg, &o)
	}
	w.Server = New(cfg, o)
	t.Cleanup(w.Close)
	return w
}

type locked struct {
	mu sync.Mutex
	b  *bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// tool finds a tool by the server's own name.
func (w *world) tool(name string) Tool {
	w.t.Helper()
	for _, t := range w.Tools() {
		if t.Name == name {
			return t
		}
	}
	w.t.Fatalf("there is no tool %q among %d", name, len(w.Tools()))
	return Tool{}
}

// act calls the tool act. The ticket is the action unless one is given.
func (w *world) act(args map[string]any, ticket ...string) Outcome {
	w.t.Helper()
	return w.actWith(context.Background(), nil, args, ticket...)
}

func (w *world) actWith(ctx context.Context, progress func(string), args map[string]any, ticket ...string) Outcome {
	w.t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		w.t.Fatal(err)
	}
	tool := w.tool("act")
	if b, err = tool.Arguments(b); err != nil {
		w.t.Fatal(err)
	}
	sl, err := w.Acquire(soon(w.t), tool)
	if err != nil {
		w.t.Fatal(err)
	}
	defer sl.Release()
	id := args["do"].(string)
	if len(ticket) > 0 {
		id = ticket[0]
	}
	return sl.Call(ctx, id, b, progress)
}

// sent is how many calls the server has noted.
func (w *world) sent() int {
	b, err := os.ReadFile(w.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

func (w *world) wantText(o Outcome, kind, text string) {
	w.t.Helper()
	if !o.Answered || o.Answer.Kind != kind || !strings.Contains(o.Answer.Text, text) {
		w.t.Fatalf("outcome %+v, kind %q, text %.300q; want %s %q", o.Reason, o.Answer.Kind, o.Answer.Text, kind, text)
	}
}

func (w *world) wantUnknown(o Outcome, reason string) {
	w.t.Helper()
	if o.Answered || !strings.Contains(o.Reason, reason) {
		w.t.Fatalf("answered %v (%.200s), reason %q; want unknown: %q", o.Answered, o.Answer.Text, o.Reason, reason)
	}
}

func callRequest(name string) (r mcp.CallToolRequest) {
	r.Params.Name = name
	return r
}
