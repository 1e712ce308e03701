package rpc

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// sink is a pipe whose other end counts lines.
func sink(b *testing.B) (out *os.File, counted chan int) {
	b.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	counted = make(chan int, 1)
	go func() {
		n := 0
		for sc := bufio.NewScanner(r); sc.Scan(); {
			n++
		}
		_ = r.Close()
		counted <- n
	}()
	return w, counted
}

// BenchmarkNotify is one notification of about 200 bytes, encoded, queued and written to a pipe that is read at the same time.
func BenchmarkNotify(b *testing.B) {
	in, stop := io.Pipe()
	out, counted := sink(b)
	c := New(in, out, echo)
	params := map[string]any{"sessionId": "sess_0123456789", "update": map[string]any{"sessionUpdate": "agent_message_chunk",
		"content": map[string]any{"type": "text", "text": strings.Repeat("word ", 15)}}}
	b.ReportAllocs()
	sent := 0
	for b.Loop() {
		if err := c.Notify("session/update", params); err != nil {
			b.Fatal(err)
		}
		sent++
	}
	if err := c.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	_ = stop.Close()
	<-c.Done()
	_ = out.Close()
	if n := <-counted; n != sent {
		b.Fatalf("%d lines came for %d notifications", n, sent)
	}
}

// BenchmarkRequest is one request and its answer.
func BenchmarkRequest(b *testing.B) {
	in, w := io.Pipe()
	r, out := io.Pipe()
	c := New(in, out, echo)
	lines := bufio.NewReader(r)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"method":"x","params":{"sessionId":"sess_0123456789"}}`+"\n", i); err != nil {
			b.Fatal(err)
		}
		if _, err := lines.ReadString('\n'); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	_ = w.Close()
	<-c.Done()
}

// BenchmarkLargestLine reads and classifies a request of 32 MiB.
func BenchmarkLargestLine(b *testing.B) {
	text := long(DefaultMaxLine)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		line, err := newLines(strings.NewReader(text), DefaultMaxLine).next()
		if err != nil {
			b.Fatal(err)
		}
		if m := classify(line); m.kind != request {
			b.Fatal("no request")
		}
	}
}
