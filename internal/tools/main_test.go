package tools

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"holdfast/internal/proc"
	"holdfast/session"
)

// The test binary is also the supervisor of the commands that tests run.
func TestMain(m *testing.M) {
	if proc.Main(os.Args) {
		os.Exit(0)
	}
	if path := os.Getenv("TOOLS_TEST_WRITE"); path != "" {
		writeOnce(path)
	}
	os.Exit(m.Run())
}

// bench is one workspace with its tools.
type bench struct {
	t   testing.TB
	env session.ToolEnv
	opt Options
}

func newBench(t testing.TB) *bench {
	t.Helper()
	cwd := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(cwd, 0o755); err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, env: session.ToolEnv{Cwd: cwd, Roots: []string{cwd}, Env: []string{"PATH=" + os.Getenv("PATH")}, RunDir: filepath.Join(t.TempDir(), "call")},
		opt: Options{StateDir: t.TempDir()}}
}

func (b *bench) tool(name string) session.Tool {
	b.t.Helper()
	for _, tool := range Builtin(b.opt) {
		if tool.Spec().Name == name {
			return tool
		}
	}
	b.t.Fatalf("no tool %q", name)
	return nil
}

// call plans and runs.
func (b *bench) call(name string, args any) (session.Output, error) {
	b.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	pl, err := b.tool(name).Plan(b.env, raw)
	if err != nil {
		return session.Output{}, err
	}
	return b.tool(name).Run(context.Background(), b.env, pl, func(session.Output) {})
}

// must is call for what has to work.
func (b *bench) must(name string, args any) session.Output {
	b.t.Helper()
	out, err := b.call(name, args)
	if err != nil {
		b.t.Fatalf("%s %v: %v", name, args, err)
	}
	return out
}

// refused is call for what must fail with a text for the model.
func (b *bench) refused(name string, args any) string {
	b.t.Helper()
	out, err := b.call(name, args)
	var te *session.ToolError
	if !errors.As(err, &te) {
		b.t.Fatalf("%s %v: want a refusal, got %+v, %v", name, args, out, err)
	}
	return te.Message
}

func (b *bench) path(name string) string { return filepath.Join(b.env.Cwd, name) }

func (b *bench) put(name, text string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.path(name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) get(name string) string {
	b.t.Helper()
	text, err := os.ReadFile(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

type args = map[string]any

// version is what read shows for a file.
func (b *bench) version(name string) string { return versionOf(digestOf([]byte(b.get(name)))) }
