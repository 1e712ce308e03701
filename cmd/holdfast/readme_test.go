package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/harness"
	"holdfast/goals"
	"holdfast/internal/config"
	"holdfast/internal/tools"
	"holdfast/session"
)

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// section is what the README says under a heading, up to the next of its level or a higher one.
func section(t *testing.T, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(readme(t), "\n"+heading+"\n")
	if !found {
		t.Fatalf("the README has no %q", heading)
	}
	body := rest
	for level := strings.Index(heading, " "); level > 0; level-- {
		body, _, _ = strings.Cut(body, "\n"+heading[:level]+" ")
	}
	return body
}

// launch is a command line with its environment, as an editor's configuration gives it.
type launch struct {
	args    []string // the binary first
	env     []string
	inherit bool // the client passes its own environment on
}

var (
	quoted   = regexp.MustCompile(`"([^"]*)"`)
	luaEnv   = regexp.MustCompile(`([A-Z_]+) = ("[^"]*"|os\.getenv\("[A-Z_]+"\))`)
	elispEnv = regexp.MustCompile(`"([A-Z_]+)=([^"]*)"`)
)

func words(list string) (out []string) {
	for _, m := range quoted.FindAllStringSubmatch(list, -1) {
		out = append(out, m[1])
	}
	return out
}

// one returns the groups of the only match of an expression.
func one(t *testing.T, text, expr string) []string {
	t.Helper()
	all := regexp.MustCompile(expr).FindAllStringSubmatch(text, -1)
	if len(all) != 1 {
		t.Fatalf("%d matches of %s in\n%s", len(all), expr, text)
	}
	return all[0]
}

// examples reads each client's snippet in that client's own language.
var examples = map[string]func(t *testing.T, code string) launch{
	"### Zed":            fromJSON,
	"### JetBrains IDEs": fromJSON,
	"### Neovim with CodeCompanion": func(t *testing.T, code string) launch {
		return launch{args: words(one(t, code, `default = \{([^}]*)\}`)[1]), inherit: true}
	},
	"### Neovim with agentic.nvim": func(t *testing.T, code string) launch {
		m := one(t, code, `command = ("[^"]*"), args = \{([^}]*)\}`)
		l := launch{args: append(words(m[1]), words(m[2])...)}
		for _, v := range luaEnv.FindAllStringSubmatch(one(t, code, `(?s)env = \{(.*?)\}`)[1], -1) {
			l.env = append(l.env, v[1]+"="+strings.Trim(v[2], `"`))
		}
		return l
	},
	"### Emacs with agent-shell": func(t *testing.T, code string) launch {
		m := one(t, code, `:command ("[^"]*") :command-params '\(([^)]*)\)`)
		l := launch{args: append(words(m[1]), words(m[2])...)}
		for _, v := range elispEnv.FindAllStringSubmatch(code, -1) {
			if v[2] == "" {
				v[2] = "KEY" // concat with the variable's value
			}
			l.env = append(l.env, v[1]+"="+v[2])
		}
		return l
	},
	"### acpx": func(t *testing.T, code string) launch {
		return launch{args: strings.Fields(one(t, code, `--agent '([^']*)'`)[1]), env: []string{one(t, code, `export (\S+)`)[1], "OPENAI_API_KEY=KEY"}}
	},
}

func fromJSON(t *testing.T, code string) launch {
	var c struct {
		Servers map[string]struct {
			Command string
			Args    []string
			Env     map[string]string
		} `json:"agent_servers"`
	}
	if err := json.Unmarshal([]byte(code), &c); err != nil {
		t.Fatalf("the snippet is no JSON: %v", err)
	}
	s := c.Servers["Holdfast"]
	l := launch{args: append([]string{s.Command}, s.Args...)}
	for k, v := range s.Env {
		l.env = append(l.env, k+"="+v)
	}
	return l
}

