// Package stopgap is replaced by internal/tools.
package stopgap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"holdfast/internal/proc"
	"holdfast/session"
)

func Builtin() []session.Tool { return []session.Tool{read{}, write{}, shell{}} }

type read struct{}

func (read) Spec() session.ToolSpec {
	return session.ToolSpec{Name: "read", Description: "read a file", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}
}
func (read) Class() session.Class { return session.ReadOnly }
func (read) Kind() session.Kind   { return session.KindRead }
func (read) Version() string      { return "1" }
func (read) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in struct{ Path string }
	if err := json.Unmarshal(args, &in); err != nil {
		return session.Plan{}, &session.ToolError{Message: err.Error()}
	}
	return session.Plan{Args: args, Title: "Read " + in.Path, Paths: []string{filepath.Join(env.Cwd, in.Path)}}, nil
}
func (read) Run(_ context.Context, _ session.ToolEnv, p session.Plan, _ func(session.Output)) (session.Output, error) {
	b, err := os.ReadFile(p.Paths[0])
	if err != nil {
		return session.Output{}, &session.ToolError{Message: err.Error()}
	}
	return session.Output{Text: string(b)}, nil
}

type write struct{}

func (write) Spec() session.ToolSpec {
	return session.ToolSpec{Name: "write", Description: "write a file", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}}}`)}
}
func (write) Class() session.Class { return session.StateProbe }
func (write) Kind() session.Kind   { return session.KindEdit }
func (write) Version() string      { return "1" }
func digest(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "absent"
	}
	return sum(b)
}
func sum(b []byte) string { s := sha256.Sum256(b); return "sha256:" + hex.EncodeToString(s[:]) }
func (write) Plan(env session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in struct{ Path, Content string }
	if err := json.Unmarshal(args, &in); err != nil {
		return session.Plan{}, &session.ToolError{Message: err.Error()}
	}
	p := filepath.Join(env.Cwd, in.Path)
	return session.Plan{Args: args, Title: "Write " + in.Path, Paths: []string{p}, Files: []session.FileChange{{Path: p, Before: digest(p), After: sum([]byte(in.Content)), NewText: in.Content}}}, nil
}
func (write) Run(_ context.Context, _ session.ToolEnv, p session.Plan, _ func(session.Output)) (session.Output, error) {
	f := p.Files[0]
	if digest(f.Path) != f.Before {
		return session.Output{}, &session.ToolError{Message: "changed"}
	}
	if err := os.WriteFile(f.Path, []byte(f.NewText), 0o644); err != nil {
		return session.Output{}, &session.ToolError{Message: err.Error()}
	}
	return session.Output{Text: "Wrote it.", Digest: f.After}, nil
}
func (write) Probe(_ context.Context, _ session.ToolEnv, p session.Plan) (session.Finding, error) {
	switch digest(p.Files[0].Path) {
	case p.Files[0].After:
		return session.Finding{Fact: session.FactCompleted, By: session.SettledByProbe, Output: &session.Output{Text: "Wrote it (proven by its digest after a restart).", Digest: p.Files[0].After}}, nil
	case p.Files[0].Before:
		return session.Finding{Fact: session.FactNotStarted, By: session.SettledByProbe, Note: "The file is as it was before the call."}, nil
	}
	return session.Finding{Fact: session.FactUnknown}, nil
}

type shell struct{}

func (shell) Spec() session.ToolSpec {
	return session.ToolSpec{Name: "shell", Description: "run a command", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)}
}
func (shell) Class() session.Class { return session.Unknown }
func (shell) Kind() session.Kind   { return session.KindExecute }
func (shell) Version() string      { return "1" }
func (shell) Plan(_ session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in struct{ Command string }
	if err := json.Unmarshal(args, &in); err != nil {
		return session.Plan{}, &session.ToolError{Message: err.Error()}
	}
	return session.Plan{Args: args, Title: in.Command, Command: in.Command, TimeoutMs: 120000}, nil
}
func (s shell) Run(ctx context.Context, env session.ToolEnv, p session.Plan, progress func(session.Output)) (session.Output, error) {
	h, err := proc.Start(proc.Spec{Dir: env.RunDir, Argv: []string{"/bin/sh", "-c", p.Command}, Cwd: env.Cwd, Env: env.Env, Timeout: time.Duration(p.TimeoutMs) * time.Millisecond})
	if err != nil {
		return session.Output{}, err
	}
	return s.wait(ctx, h)
}
func (s shell) wait(ctx context.Context, h *proc.Handle) (session.Output, error) {
	r, err := h.Wait(ctx)
	if ctx.Err() != nil {
		if errors.Is(context.Cause(ctx), session.ErrDetach) {
			return session.Output{}, context.Cause(ctx)
		}
		r, err = h.Stop(context.WithoutCancel(ctx), "user")
	}
	if err != nil {
		return session.Output{}, &session.LostError{Message: err.Error()}
	}
	v, _ := h.Output(30000, true)
	out := session.Output{Text: string(v.Head) + string(v.Tail), Digest: v.Digest, ExitCode: r.ExitCode, Signal: r.Signal, Stopped: r.Stopped}
	if r.ExitCode != nil {
		out.Text += fmt.Sprintf("\n[exit code %d]", *r.ExitCode)
	} else {
		out.Text += "\n[" + r.Signal + " " + r.Stopped + "]"
	}
	return out, nil
}
func (s shell) Reattach(ctx context.Context, env session.ToolEnv, _ session.Plan, _ func(session.Output)) (session.Output, error) {
	return s.wait(ctx, proc.Open(env.RunDir))
}
func (s shell) Kill(ctx context.Context, env session.ToolEnv) (session.Output, error) {
	c, cancel := context.WithCancel(ctx)
	cancel()
	return s.wait(c, proc.Open(env.RunDir))
}
func (s shell) Probe(ctx context.Context, env session.ToolEnv, _ session.Plan) (session.Finding, error) {
	h := proc.Open(env.RunDir)
	st, err := h.State()
	if err != nil {
		return session.Finding{}, err
	}
	switch st.Verdict {
	case proc.Done:
		out, err := s.wait(ctx, h)
		return session.Finding{Fact: session.FactCompleted, By: session.SettledByReceipt, Output: &out}, err
	case proc.Live, proc.Orphaned:
		return session.Finding{Fact: session.FactRunning}, nil
	case proc.NotStarted:
		return session.Finding{Fact: session.FactNotStarted, By: session.SettledByReceipt, Note: "The command never started."}, nil
	}
	return session.Finding{Fact: session.FactUnknown, Note: string(st.Verdict)}, nil
}
