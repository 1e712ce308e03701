//go:build linux

package proc

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// inTerminal runs a script in a terminal to its end, and returns all it printed.
func inTerminal(t *testing.T, script string, timeout time.Duration) (string, Result) {
	t.Helper()
	dir := newDir(t)
	h := start(t, Spec{Dir: dir, Argv: []string{"/bin/sh", "-c", script}, Cwd: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")}, Terminal: true, Timeout: timeout})
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r, err := h.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	v, err := h.Output(1<<20, false)
	if err != nil {
		t.Fatal(err)
	}
	if v.Total != r.OutputBytes {
		t.Errorf("the receipt says %d bytes, there are %d", r.OutputBytes, v.Total)
	}
	return string(v.Head) + string(v.Tail), r
}

func TestTerminal_IsOne(t *testing.T) {
	text, r := inTerminal(t, "test -t 0 && test -t 1 && test -t 2 && tty && stty size; cat; echo end of input", 20*time.Second)
	if r.ExitCode == nil || *r.ExitCode != 0 || !strings.Contains(text, "/dev/") || !strings.Contains(text, "40 120") || !strings.Contains(text, "end of input") {
		t.Errorf("%v: %q", r, text)
	}
}

// A terminal's output is whole when the receipt is there, and a stop ends what has it.
func TestTerminal_OutputAndStop(t *testing.T) {
	text, r := inTerminal(t, "seq 1 20000", 20*time.Second)
	if !strings.HasSuffix(text, "20000\r\n") {
		t.Errorf("%v: it ends in %q", r, text[max(0, len(text)-20):])
	}
	if _, r = inTerminal(t, "trap '' HUP; sleep 600 & sleep 600", 300*time.Millisecond); r.Stopped != CauseDeadline || r.Left != 0 {
		t.Errorf("%v", r)
	}
}
