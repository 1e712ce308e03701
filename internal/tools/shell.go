package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"holdfast/internal/proc"
	"holdfast/internal/secret"
	"holdfast/session"
)

type shellArgs struct {
	Command        string `json:"command"`
	TimeoutSeconds int    `json:"timeout_seconds,omitempty"`
	Background     bool   `json:"background,omitempty"`
	PTY            bool   `json:"pty,omitempty"`
}

const (
	defaultTimeout = 120
	maxTimeout     = 3600
	outputCap      = 64 << 20  // bytes on disk after which a command is stopped
	backgroundCap  = 256 << 20 // the same for one in the background
	progressEvery  = 500 * time.Millisecond
	liveLimit      = 8 << 10 // bytes of one live update
)

type shellTool struct{ o Options }

func (shellTool) Spec() session.ToolSpec {
	return spec("shell", "Run a command in the working directory. Standard input is closed. The result has the end and the beginning of the output and the exit code. "+
		"A command that leaves a process in the background returns at once. What should go on while you work, such as a server or a watcher, "+
		"is started with background: the call returns at once with a name, shell_output reads what it prints, shell_kill ends it, and you are told when it ends. "+
		"It goes on over turns and restarts. With pty the command gets a terminal, with nobody at it: for programs that behave differently without one.",
		`{"type":"object","properties":{"command":{"type":"string"},"timeout_seconds":{"type":"integer","description":"120 unless told, at most 3600; `+
			`in the background no limit unless told"},"background":{"type":"boolean"},"pty":{"type":"boolean"}},"required":["command"],"additionalProperties":false}`)
}
func (shellTool) Class() session.Class { return session.Unknown }
func (shellTool) Kind() session.Kind   { return session.KindExecute }
func (shellTool) Version() string      { return "3" }

func (t shellTool) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in shellArgs
	if err := decodeArgs("shell", args, &in, "command"); err != nil {
		return session.Plan{}, err
	}
	if strings.TrimSpace(in.Command) == "" {
		return session.Plan{}, failf("The command is empty.")
	}
	if in.TimeoutSeconds < 0 || in.TimeoutSeconds > maxTimeout {
		return session.Plan{}, failf("timeout_seconds must be from 1 to %d.", maxTimeout)
	}
	if in.TimeoutSeconds == 0 && !in.Background {
		in.TimeoutSeconds = defaultTimeout
	}
	title := strings.ReplaceAll(strings.TrimSpace(in.Command), "\n", " ⏎ ") // all of it: it is what the user approves
	if in.PTY {
		title = "In a terminal: " + title
	}
	if in.Background {
		title = "In the background: " + title
	}
	pl, err := plan(in, title)
	pl.Terminal = in.PTY
	pl.Command, pl.TimeoutMs = in.Command, int64(in.TimeoutSeconds)*1000
	if in.Background {
		pl.Background = &session.BackgroundRef{Starts: true}
	}
	t.o.commandReach(env, &pl)
	return pl, err
}

func (t shellTool) Run(ctx context.Context, env session.ToolEnv, pl session.Plan, progress func(session.Output)) (session.Output, error) {
	shell := "/bin/sh"
	if bash, err := exec.LookPath("bash"); err == nil {
		shell = bash
	}
	limit := int64(outputCap)
	if starts(pl) {
		limit = backgroundCap
	}
	how, environ, err := t.o.Sandbox.wrap(ctx, pl, []string{shell, "-c", pl.Command}, env.Env)
	if err != nil {
		return session.Output{}, &session.NotStartedError{Message: fmt.Sprintf("The command was not started: %v.", err)}
	}
	h, err := proc.Start(proc.Spec{Dir: env.RunDir, Argv: how.Argv, OwnNetwork: how.OwnNetwork, Cwd: env.Cwd, Env: environ,
		Timeout: time.Duration(pl.TimeoutMs) * time.Millisecond, OutputCap: limit, Terminal: pl.Terminal,
		Hide: t.o.Mask.Values()})
	if err != nil && starts(pl) {
		return session.Output{}, &session.NotStartedError{Message: fmt.Sprintf("The command could not be started: %v.", err)}
	}
	if err != nil {
		return session.Output{}, failf("The command could not be started: %v.", err)
	}
	if starts(pl) {
		return started(pl), nil
	}
	out, err := t.wait(ctx, h.Masking(t.o.Mask), progress)
	return noted(pl, out), err
}

// noted is a result that says how the command ran.
func noted(pl session.Plan, out session.Output) session.Output {
	if out.Text != "" {
		out.Text += confinedNote(pl, out.IsError)
	}
	return out
}

// Reattach waits for a command that outlived the process which started it.
func (t shellTool) Reattach(ctx context.Context, env session.ToolEnv, pl session.Plan, progress func(session.Output)) (session.Output, error) {
	out, err := t.wait(ctx, t.o.command(env.RunDir), progress)
	return noted(pl, out), err
}

// Kill ends a command with everything it started.
func (t shellTool) Kill(ctx context.Context, env session.ToolEnv) (session.Output, error) {
	h := t.o.command(env.RunDir)
	r, err := h.Stop(ctx, "user")
	return result(h, r, err)
}

// wait follows a command to its end and shows what it prints about twice a second.
func (t shellTool) wait(ctx context.Context, h *proc.Handle, progress func(session.Output)) (session.Output, error) {
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() { // waited for below
		defer close(watched)
		follow(h, done, progress)
	}()
	r, err := h.Wait(ctx)
	close(done)
	<-watched
	if cause := context.Cause(ctx); cause != nil && err != nil {
		if t.o.letsGo(cause) {
			return session.Output{}, cause
		}
		r, err = h.Stop(context.WithoutCancel(ctx), "user")
	}
	return result(h, r, err)
}

