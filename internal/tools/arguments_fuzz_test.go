package tools

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"holdfast/session"
)

// Whatever a model sends as arguments becomes a plan or a refusal that it can read, and planning changes nothing (I6).
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{}`, `null`, `[]`, `{"path":"a.txt"}`, `{"path":"../a"}`, `{"path":"a.txt","offset":-1,"limit":9223372036854775807}`, `{"path":"\ud800"}`,
		`{"path":"a.txt","content":"x","version":"0"}`, `{"path":"a.txt","edits":[{"old":"a","new":"b","replace_all":true}]}`, `{"path":"a.txt","edits":[{"old":null}]}`,
		`{"pattern":"**/*.{go,txt}","path":"."}`, `{"pattern":"(a+)+$","literal":false,"context":99}`, `{"pattern":"[[]","glob":"{a,{b,c}"}`, `{"command":"ls","timeout_seconds":1e99}`,
		`{"command":"cat <<EOF\nEOF","background":true,"pty":true}`, `{"name":"x"}`, strings.Repeat("[", 20_000), `{"path":` + strings.Repeat(`{"a":`, 9_000), "{\"path\":\"a\x00\"}"} {
		for i := range Builtin(Options{}) {
			f.Add(i, []byte(s))
		}
	}
	dir := f.TempDir()
	cwd := filepath.Join(dir, "work")
	if err := os.MkdirAll(filepath.Join(cwd, "sub"), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cwd, "a.txt"), []byte("a\n"), 0o644); err != nil {
		f.Fatal(err)
	}
	env := session.ToolEnv{Cwd: cwd, Roots: []string{cwd}, RunDir: filepath.Join(dir, "call")}
	all := Builtin(Options{StateDir: filepath.Join(dir, "state")})
	before := treeOf(f, dir)
	f.Fuzz(func(t *testing.T, which int, args []byte) {
		tool := all[uint(which)%uint(len(all))]
		pl, err := tool.Plan(env, json.RawMessage(args))
		var te *session.ToolError
		switch {
		case err == nil && (pl.Title == "" || !json.Valid(pl.Args)):
			t.Errorf("%s with %q is planned as %+v", tool.Spec().Name, args, pl)
		case err != nil && (!errors.As(err, &te) || te.Message == ""):
			t.Errorf("%s with %q: %v", tool.Spec().Name, args, err)
		case err != nil && !utf8.ValidString(te.Message):
			t.Errorf("%s with %q is refused with %q", tool.Spec().Name, args, te.Message)
		}
		if now := treeOf(t, dir); now != before {
			t.Fatalf("%s with %q: planning made %s of %s", tool.Spec().Name, args, now, before)
		}
	})
}

// treeOf lists what is below a folder, with what the files hold.
func treeOf(t testing.TB, dir string) string {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		b.WriteString(path + "\n")
		if d.Type().IsRegular() {
			content, err := os.ReadFile(path)
			b.Write(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
