package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type setting struct {
	Key    string
	Value  any
	Origin struct {
		From, File, Name string
		Line             int
	}
	Note string
}

// settings are what 'config show' lists, by key.
func (w *world) settings(args ...string) map[string]setting {
	w.t.Helper()
	out := w.want(0, append(args, "config", "show", "--json")...).out
	all := map[string]setting{}
	for _, s := range one[struct{ Settings []setting }](w.t, out).Settings {
		all[s.Key] = s
	}
	if strings.Contains(out, "hunter2") {
		w.t.Errorf("a secret is listed: %s", out)
	}
	return all
}

// projectFile writes the configuration that the work tree brings along.
func (w *world) projectFile(text string) string {
	w.t.Helper()
	path := filepath.Join(w.work, ".holdfast", "config.toml")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// Each value says where it comes from; a project's counts from its trust on.
func TestSettings_Origins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.configure("[recovery]\nstall_seconds = 60\n[mcp]\nauthority = \"read\"\n[mcp.servers.x]\ncommand = \"a\"\nargs = [\"--api-key\", \"hunter2hunter2\"]\nenv = { TOKEN = \"hunter2hunter2\" }\n")
	path := w.projectFile("[instructions]\nmax_kib = 16\n[mcp.servers.y]\ncommand = \"b\"\n")
	w.env = append(w.env, "HOLDFAST_MCP_AUTHORITY=full")
	all := w.settings()
	if s := all["recovery.stall_seconds"]; s.Origin.From != "user" || s.Origin.Line != 2 || s.Origin.File != filepath.Join(w.home, "config.toml") || s.Value != 60.0 {
		t.Errorf("%+v", s)
	}
	if s := all["mcp.authority"]; s.Origin.From != "environment" || s.Origin.Name != "HOLDFAST_MCP_AUTHORITY" || s.Value != "full" {
		t.Errorf("%+v", s)
	}
	if s := all["instructions.max_kib"]; s.Origin.From != "default" {
		t.Errorf("before the trust: %+v", s)
	}
	if s := w.settings("--model", "openai/some")["model.name"]; s.Origin.From != "flag" || s.Value != "openai/some" {
		t.Errorf("%+v", s)
	}
	w.want(0, "trust", "--yes")
	all = w.settings()
	if s := all["instructions.max_kib"]; s.Origin.From != "project" || s.Origin.Line != 2 || s.Value != 16.0 || !strings.HasSuffix(s.Origin.File, path) {
		t.Errorf("after the trust: %+v", s)
	}
	if s := all["mcp.servers.y.command"]; s.Origin.From != "project" || s.Value != "b" {
		t.Errorf("%+v", s)
	}
	if out := w.want(0, "config").out; strings.Contains(out, "hunter2") || !strings.Contains(out, "config.toml, line 2") {
		t.Errorf("the table says\n%s", out)
	}
}

// Mistakes of a file are listed with their lines, as compilers write them; a project's file may hold less.
func TestSettings_Check(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.configure("[mcp]\n\nauthorty = \"read\"\n[recovery]\nstall_seconds = \"x\"\n")
	r := w.want(1, "config", "check")
	mine := filepath.Join(w.home, "config.toml")
	if !strings.Contains(r.out, mine+":3: mcp.authorty is not a setting; write mcp.authority\n") || !strings.Contains(r.out, mine+":5: recovery.stall_seconds is a text") {
		t.Errorf("it says\n%s", r.out)
	}
	path := w.projectFile("[mcp]\nauthority = \"full\"\n")
	if r := w.want(1, "config", "check", path); !strings.Contains(r.out, ":2: mcp.authority cannot be set by a project") {
		t.Errorf("of the project's it says\n%s", r.out)
	}
	w.configure("[mcp]\nauthority = \"read\"\n")
	if r := w.want(0, "config", "check", mine); !strings.Contains(r.out, "no mistakes") {
		t.Errorf("of a right one it says\n%s", r.out)
	}
	if r := w.want(1, "config", "check", filepath.Join(w.home, "none.toml")); r.out != "" {
		t.Errorf("of none it says\n%s", r.out)
	}
}

// The model of the configuration is used; one that may be named in a file with a mistake is not replaced by another.
func TestSettings_Model(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.env = []string{"HOLDFAST_HOME=" + w.home}
	w.configure("[model]\nname = \"openai/local\"\nopenai_base_url = \"http://127.0.0.1:9/v1\"\n")
	if f := w.checks(0, "model"); len(f) != 1 || !strings.Contains(f[0].Message, "openai/local") {
		t.Errorf("%+v", f)
	}
	w.configure("[model]\nname = \"openai/local\"\nopenai_base_url = \"http://127.0.0.1:9/v1\"\nopenai_api = \"completions\"\nopenai_dialect = \"klingon\"\n")
	if r := w.want(1, "config", "check"); !strings.Contains(r.out, `:4: model.openai_api is "completions"; want chat or responses`) ||
		!strings.Contains(r.out, `:5: model.openai_dialect is "klingon"; want openai, azure, mistral, openrouter, ollama, lmstudio, vllm or plain`) {
		t.Errorf("it says\n%s", r.out)
	}
	w.configure("[model]\nname = \"openai/local\"\nopenai_base_url = \"http://127.0.0.1:9/v1\"\n")
	w.env = append(w.env, "HOLDFAST_OPENAI_DIALECT=klingon")
	if f := w.checks(0, "model"); len(f) != 1 || f[0].Level != "note" || !strings.Contains(f[0].Message, `HOLDFAST_OPENAI_DIALECT is "klingon": the known ones are openai, azure`) {
		t.Errorf("%+v", f)
	}
	w.env = w.env[:len(w.env)-1]
	w.configure("[model]\nname = \"openai/local\"\nopenai_base_url = \"http://127.0.0.1:9/v1\"\nwrong = 1\n")
	w.env = append(w.env, "OPENAI_API_KEY=sk-some-key")
	if f := w.checks(3, "model"); len(f) != 1 || f[0].Level != "note" || !strings.Contains(f[0].Message, "line 4: model.wrong is not a setting") {
		t.Errorf("%+v", f)
	}
}