func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "holdfast")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// Each example starts an agent that answers. With the example's own environment it has a model; with a scripted one it works.
func TestReadme_EditorExamples(t *testing.T) {
	bin := build(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "script.json")
	if err := os.WriteFile(script, []byte(`{"rules":[{"say":"hello"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for heading, read := range examples {
		t.Run(strings.TrimPrefix(heading, "### "), func(t *testing.T) {
			l := read(t, one(t, section(t, heading), "(?s)```[a-z]+\n(.*?)```")[1])
			if len(l.args) == 0 || l.args[0] != "holdfast" {
				t.Fatalf("the command line is %q", l.args)
			}
			if l.inherit {
				l.env = append(l.env, "HOLDFAST_MODEL=openai/NAME", "OPENAI_API_KEY=KEY")
			}
			home := "HOLDFAST_HOME=" + filepath.Join(t.TempDir(), "home")
			start := func(env ...string) *harness.Agent {
				a := harness.Start(t, harness.Options{Binary: bin, Args: l.args[1:], Env: append([]string{home}, env...)})
				a.Initialize()
				return a
			}
			own := start(l.env...)
			own.NewSession(dir) // needs a model; asks it nothing
			if err := own.CloseInput(); err != nil || own.Stderr() != "" {
				t.Errorf("ended with %v, stderr %q", err, own.Stderr())
			}
			a := start("HOLDFAST_MODEL=scripted/" + script)
			session := a.NewSession(dir)
			a.Await(a.Prompt(session, "hi"))
			if got := a.Text(session); !strings.Contains(got, "hello") {
				t.Errorf("it said %q", got)
			}
		})
	}
	if n := strings.Count(section(t, "## Use it in an editor"), "\n### "); n != len(examples) {
		t.Errorf("the README has %d examples, %d are tested", n, len(examples))
	}
}

// Each MCP client's example starts a server that lists its tools, and may work in the directory that the example trusts.
func TestReadme_MCPExamples(t *testing.T) {
	bin := build(t)
	work := t.TempDir()
	snippets := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(section(t, "## Use it from an MCP client"), -1)
	if len(snippets) != 2 {
		t.Fatalf("%d examples", len(snippets))
	}
	for _, snippet := range snippets {
		var c struct {
			Servers map[string]struct {
				Command string
				Args    []string
				Env     map[string]string
			} `json:"mcpServers"`
		}
		if err := json.Unmarshal([]byte(snippet[1]), &c); err != nil {
			t.Fatal(err)
		}
		s := c.Servers["holdfast"]
		if s.Command != "holdfast" {
			t.Fatalf("the command is %q", s.Command)
		}
		env := []string{"HOLDFAST_HOME=" + filepath.Join(t.TempDir(), "home")}
		for k, v := range s.Env {
			env = append(env, k+"="+v)
		}
		for i, arg := range s.Args {
			s.Args[i] = strings.Replace(arg, "/path/to/your/project", work, 1)
		}
		a := harness.Start(t, harness.Options{Binary: bin, Args: s.Args, Env: env, Invalid: true})
		a.Must("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "x", "version": "1"}}, nil)
		var r struct {
			Tools   []struct{ Name string }
			IsError bool
			Content []struct{ Text string }
		}
		a.Must("tools/list", map[string]any{}, &r)
		create := map[string]any{"cwd": work, "objective": "x", "mode": "plan"}
		if slices.Contains(s.Args, "--work") {
			create = map[string]any{"cwd": work} // refused before anything: no model is asked here
		}
		a.Must("tools/call", map[string]any{"name": "create_goal", "arguments": create}, &r)
		if len(r.Tools) == 0 || r.IsError != slices.Contains(s.Args, "--work") {
			t.Errorf("%v: %+v", s.Args, r)
		}
		if err := a.CloseInput(); err != nil || a.Stderr() != "" {
			t.Errorf("ended with %v, stderr %q", err, a.Stderr())
		}
	}
}

// Commands that the README names exist, except where it says that they do not.
func TestReadme_Commands(t *testing.T) {
	bin := build(t)
	missing := section(t, "## Not there yet")
	named := regexp.MustCompile("`(?:\\./bin/)?holdfast ([a-z]+)")
	for _, m := range named.FindAllStringSubmatch(readme(t), -1) {
		out, err := exec.Command(bin, m[1], "--help").CombinedOutput()
		exists := err == nil && bytes.Contains(out, []byte("holdfast "+m[1]))
		if absent := strings.Contains(missing, "holdfast "+m[1]); exists == absent {
			t.Errorf("holdfast %s: exists %v, said to be missing %v\n%s", m[1], exists, absent, out)
		}
	}
}

// The configurations that the README and the document of MCP servers show are read without a complaint.
func TestReadme_Configurations(t *testing.T) {
	for _, path := range []string{"../../README.md", "../../docs/external-mcp.md"} {
		doc, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		snippets := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(doc, -1)
		if len(snippets) != 1 {
			t.Errorf("%s shows %d configurations", path, len(snippets))
		}
		for _, s := range snippets {
			file := filepath.Join(t.TempDir(), "config.toml")
			if err := os.WriteFile(file, s[1], 0o600); err != nil {
				t.Fatal(err)
			}
			if c, err := config.Load(file); err != nil || c.MCP.Servers["files"].Command != "npx" {
				t.Errorf("%s: %+v, %v", path, c, err)
			}
		}
	}
}

// The document of the scripted model names every tool that a script can call, with all its arguments.
func TestScriptedDocument_NamesTheTools(t *testing.T) {
	doc, err := os.ReadFile("../../docs/scripted.md")
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(tools.Builtin(tools.Options{}), goals.ChatTools(), goals.WorkTools(), []session.Tool{goals.ReviewTool(func() string { return "" })})
	for _, tool := range all {
		spec := tool.Spec()
		row := regexp.MustCompile("(?m)^\\| `" + spec.Name + "` \\|.*$").FindString(string(doc))
		var schema struct{ Properties map[string]json.RawMessage }
		if err := json.Unmarshal(spec.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		for name := range schema.Properties {
			if !strings.Contains(row, "`"+name+"`") {
				t.Errorf("the argument %s of %s is not in %q", name, spec.Name, row)
			}
		}
		if row == "" {
			t.Errorf("the tool %s is not described", spec.Name)
		}
	}
	if len(all) < 10 {
		t.Errorf("only %d tools", len(all))
	}
}

// shown names the tests that show each thing the README says never happens.
var shown = map[string][]string{
	"runs a command again":        {"TestKill_Supervisor", "TestPermit_EveryInput"},
	"answers a question":          {"TestPermission_NoAnswerDecidesNothing", "TestPermission_OnlyAllowApproves", "TestBinding_ChangesWithWhatWasAskedAbout"},
	"continues what you stopped":  {"TestCancel_StaysAfterAKill", "TestSlash_CancelPausesTheGoal"},
	"writes outside the session":  {"TestTools_StayInsideTheWorkspace", "TestEnvironment_OnlyPath"},
	"touches your git index":      {"TestTree_UserRepositoryIsOnlyRead"},
	"puts back a file":            {"TestUndo_LastTurn", "TestUndo_UserWorksAlongside", "TestPut_OnlyWhatIsExpected"},
	"starts a fresh store on top": {"TestOpen_NamesWhatIsWrong", "TestStore_FaultsAreNamed"},
}

func TestReadme_NeverIsShownByTests(t *testing.T) {
	exist := testNames(t)
	bullets := regexp.MustCompile(`(?m)^- It never .*$`).FindAllString(section(t, "## What it never does"), -1)
	if len(bullets) != len(shown) {
		t.Errorf("the README promises %d things, %d are shown", len(bullets), len(shown))
	}
	for claim, tests := range shown {
		if !slices.ContainsFunc(bullets, func(b string) bool { return strings.Contains(b, claim) }) {
			t.Errorf("the README does not say that it never %s", claim)
		}
		for _, name := range tests {
			if !exist[name] {
				t.Errorf("%s, which shows that it never %s, does not exist", name, claim)
			}
		}
	}
}

func testNames(t *testing.T) map[string]bool {
	t.Helper()
	decl := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	names := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "node_modules" {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range decl.FindAllSubmatch(b, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
