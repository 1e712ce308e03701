package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// configure writes the user's configuration.
func (w *world) configure(text string) {
	w.t.Helper()
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, "config.toml"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// checked is what 'doctor' says of one thing.
type checked struct{ Check, Level, Message, Command string }

// checks returns what it found of a check.
func (w *world) checks(code int, check string, args ...string) (out []checked) {
	w.t.Helper()
	d := one[struct{ Findings []checked }](w.t, w.want(code, append([]string{"doctor", "--json"}, args...)...).out)
	for _, f := range d.Findings {
		if f.Check == check {
			out = append(out, f)
		}
	}
	return out
}

// A mistake in the configuration is said by 'doctor' with its line, and by 'work' on the error output, once for all sessions.
func TestConfig_MistakesAreSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(""))
	if f := w.checks(0, "config"); len(f) != 1 || f[0].Level != "ok" || !strings.Contains(f[0].Message, "no configuration") {
		t.Errorf("without one: %+v", f)
	}
	w.configure("[mcp]\nauthorty = \"read\"\n")
	if f := w.checks(3, "config"); len(f) != 1 || f[0].Level != "person" || !strings.Contains(f[0].Message, "line 2") || !strings.Contains(f[0].Message, "authorty") {
		t.Errorf("with a mistake: %+v", f)
	}
	w.want(0, "goals", "create", "--mode", "edit", "Produce out.txt.")
	w.want(0, "goals", "create", "--mode", "edit", "Produce out.txt.")
	if r := w.want(0, "work"); strings.Count(r.errs, "authorty") != 1 {
		t.Errorf("work says %q", r.errs)
	}
	if r := w.want(3, "doctor"); !strings.HasPrefix(r.out, "ok      directory") || !strings.Contains(r.out, "the disk of "+w.home) {
		t.Errorf("doctor says\n%s", r.out)
	}
}

// A server that cannot be started is named: by 'doctor' from its command alone or by a trial, and by 'work'.
func TestConfig_ServersAreLookedAt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(""))
	w.configure("[mcp.servers.gone]\ncommand = \"no-such-command-here\"\n[mcp.servers.off]\ncommand = \"nor-this\"\ndisabled = true\n")
	if f := w.checks(3, "servers"); len(f) != 1 || f[0].Level != "person" || !strings.Contains(f[0].Message, `"gone"`) {
		t.Errorf("a command that is not there: %+v", f)
	}
	w.want(0, "goals", "create", "--mode", "edit", "Produce out.txt.")
	if r := w.want(0, "work"); !strings.Contains(r.errs, `MCP server "gone"`) {
		t.Errorf("work says %q", r.errs)
	}
	w.configure("[mcp.servers.mute]\ncommand = \"false\"\n")
	if f := w.checks(0, "servers"); len(f) != 1 || f[0].Level != "ok" {
		t.Errorf("a command that is there: %+v", f)
	}
	if f := w.checks(3, "servers", "--start-servers"); len(f) != 1 || f[0].Level != "person" || !strings.Contains(f[0].Message, "could not be started") {
		t.Errorf("one that ends at once: %+v", f)
	}
	w.configure("[mcp.servers.own]\ncommand = \"" + w.binary() + "\"\nargs = [\"mcp\"]\nenv = { HOLDFAST_HOME = \"" + w.home + "\" }\n")
	if f := w.checks(0, "servers", "--start-servers"); len(f) != 1 || f[0].Level != "ok" || !strings.Contains(f[0].Message, "11 tools") {
		t.Errorf("one that starts: %+v", f)
	}
}

// What cannot work is refused before there is anything to clean up.
func TestDemo_ModelIsLookedAtFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.env = append(w.env, "TMPDIR="+w.work)
	r := w.want(1, "demo", "--model", "foo")
	left, err := os.ReadDir(w.work)
	if !strings.Contains(r.errs, "PROVIDER/NAME") || r.out != "" || err != nil || len(left) > 0 {
		t.Errorf("%+v, it left %v, %v", r, left, err)
	}
}

// A client that leaves at once is no fault: nothing is logged, and nothing is said.
func TestACP_ClientThatLeavesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for range 5 {
		if r := w.want(0); r.out != "" || r.errs != "" {
			t.Errorf("it says %+v", r)
		}
	}
	if b, err := os.ReadFile(filepath.Join(w.home, "log.jsonl")); !os.IsNotExist(err) {
		t.Errorf("the log says %s (%v)", b, err)
	}
}
