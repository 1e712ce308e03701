package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"holdfast/internal/proc"
	"holdfast/session"
)

// starts tells whether a plan starts a background command.
func starts(pl session.Plan) bool { return pl.Background != nil && pl.Background.Starts }

// started is the result of a call that started a background command. It is the same whether the call returned or was probed later.
func started(pl session.Plan) session.Output {
	name := pl.Background.Handle
	return session.Output{Text: fmt.Sprintf("[Started in the background as %s. shell_output {\"id\":%q} reads what it prints, shell_kill {\"id\":%q} ends it. "+
		"It goes on over turns and restarts; you will be told when it ends.]", name, name, name) + confinedNote(pl, false)}
}

// Look says what a background command's folder proves.
func (shellTool) Look(dir string) (session.BackgroundLook, error) {
	_, l, err := look(dir)
	return l, err
}

func look(dir string) (proc.State, session.BackgroundLook, error) {
	st, err := proc.Open(dir).State()
	if err != nil {
		return st, session.BackgroundLook{}, err
	}
	l := session.BackgroundLook{Ended: true, State: session.BackgroundLost}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) { // it was there when the command was started
		l.Note = "its records are gone"
		return st, l, nil
	}
	return st, lookOf(l, st), nil
}

func lookOf(l session.BackgroundLook, st proc.State) session.BackgroundLook {
	switch st.Verdict {
	case proc.Live, proc.Orphaned:
		return session.BackgroundLook{}
	case proc.Done:
		r := st.Result
		l.State, l.ExitCode, l.Signal, l.Stopped, l.At = session.BackgroundEnded, r.ExitCode, r.Signal, r.Stopped, r.Ended
		if r.Failure != "" {
			l.Note = "it could not be started: " + r.Failure
		}
		if r.Left > 0 {
			l.Note = fmt.Sprintf("%d process(es) left running", r.Left)
		}
	case proc.NotStarted:
		l.State = session.BackgroundNotStarted
	case proc.Rebooted:
		l.Note = "the machine was restarted under it"
	default:
		l.Note = "its supervisor was lost without a receipt"
	}
	return l
}

// End ends a background command with everything it started.
func (shellTool) End(ctx context.Context, dir string) error {
	_, err := proc.Open(dir).Stop(ctx, proc.CauseUser)
	if errors.Is(err, proc.ErrNoReceipt) {
		return nil // it has ended, and nothing tells how
	}
	return err
}

// named finds a background command of the session by its name.
func named(env session.ToolEnv, id string) (session.Background, error) {
	if env.Backgrounds == nil {
		return session.Background{}, failf("There are no background commands here.")
	}
	all, err := env.Backgrounds(context.Background())
	if err != nil {
		return session.Background{}, err
	}
	var have []string
	for _, b := range all {
		if b.Handle() == id || string(b.Effect) == id {
			return b, nil
		}
		if b.State == session.BackgroundRunning {
			have = append(have, b.Handle())
		}
	}
	if len(have) == 0 {
		return session.Background{}, failf("There is no background command %q, and none runs in this session.", id)
	}
	return session.Background{}, failf("There is no background command %q. Those that run: %s.", id, strings.Join(have, ", "))
}

// aboutPlan is the plan of a call about a background command.
func aboutPlan(env session.ToolEnv, id string, args any, title string) (session.Plan, error) {
	b, err := named(env, id)
	if err != nil {
		return session.Plan{}, err
	}
	pl, err := plan(args, fmt.Sprintf(title, b.Handle(), strings.ReplaceAll(strings.TrimSpace(b.Command), "\n", " ⏎ ")))
	pl.Background = &session.BackgroundRef{Handle: b.Handle(), Effect: b.Effect, Dir: b.Dir}
	return pl, err
}

type outputArgs struct {
	ID          string `json:"id"`
	Offset      *int64 `json:"offset,omitempty"`
	WaitSeconds int    `json:"wait_seconds,omitempty"`
}

// sayEvery is how often a call that waits for output is shown.
const sayEvery = 8 * time.Second

// maxWait bounds how long one call waits for output.
const maxWait = 300

type outputTool struct{ o Options }

func (outputTool) Spec() session.ToolSpec {
	return spec("shell_output", "Read what a background command has printed since you last read it, or from an offset, and whether it runs or how it ended. "+
		"With wait_seconds the call waits until it prints something or ends.",
		`{"type":"object","properties":{"id":{"type":"string","description":"the name that shell gave, such as bg1"},`+
			`"offset":{"type":"integer","description":"in bytes; 0 reads everything again"},"wait_seconds":{"type":"integer","description":"0 unless told, at most 300"}},`+
			`"required":["id"],"additionalProperties":false}`)
}
func (outputTool) Class() session.Class { return session.ReadOnly }
func (outputTool) Kind() session.Kind   { return session.KindRead }
func (outputTool) Version() string      { return "1" }

func (outputTool) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in outputArgs
	if err := decodeArgs("shell_output", args, &in, "id"); err != nil {
		return session.Plan{}, err
	}
	if in.WaitSeconds < 0 || in.WaitSeconds > maxWait {
		return session.Plan{}, failf("wait_seconds must be from 0 to %d.", maxWait)
	}
	if in.Offset != nil && *in.Offset < 0 {
		return session.Plan{}, failf("offset must not be below 0.")
	}
	return aboutPlan(env, in.ID, in, "Output of %s: %s")
}

