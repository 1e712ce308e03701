package tools

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/internal/proc"
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

// Without a hook of its own the tool knows which causes leave a command running.
func TestShell_LetsGoByDefault(t *testing.T) {
	for cause, want := range map[error]bool{session.ErrDetach: true, session.ErrFenced: true, session.ErrStopped: false, context.Canceled: false} {
		if got := (Options{}).letsGo(cause); got != want {
			t.Errorf("%v: lets go %v", cause, got)
		}
	}
}

func TestShell_TextForTheModel(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"colour":        {"\x1b[1;31mred\x1b[0m", "red"},
		"link":          {"\x1b]8;;http://x\x1b\\text\x1b]8;;\x07", "text"},
		"character set": {"\x1b(Bplain\x1b[m", "plain"},
		"short":         {"\x1b7a\x1b8\x1b=b", "ab"},
		"progress":      {"10%\r50%\r100%\ndone\r\n", "100%\ndone\n"},
		"kept return":   {"line\r", "line"},
		"no text":       {"a\xffb\x00c\x7f", "a\uFFFDbc"},
		"accents":       {"é€😀", "é€😀"},
	} {
		if got := plainText(proc.View{Head: []byte(c.in)}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestShell_TitleIsOneLineAndTheWholeCommand(t *testing.T) {
	b := newBench(t)
	if got := b.plan("shell", args{"command": "echo one\necho two\n"}).Title; got != "echo one ⏎ echo two" {
		t.Error(got)
	}
}

func TestCommandEnv_EmptyIsMissing(t *testing.T) {
	all := "\n" + strings.Join(CommandEnv([]string{"PATH=/bin", "HOME=", "TERM="}, nil), "\n") + "\n"
	if strings.Contains(all, "\nHOME=\n") || !strings.Contains(all, "\nHOME=/") || !strings.Contains(all, "\nTERM=dumb\n") {
		t.Error(all)
	}
}
