//go:build linux

package client

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
	"time"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// BenchmarkCall and BenchmarkBareLibrary call the same tool of the same server: the difference is what we add.
func BenchmarkCall(b *testing.B) {
	w := start(b, nil, func(c *Config, _ *Options) { c.Args = nil })
	tool := w.tool("act")
	for i := 0; b.Loop(); i++ {
		args, err := tool.Arguments(json.RawMessage(`{"do":"ok","text":"hello"}`))
		if err != nil {
			b.Fatal(err)
		}
		sl, err := w.Acquire(b.Context(), tool)
		if err != nil {
			b.Fatal(err)
		}
		if o := sl.Call(b.Context(), fmt.Sprint(i), args, nil); o.Answer.Text != "hello" {
			b.Fatalf("%+v", o)
		}
		sl.Release()
	}
}

func BenchmarkBareLibrary(b *testing.B) {
	cmd := exec.Command(hostile)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	lib := mcpclient.NewClient(transport.NewIO(out, in, nil))
	b.Cleanup(func() {
		_ = lib.Close()
		_ = cmd.Wait() // its input has ended
	})
	if err := lib.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, err := lib.Initialize(b.Context(), mcp.InitializeRequest{}); err != nil {
		b.Fatal(err)
	}
	r := callRequest("act")
	r.Params.Arguments = json.RawMessage(`{"do":"ok","text":"hello"}`)
	for b.Loop() {
		if _, err := lib.CallTool(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTwentyServers is the time until twenty servers are ready, started at once.
func BenchmarkTwentyServers(b *testing.B) {
	for b.Loop() {
		var all []*world
		begun := time.Now()
		for range 20 {
			w := prepare(b, nil)
			w.Start()
			all = append(all, w)
		}
		for _, w := range all {
			if err := w.Wait(soon(b)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(time.Since(begun).Milliseconds()), "ms/ready")
		for _, w := range all {
			w.Close()
		}
	}
}