// follow shows what a command prints. An update replaces the one before.
func follow(h *proc.Handle, done <-chan struct{}, progress func(session.Output)) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for last := int64(0); ; {
		select {
		case <-done:
			return
		case <-tick.C:
			if v, err := h.Live(liveLimit); err == nil && v.Total != last {
				last = v.Total
				progress(session.Output{Text: plainText(v)})
			}
		}
	}
}

// Peek returns what a command has printed so far, as follow shows it.
func (t shellTool) Peek(dir string) (session.Output, bool) {
	v, err := t.o.command(dir).Live(liveLimit)
	return session.Output{Text: plainText(v)}, err == nil && v.Total > 0
}

// result turns a receipt into what the model reads.
func result(h *proc.Handle, r proc.Result, err error) (session.Output, error) {
	if errors.Is(err, proc.ErrNoReceipt) {
		if st, e := h.State(); e == nil && st.Verdict == proc.NotStarted {
			return session.Output{}, &session.NotStartedError{Message: "The command's supervisor was lost before it could start it."}
		}
		return session.Output{}, &session.LostError{Message: "The command's supervisor was lost without a receipt."}
	}
	if err != nil {
		return session.Output{}, err
	}
	v, err := h.Output(maxResult, true)
	if err != nil {
		return session.Output{}, err
	}
	out := session.Output{Text: plainText(v), Cut: v.Cut, Digest: v.Digest, ExitCode: r.ExitCode, Signal: r.Signal, Stopped: r.Stopped}
	out.IsError = r.Stopped != "" || r.ExitCode == nil || *r.ExitCode != 0
	if out.Text != "" && !strings.HasSuffix(out.Text, "\n") {
		out.Text += "\n"
	}
	out.Text += ending(r)
	return out, nil
}

// ending is the last line of a result.
func ending(r proc.Result) string {
	var parts []string
	switch {
	case r.Failure != "":
		parts = append(parts, "could not be started: "+r.Failure)
	case r.Stopped == "user":
		parts = append(parts, "it had started and was stopped by the user; it may have had effects")
	case r.Stopped == "deadline":
		parts = append(parts, "it was stopped at its time limit; it may have had effects")
	case r.Stopped == "output_cap":
		parts = append(parts, "it was stopped because it printed too much")
	}
	if r.ExitCode != nil && r.Failure == "" {
		parts = append(parts, fmt.Sprintf("exit code %d", *r.ExitCode))
	}
	if r.Signal != "" {
		parts = append(parts, "ended by "+r.Signal)
	}
	if r.Left > 0 {
		parts = append(parts, fmt.Sprintf("%d process(es) left running in the background", r.Left))
	}
	return "[" + strings.Join(parts, "; ") + "]"
}

// escapes are the terminal's control sequences: CSI, strings such as titles and links, character sets, and the short ones.
var escapes = regexp.MustCompile("\x1b(\\[[0-?]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b]*(\x07|\x1b\\\\)|[ -/]+[0-~]|[0-~])")

// rewritten is what a carriage return takes back from a line, as progress bars do.
var rewritten = regexp.MustCompile("(?m)^.*\r([^\r\n]+)\r*$")

// plainText is an output without control sequences and with every byte that is no text marked.
func plainText(v proc.View) string {
	clean := func(b []byte) string {
		s := strings.ReplaceAll(escapes.ReplaceAllString(string(b), ""), "\r\n", "\n")
		s = secret.Shown(rewritten.ReplaceAllString(s, "$1"))
		return strings.Map(func(r rune) rune {
			if (r < ' ' || r >= 0x7f && r < 0xa0) && r != '\n' && r != '\t' {
				return -1
			}
			return r
		}, strings.ToValidUTF8(s, "\uFFFD"))
	}
	if v.Cut == 0 {
		return clean(v.Head) + clean(v.Tail)
	}
	return clean(v.Head) + fmt.Sprintf("\n[%d bytes cut here]\n", v.Cut) + clean(v.Tail)
}

// Probe tells from the command's folder what became of it.
func (t shellTool) Probe(_ context.Context, env session.ToolEnv, pl session.Plan) (session.Finding, error) {
	h := t.o.command(env.RunDir)
	st, err := h.State()
	if err != nil {
		return session.Finding{Fact: session.FactUnknown, Note: "The command's records cannot be read: " + err.Error()}, nil
	}
	if starts(pl) && (st.Verdict == proc.Done || st.Verdict == proc.Live || st.Verdict == proc.Orphaned || st.Verdict == proc.Lost) {
		out := started(pl) // what became of it afterwards is told apart
		return session.Finding{Fact: session.FactCompleted, By: session.SettledByReceipt, Output: &out}, nil
	}
	switch st.Verdict {
	case proc.Done:
		out, err := result(h, st.Result, nil)
		out = noted(pl, out)
		return session.Finding{Fact: session.FactCompleted, By: session.SettledByReceipt, Output: &out}, err
	case proc.Live, proc.Orphaned:
		return session.Finding{Fact: session.FactRunning}, nil
	case proc.NotStarted:
		return session.Finding{Fact: session.FactNotStarted, By: session.SettledByReceipt, Note: "The command never began."}, nil
	case proc.Rebooted:
		return session.Finding{Fact: session.FactUnknown, Note: "The machine was restarted while it ran."}, nil
	}
	return session.Finding{Fact: session.FactUnknown, Note: "Its supervisor was lost without a receipt."}, nil
}
