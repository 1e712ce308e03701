package bench_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// A session with twenty stdio servers: the answer, which waits for none of them, and the end of the first prompt, which waits until the
// tools of all are listed.
func BenchmarkSessionNewWithServers(b *testing.B) {
	w := newWorld(b)
	binary := filepath.Join(b.TempDir(), "mcpserver")
	if out, err := exec.Command("go", "build", "-o", binary, "holdfast/conformance/mcpserver").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	var servers []any
	for i := range 20 {
		servers = append(servers, map[string]any{"name": fmt.Sprintf("s%02d", i), "command": binary, "args": []string{}, "env": []any{}})
	}
	model := fakemodel.New(func(r fakemodel.Request) fakemodel.Reply {
		n := 0
		for _, t := range r.Tools {
			if strings.HasPrefix(t.Name, "mcp__") {
				n++
			}
		}
		if n != len(servers) {
			return fakemodel.Error(400, fmt.Sprintf("%d tools", n), "wrong")
		}
		return fakemodel.Text("Yes.")
	})
	defer model.Close()
	var answers, lists samples
	for b.Loop() {
		a := harness.Start(b, harness.Options{Binary: w.binary, Invalid: true, Env: append(model.Env("openai"), "HOLDFAST_HOME="+w.home)})
		a.Initialize()
		for range 5 {
			var r struct{ SessionID string }
			lists.take(func() {
				answers.take(func() { a.Must("session/new", map[string]any{"cwd": w.work, "mcpServers": servers}, &r) })
				w.turn(a, r.SessionID, "hello")
			})
			a.Must("session/close", map[string]any{"sessionId": r.SessionID}, nil)
		}
		w.end(a)
	}
	answers.report(b, "answered")
	lists.report(b, "listed")
}
