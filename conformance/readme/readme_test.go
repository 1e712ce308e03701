// Package readme_test launches the agent with every command line that the README gives for an editor.
package readme_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// snippets finds a command line in each client's example.
var snippets = map[string]*regexp.Regexp{
	"Zed, JetBrains": regexp.MustCompile(`"command": "(holdfast)", "args": \["(\w+)"\]`),
	"CodeCompanion":  regexp.MustCompile(`commands = \{ default = \{ "(holdfast)", "(\w+)" \} \}`),
	"agentic.nvim":   regexp.MustCompile(`command = "(holdfast)", args = \{ "(\w+)" \}`),
	"agent-shell":    regexp.MustCompile(`:command "(holdfast)" :command-params '\("(\w+)"\)`),
	"acpx":           regexp.MustCompile(`--agent '(holdfast) (\w+)'`),
}

func TestReadme_EditorCommandLines(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	plain, _, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "script.json")
	if err := os.WriteFile(script, []byte(`{"rules":[{"when":{},"say":"hello"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for client, re := range snippets {
		t.Run(client, func(t *testing.T) {
			m := re.FindSubmatch(readme)
			if m == nil {
				t.Fatalf("the README has no command line for %s", client)
			}
			a := harness.Start(t, harness.Options{Binary: plain, Args: []string{string(m[2])},
				Env: []string{"HOLDFAST_HOME=" + filepath.Join(dir, "home"), "HOLDFAST_MODEL=scripted/" + script}})
			a.Initialize()
			session := a.NewSession(dir)
			a.Await(a.Prompt(session, "hi"))
			if got := a.Text(session); got != "hello" {
				t.Errorf("it said %q", got)
			}
			if err := a.CloseInput(); err != nil || a.Stderr() != "" {
				t.Errorf("ended with %v, stderr %q", err, a.Stderr())
			}
		})
	}
	if n := strings.Count(string(readme), "```"); n%2 != 0 {
		t.Errorf("the README has %d code fences", n)
	}
}

// The README's links lead somewhere, and its commands are targets of the Makefile.
func TestReadme_LinksAndTargets(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\]\((docs/[^)]+)\)`).FindAllSubmatch(readme, -1) {
		if _, err := os.Stat(filepath.Join("../..", string(m[1]))); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z]+):`).FindAllSubmatch(makefile, -1) {
		targets = append(targets, string(m[1]))
	}
	for _, m := range regexp.MustCompile("make ([a-z]+)").FindAllSubmatch(readme, -1) {
		if !slices.Contains(targets, string(m[1])) {
			t.Errorf("make %s is no target", m[1])
		}
	}
}
