//go:build linux

package proc

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/sandbox"
)

// A command in a network of its own is supervised as any other: output, exit code, and a stop of its whole tree.
func TestOwnNetwork(t *testing.T) {
	try := exec.Command("/bin/true")
	try.SysProcAttr = &syscall.SysProcAttr{}
	sandbox.NetworkFlags(try.SysProcAttr, os.Getuid(), os.Getgid())
	if err := try.Run(); err != nil {
		t.Skipf("this system gives no network namespaces to users (%v); where it does this runs with go test -run TestOwnNetwork ./internal/proc", err)
	}
	run := func(script string, timeout time.Duration) (string, Result) {
		h := start(t, Spec{Dir: newDir(t), Argv: []string{"/bin/sh", "-c", script}, Cwd: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")},
			OwnNetwork: true, Timeout: timeout})
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
		return string(v.Head) + string(v.Tail), r
	}
	text, r := run("grep -c : /proc/net/dev; id -u; exit 3", 20*time.Second)
	if r.ExitCode == nil || *r.ExitCode != 3 || strings.Fields(text)[0] != "1" || strings.Fields(text)[1] != strconv.Itoa(os.Getuid()) {
		t.Errorf("%v: %q", r, text)
	}
	if _, r = run("sleep 600 & sleep 600", 300*time.Millisecond); r.Stopped != CauseDeadline || r.Left != 0 {
		t.Errorf("%v", r)
	}
}
