package tools

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/session"
)

func TestShell_ResultForTheModel(t *testing.T) {
	b := newBench(t)
	out := b.must("shell", args{"command": "printf '\\033[31mred\\033[0m\\xff'; echo; echo oops >&2; exit 3"})
	if out.Text != "red\uFFFD\noops\n[exit code 3]" || out.ExitCode == nil || *out.ExitCode != 3 || !out.IsError || out.Digest == "" {
		t.Errorf("%+v", out)
	}
	b.env.RunDir += "2"
	if out := b.must("shell", args{"command": "read x; echo \"got:$x\"; pwd"}); !strings.HasPrefix(out.Text, "got:\n"+b.env.Cwd) || out.IsError {
		t.Errorf("stdin is not closed, or another directory: %+v", out)
	}
	b.env.RunDir += "3"
	if out := b.must("shell", args{"command": "yes | head -c 200000"}); len(out.Text) > maxResult+200 || !strings.Contains(out.Text, "bytes cut here]") {
		t.Errorf("%d bytes", len(out.Text))
	}
	b.env.RunDir += "4"
	if out := b.must("shell", args{"command": "sleep 30", "timeout_seconds": 1}); out.Stopped != "deadline" || !strings.Contains(out.Text, "may have had effects") {
		t.Errorf("%+v", out)
	}
	for _, a := range []args{{"command": " "}, {"command": "x", "timeout_seconds": 99999}, {}} {
		b.refused("shell", a)
	}
}

func (b *bench) plan(name string, a args) session.Plan {
	b.t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		b.t.Fatal(err)
	}
	pl, err := b.tool(name).Plan(b.env, raw)
	if err != nil {
		b.t.Fatal(err)
	}
	return pl
}

// begun starts a command that says when it runs, and returns what its Run will return.
func (b *bench) begun(ctx context.Context, command string) <-chan error {
	b.t.Helper()
	done := make(chan error, 1)
	go func() {
		out, err := b.tool("shell").Run(ctx, b.env, b.plan("shell", args{"command": "touch begun; " + command}), func(session.Output) {})
		if err == nil && out.Stopped != "" {
			err = errors.New("stopped: " + out.Text)
		}
		done <- err
	}()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		if _, err := os.Stat(b.path("begun")); err == nil {
			return done
		}
	}
	b.t.Fatal("the command did not begin")
	return nil
}

func TestShell_StopSaysThatItHadStarted(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := b.begun(ctx, "sleep 60")
	cancel(session.ErrStopped)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "had started and was stopped by the user") {
		t.Errorf("%v", err)
	}
}

func TestShell_DetachLeavesItRunningAndReattachGetsTheResult(t *testing.T) {
	b := newBench(t)
	b.opt.IsDetach = func(err error) bool { return errors.Is(err, session.ErrDetach) }
	ctx, cancel := context.WithCancelCause(t.Context())
	done := b.begun(ctx, "while [ ! -e go ]; do sleep 0.01; done; echo finished; exit 4")
	cancel(session.ErrDetach)
	if err := <-done; !errors.Is(err, session.ErrDetach) {
		t.Fatalf("%v", err)
	}
	probe := func() session.Finding {
		t.Helper()
		f, err := b.tool("shell").(session.Prober).Probe(t.Context(), b.env, session.Plan{})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if got := probe().Fact; got != session.FactRunning {
		t.Fatalf("it is %s", got)
	}
	b.put("go", "")
	out, err := b.tool("shell").(session.Reattacher).Reattach(t.Context(), b.env, session.Plan{}, func(session.Output) {})
	if err != nil || out.Text != "finished\n[exit code 4]" {
		t.Errorf("%+v, %v", out, err)
	}
	if f := probe(); f.Fact != session.FactCompleted || f.By != session.SettledByReceipt || *f.Output.ExitCode != 4 {
		t.Errorf("%+v", f)
	}
}

func TestCommandEnv_HasNoSecretsAndWorksFromNothing(t *testing.T) {
	env := CommandEnv([]string{"PATH=/bin", "OPENAI_API_KEY=sk-1", "HOLDFAST_HOME=/x", "PAGER=less"}, func(n string) bool { return n == "OPENAI_API_KEY" })
	all := strings.Join(env, "\n")
	for _, bad := range []string{"sk-1", "HOLDFAST_", "less"} {
		if strings.Contains(all, bad) {
			t.Errorf("%q reaches commands:\n%s", bad, all)
		}
	}
	for _, want := range []string{"PATH=/bin", "HOME=/", "PAGER=cat", "GIT_TERMINAL_PROMPT=0", "TERM=dumb"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing:\n%s", want, all)
		}
	}
}