func (t outputTool) Run(ctx context.Context, env session.ToolEnv, pl session.Plan, progress func(session.Output)) (session.Output, error) {
	var in outputArgs
	if err := stored(pl, &in); err != nil {
		return session.Output{}, err
	}
	b, err := named(env, string(pl.Background.Effect))
	if err != nil {
		return session.Output{}, err
	}
	from := b.ReadTo
	if in.Offset != nil {
		from = *in.Offset
	}
	h := t.o.command(b.Dir)
	if err := t.await(ctx, b.Dir, from, time.Duration(in.WaitSeconds)*time.Second, progress); err != nil {
		return session.Output{}, err
	}
	st, l, err := look(b.Dir) // before the output: what was printed until the end is read
	if err != nil {
		return session.Output{}, err
	}
	v, err := h.OutputFrom(from, maxResult, l.Ended)
	if err != nil {
		return session.Output{}, err
	}
	out := session.Output{Text: plainText(v), Heard: &session.Heard{Effect: b.Effect, ReadTo: v.Total}}
	if out.Text != "" && !strings.HasSuffix(out.Text, "\n") {
		out.Text += "\n"
	}
	what := "is running"
	if l.Ended {
		out.Heard.Ended = &l
		b.State, b.ExitCode, b.Signal, b.Stopped, b.Note = l.State, l.ExitCode, l.Signal, l.Stopped, l.Note
		what = "has ended: " + b.Ending()
	} else if st.Verdict == proc.Orphaned {
		what = "is running; its supervisor was lost, so its exit code will stay unknown"
	}
	out.Text += fmt.Sprintf("[%s %s; bytes %d to %d of its output]", b.Handle(), what, v.From, v.Total)
	return out, nil
}

// await waits until there is something behind the offset, the command has ended, or the time is over.
func (t outputTool) await(ctx context.Context, dir string, from int64, limit time.Duration, progress func(session.Output)) error {
	began := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for shown := began; time.Since(began) < limit; {
		v, err := t.o.command(dir).OutputFrom(from, 0, false)
		if err != nil {
			return err
		}
		_, l, err := look(dir)
		if err != nil || v.Total > v.From || l.Ended {
			return err
		}
		if time.Since(shown) >= sayEvery {
			shown = time.Now()
			progress(session.Output{Text: fmt.Sprintf("[waiting for output for %s]", time.Since(began).Round(time.Second))})
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// killWithin bounds how long a call waits for the end of a command that was told to end.
const killWithin = 10 * time.Second

type killArgs struct {
	ID string `json:"id"`
}

// killTool ends a background command. Doing so twice changes nothing more, so a kill that was cut off is made again.
type killTool struct{ o Options }

func (killTool) Spec() session.ToolSpec {
	return spec("shell_kill", "End a background command with everything it started.",
		`{"type":"object","properties":{"id":{"type":"string","description":"the name that shell gave, such as bg1"}},"required":["id"],"additionalProperties":false}`)
}
func (killTool) Class() session.Class { return session.Idempotent }
func (killTool) Kind() session.Kind   { return session.KindExecute }
func (killTool) Version() string      { return "1" }

func (killTool) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in killArgs
	if err := decodeArgs("shell_kill", args, &in, "id"); err != nil {
		return session.Plan{}, err
	}
	return aboutPlan(env, in.ID, in, "End %s: %s")
}

func (t killTool) Run(ctx context.Context, _ session.ToolEnv, pl session.Plan, _ func(session.Output)) (session.Output, error) {
	ref := pl.Background
	h := proc.Open(ref.Dir)
	short, cancel := context.WithTimeout(ctx, killWithin)
	defer cancel()
	_, err := h.Stop(short, proc.CauseUser)
	if cause := context.Cause(ctx); cause != nil {
		return session.Output{}, cause
	}
	if short.Err() != nil {
		return session.Output{Text: fmt.Sprintf("[%s was told to end and has not ended yet; shell_output says when it has]", ref.Handle)}, nil
	}
	if err != nil && !errors.Is(err, proc.ErrNoReceipt) {
		return session.Output{}, err
	}
	_, l, err := look(ref.Dir)
	if err != nil {
		return session.Output{}, err
	}
	b := session.Background{State: l.State, ExitCode: l.ExitCode, Signal: l.Signal, Stopped: l.Stopped, Note: l.Note}
	v, err := h.Output(0, false)
	if err != nil {
		return session.Output{}, err
	}
	return session.Output{Text: fmt.Sprintf("[%s has ended: %s; its output has %d bytes]", ref.Handle, b.Ending(), v.Total),
		Heard: &session.Heard{Effect: ref.Effect, Ended: &l}}, nil
}

// Probe says that a kill has happened when its command has ended; otherwise it is still to be made.
func (t killTool) Probe(ctx context.Context, env session.ToolEnv, pl session.Plan) (session.Finding, error) {
	_, l, err := look(pl.Background.Dir)
	if err != nil {
		return session.Finding{Fact: session.FactUnknown, Note: "The command's records cannot be read: " + err.Error()}, nil
	}
	if !l.Ended {
		return session.Finding{Fact: session.FactRunning}, nil
	}
	out, err := t.Run(ctx, env, pl, nil)
	return session.Finding{Fact: session.FactCompleted, By: session.SettledByReceipt, Output: &out}, err
}

// Reattach makes the kill again.
func (t killTool) Reattach(ctx context.Context, env session.ToolEnv, pl session.Plan, progress func(session.Output)) (session.Output, error) {
	return t.Run(ctx, env, pl, progress)
}

// Kill gives up a kill whose work was stopped: whether its command ends is told apart.
func (killTool) Kill(context.Context, session.ToolEnv) (session.Output, error) {
	return session.Output{Text: "[The work was stopped before the command had ended.]", IsError: true}, nil
}
