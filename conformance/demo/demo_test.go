// Package demo_test runs the demo of the real binary and looks at what is left of it.
package demo_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// run executes the demo with a temporary folder of its own and checks that nothing is left in it, and no process of it.
func run(t *testing.T, env []string, args ...string) string {
	t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	cmd := exec.Command(plain, append([]string{"demo"}, args...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + tmp}, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("the demo failed: %v\n%s", err, out.String())
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		line, err := os.ReadFile(p)
		if err == nil && bytes.Contains(line, []byte(tmp)) {
			t.Errorf("a process is left: %q", line)
		}
	}
	return out.String()
}

func TestDemo_Scripted(t *testing.T) {
	out := run(t, nil)
	for _, want := range []string{"the model is scripted", "kill -9", "reconnected to the running command", "its exit code: 0, settled by its receipt", "goal achieved",
		"mode reconnect", "generation 2", "builds.log has 1 line(s)", "tokens in"} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not show %q:\n%s", want, out)
		}
	}
}

// The same through the model's real wire.
func TestDemo_OverTheWire(t *testing.T) {
	args := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	model := fakemodel.New(func(r fakemodel.Request) fakemodel.Reply {
		n, review := len(r.Results()), false
		for _, tool := range r.Tools {
			review = review || tool.Name == "submit_review"
		}
		switch {
		case review && n < 2: // one result is the command that code ran
			return fakemodel.Calls(fakemodel.Call{ID: "look", Name: "read", Args: `{"path":"release.txt"}`})
		case review:
			return fakemodel.Calls(fakemodel.Call{Name: "submit_review", Args: args(map[string]any{"requirements": []any{
				map[string]any{"id": "objective", "result": "met", "evidence": []string{"look"}}}})})
		case n == 0:
			return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: args(map[string]string{
				"command": "echo build >> builds.log; sleep 2; echo built > artifact.txt; echo build finished"})})
		case n == 1:
			return fakemodel.Calls(fakemodel.Call{Name: "write", Args: args(map[string]string{"path": "release.txt", "content": "released: 1.0\n"})})
		case n == 2:
			return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"candidate"}`})
		}
		return fakemodel.Text("Done.")
	})
	defer model.Close()
	out := run(t, []string{"OPENAI_BASE_URL=" + model.URL() + "/v1"}, "--model", "openai/fake")
	for _, want := range []string{"the model is openai/fake", "goal achieved", "mode reconnect"} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not show %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "scripted") {
		t.Errorf("a real endpoint is called scripted:\n%s", out)
	}
	if err := fakemodel.ResultsPerCall(model.Requests()); err != nil {
		t.Error(err)
	}
}
