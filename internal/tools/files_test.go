package tools

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/session"
)

func TestTools_StayInsideTheWorkspace(t *testing.T) {
	b := newBench(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"folder": outside, "file": filepath.Join(outside, "secret"), "dangling": filepath.Join(outside, "new")} {
		if err := os.Symlink(target, b.path(link)); err != nil {
			t.Fatal(err)
		}
	}
	real := map[string]string{"../x": filepath.Join(filepath.Dir(b.env.Cwd), "x"), "folder/secret": filepath.Join(outside, "secret"),
		"folder/new/deep": filepath.Join(outside, "new/deep"), "file": filepath.Join(outside, "secret"), "dangling": filepath.Join(outside, "new"),
		"/etc/passwd": "/etc/passwd", "a/../../x": filepath.Join(filepath.Dir(b.env.Cwd), "x"), filepath.Join(outside, "secret"): filepath.Join(outside, "secret")}
	for path, target := range real {
		for tool, a := range map[string]args{"read": {"path": path}, "write": {"path": path, "content": "x"},
			"edit": {"path": path, "edits": []args{{"old": "secret", "new": "x"}}}, "list": {"path": path}, "grep": {"path": path, "pattern": "secret"}, "glob": {"path": path, "pattern": "*"},
			"delete": {"paths": []string{path}}, "move": {"from": path, "to": "here"},
			"apply_patch": {"patch": "--- a/" + path + "\n+++ b/" + path + "\n@@ -1 +1 @@\n-secret\n\\ No newline at end of file\n+x\n"}} {
			raw, _ := json.Marshal(a)
			pl, err := b.tool(tool).Plan(b.env, raw)
			var te *session.ToolError
			if errors.As(err, &te) {
				continue // refused for what it is; nothing was looked at but names
			}
			if err != nil || pl.Place != session.PlaceOutside || !slices.Contains(pl.Paths, target) || !strings.Contains(pl.Title, target) || !strings.Contains(pl.Title, "outside") {
				t.Errorf("%s %s: %v, place %q, paths %q, title %q", tool, path, err, pl.Place, pl.Paths, pl.Title)
			}
			if tool == "read" && (path == "file" || path == "folder/secret") && len(pl.Paths) != 1 {
				t.Error("nothing was planned")
			}
		}
	}
	if text, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(text) != "secret" {
		t.Errorf("the file outside is %q, %v", text, err)
	}
	if out := b.must("grep", args{"pattern": "secret"}); out.Text != "[no match]" {
		t.Errorf("a search followed a link: %s", out.Text)
	}
	b.refused("write", args{"path": ".git/config", "content": "x"})
}

func TestTools_RootUnderALinkAndStateDirectory(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "one\n")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(b.env.Cwd, link); err != nil {
		t.Fatal(err)
	}
	b.env.Cwd, b.env.Roots = link, []string{link}
	if out := b.must("read", args{"path": "a.txt"}); !strings.Contains(out.Text, "one") {
		t.Errorf("read below a linked root: %s", out.Text)
	}
	b.must("write", args{"path": "new/deep.txt", "content": "x"})
	b.opt.StateDir = filepath.Join(link, "state")
	b.put("state/holdfast.db", "x")
	b.refused("read", args{"path": "state/holdfast.db"})
	b.refused("write", args{"path": "state/new", "content": "x"})
}

// The user's configuration says what runs: in a session of the home directory it is as far away as anywhere else.
func TestTools_ConfigurationOfTheUser(t *testing.T) {
	b := newBench(t)
	b.opt.Own = []string{b.path(".config/holdfast")}
	b.put(".config/holdfast/config.toml", "authority = \"read\"\n")
	b.put(".config/other/a.txt", "authority\n")
	if err := os.Symlink(".config/holdfast", b.path("link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{".config/holdfast/config.toml", "link/config.toml", ".config/other/../holdfast/config.toml"} {
		b.refused("read", args{"path": path})
		b.refused("edit", args{"path": path, "edits": []args{{"old": "read", "new": "full"}}})
	}
	b.refused("write", args{"path": ".config/holdfast/new.toml", "content": "x"})
	b.refused("list", args{"path": ".config/holdfast"})
	if out := b.must("grep", args{"pattern": "authority"}); strings.Contains(out.Text, "config.toml") || !strings.Contains(out.Text, "other/a.txt") {
		t.Errorf("a search says %s", out.Text)
	}
}

func TestWrite_ReplacesOnlyWhatWasRead(t *testing.T) {
	b := newBench(t)
	b.must("write", args{"path": "a.txt", "content": "one\n"})
	b.refused("write", args{"path": "a.txt", "content": "two\n"})
	version := versionOf(digestOf([]byte("one\n")))
	if out := b.must("read", args{"path": "a.txt"}); !strings.Contains(out.Text, "version "+version) {
		t.Errorf("read does not show the version: %s", out.Text)
	}
	b.put("a.txt", "the user's\n")
	msg := b.refused("write", args{"path": "a.txt", "content": "two\n", "version": version})
	if strings.Contains(msg, b.version("a.txt")) || !strings.Contains(msg, "Read it again") {
		t.Errorf("the refusal spares the model a look at the file: %s", msg)
	}
	if b.get("a.txt") != "the user's\n" {
		t.Error("an outside change was overwritten")
	}
	b.must("write", args{"path": "a.txt", "content": "two\n", "version": versionOf(digestOf([]byte("the user's\n")))})
	if b.get("a.txt") != "two\n" {
		t.Error("the file was not replaced")
	}
}

// A change between the plan (which the user approves) and the run is noticed.
func TestWrite_ChangeAfterThePlan(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "one\n")
	for name, a := range map[string]args{"write": {"path": "a.txt", "content": "two\n", "version": versionOf(digestOf([]byte("one\n")))},
		"edit": {"path": "a.txt", "edits": []args{{"old": "one", "new": "two"}}}} {
		raw, _ := json.Marshal(a)
		b.put("a.txt", "one\n")
		pl, err := b.tool(name).Plan(b.env, raw)
		if err != nil {
			t.Fatal(err)
		}
		b.put("a.txt", "the user's\n")
		if _, err := b.tool(name).Run(t.Context(), b.env, pl, nil); err == nil {
			t.Errorf("%s wrote over a change", name)
		}
		if b.get("a.txt") != "the user's\n" {
			t.Errorf("%s: the user's change is lost", name)
		}
	}
	raw, _ := json.Marshal(args{"path": "new.txt", "content": "agent"})
	pl, err := b.tool("write").Plan(b.env, raw)
	if err != nil {
		t.Fatal(err)
	}
	b.put("new.txt", "user")
	if _, err := b.tool("write").Run(t.Context(), b.env, pl, nil); err == nil || b.get("new.txt") != "user" {
		t.Errorf("a new file replaced one that appeared: %v", err)
	}
}

func TestWrite_KeepsPermissionsAndLinks(t *testing.T) {
	b := newBench(t)
	b.put("real.sh", "#!/bin/sh\necho one\n")
	if err := os.Chmod(b.path("real.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.sh", b.path("link.sh")); err != nil {
		t.Fatal(err)
	}
	b.must("edit", args{"path": "link.sh", "edits": []args{{"old": "one", "new": "two"}}})
	if b.get("real.sh") != "#!/bin/sh\necho two\n" {
		t.Errorf("the link's target is %q", b.get("real.sh"))
	}
	if st, err := os.Lstat(b.path("link.sh")); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
	if st, err := os.Stat(b.path("real.sh")); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("permissions became %v", st.Mode())
	}
	if left, _ := filepath.Glob(b.path(tempMark + "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestProbe_SaysFromTheFileWhatHappened(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "one\n")
	raw, _ := json.Marshal(args{"path": "a.txt", "edits": []args{{"old": "one", "new": "two"}}})
	pl, err := b.tool("edit").Plan(b.env, raw)
	if err != nil {
		t.Fatal(err)
	}
	probe := func() session.Fact {
		t.Helper()
		f, err := b.tool("edit").(session.Prober).Probe(t.Context(), b.env, pl)
		if err != nil {
			t.Fatal(err)
		}
		return f.Fact
	}
	leftover := tempName(pl.Files[0], "1")
	b.put(leftover, "half")
	if got := probe(); got != session.FactNotStarted {
		t.Errorf("before: %s", got)
	}
	if _, err := os.Stat(b.path(leftover)); err == nil {
		t.Error("a leftover stays")
	}
	if _, err := b.tool("edit").Run(t.Context(), b.env, pl, nil); err != nil {
		t.Fatal(err)
	}
	if got := probe(); got != session.FactCompleted {
		t.Errorf("after: %s", got)
	}
	b.put("a.txt", "something else\n")
	if got := probe(); got != session.FactUnknown {
		t.Errorf("neither: %s", got)
	}
	if err := os.Remove(b.path("a.txt")); err != nil {
		t.Fatal(err)
	}
	if got := probe(); got != session.FactUnknown {
		t.Errorf("removed: %s", got)
	}
}

// An edit changes the bytes it names and no others, whatever the line ends, marks and final newline.
func TestEdit_KeepsEveryOtherByte(t *testing.T) {
	b := newBench(t)
	rapid.Check(t, func(r *rapid.T) {
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(r, "end")
		lines := rapid.SliceOfN(rapid.StringMatching(`[a-zé€ \t]{0,12}`), 1, 8).Draw(r, "lines")
		mark := rapid.SampledFrom([]string{"", "\ufeff"}).Draw(r, "mark")
		final := rapid.SampledFrom([]string{"", end}).Draw(r, "final")
		at := rapid.IntRange(0, len(lines)).Draw(r, "at")
		before := strings.Join(append(append([]string{}, lines[:at]...), ""), end)
		after := strings.Join(append([]string{""}, lines[at:]...), end)
		old, replacement := "NAMED"+end+"LINE", "new\nlines\nhere"
		b.put("f", mark+before+old+after+final)
		sent := old
		if rapid.Bool().Draw(r, "plain") {
			sent = strings.ReplaceAll(old, "\r\n", "\n") // models spell line ends so
		}
		b.must("edit", args{"path": "f", "edits": []args{{"old": sent, "new": replacement}}})
		want := mark + before + strings.ReplaceAll(replacement, "\n", end) + after + final
		if got := b.get("f"); got != want {
			r.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestEdit_ClearFailures(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "alpha beta\ngamma\ngamma\n")
	for name, c := range map[string]struct {
		edits []args
		want  string
	}{
		"not found": {[]args{{"old": "alpha bet\tx", "new": "y"}}, `line 1: "alpha beta"`},
		"ambiguous": {[]args{{"old": "gamma", "new": "y"}}, "occurs 2 times"},
		"second":    {[]args{{"old": "alpha", "new": "x"}, {"old": "nowhere", "new": "y"}}, "Edit 2"},
		"nothing":   {[]args{{"old": "beta", "new": "beta"}}, "change nothing"},
		"empty":     {[]args{{"old": "", "new": "x"}}, "old is empty"},
		"none":      {[]args{}, "no edits"},
	} {
		if msg := b.refused("edit", args{"path": "a.txt", "edits": c.edits}); !strings.Contains(msg, c.want) {
			t.Errorf("%s: %s", name, msg)
		}
		if b.get("a.txt") != "alpha beta\ngamma\ngamma\n" {
			t.Fatalf("%s: the file changed", name)
		}
	}
	b.must("edit", args{"path": "a.txt", "edits": []args{{"old": "gamma", "new": "delta", "replace_all": true}}})
	b.put("latin1", "caf\xe9\n")
	b.refused("edit", args{"path": "latin1", "edits": []args{{"old": "caf", "new": "x"}}})
}

// A process killed in a write of 50 MB leaves the old or the new file, never a mixture, and the probe says which and clears up. Each of thirty
// rounds kills once another thirtieth of the temporary file is there.
func TestWrite_KilledLeavesOldOrNew(t *testing.T) {
	b := newBench(t)
	kept := 0
	change := bigChange(b.path("big"))
	for i := range 30 {
		b.put("big", bigOld)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "TOOLS_TEST_WRITE="+b.path("big"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		b.awaitTemp(change, int64(i*len(change.NewText)/30))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
		f, err := b.tool("write").(session.Prober).Probe(t.Context(), b.env, session.Plan{Files: []session.FileChange{change}})
		if err != nil {
			t.Fatal(err)
		}
		switch text := b.get("big"); {
		case text == bigOld && f.Fact == session.FactNotStarted:
			kept++
		case text == change.NewText && f.Fact == session.FactCompleted:
		default:
			t.Fatalf("round %d: %d bytes and the fact %q", i, len(text), f.Fact)
		}
		if left, _ := filepath.Glob(b.path(tempMark + "*")); len(left) > 0 {
			t.Errorf("round %d left %v", i, left)
		}
	}
	if kept == 0 {
		t.Error("no kill came before the rename: nothing was tried")
	}
	t.Logf("%d of 30 kills came before the rename", kept)
}

const bigOld = "old\n"

func bigChange(path string) session.FileChange {
	text := strings.Repeat("new\n", 50<<18)
	return session.FileChange{Path: path, Before: digestOf([]byte(bigOld)), After: digestOf([]byte(text)), NewText: text}
}

// awaitTemp waits until a temporary file of a change has grown to a size, or the change is done.
func (b *bench) awaitTemp(change session.FileChange, size int64) {
	b.t.Helper()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); <-time.After(50 * time.Microsecond) {
		names, _ := filepath.Glob(b.path(tempName(change, "*")))
		for _, name := range names {
			if st, err := os.Stat(name); err == nil && st.Size() >= size {
				return
			}
		}
		if st, err := os.Stat(change.Path); err == nil && st.Size() > int64(len(bigOld)) {
			return
		}
	}
	b.t.Fatal("the write did not begin")
}

// writeOnce makes the big change and is killed meanwhile.
func writeOnce(path string) {
	env := session.ToolEnv{Cwd: filepath.Dir(path), Roots: []string{filepath.Dir(path)}}
	if _, err := (Options{}).commit(context.Background(), env, session.Plan{Files: []session.FileChange{bigChange(path)}}); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func TestReaders(t *testing.T) {
	b := newBench(t)
	b.put("dir/a.go", "package a\n\nfunc Alpha() {}\n")
	b.put("dir/b.txt", "alpha\nbeta\ngamma\n")
	b.put("bin", "a\x00b")
	b.put("empty", "")
	for name, c := range map[string]struct {
		tool string
		args args
		want string
	}{
		"range":       {"read", args{"path": "dir/b.txt", "offset": 2, "limit": 1}, "2\tbeta\n[lines 2-2 of 3"},
		"past end":    {"read", args{"path": "dir/b.txt", "offset": 9}, "the file has 3 lines"},
		"binary":      {"read", args{"path": "bin"}, "binary file, 3 bytes"},
		"empty":       {"read", args{"path": "empty"}, "[empty file"},
		"list":        {"list", args{}, "bin\t3\ndir/\nempty\t0"},
		"glob":        {"glob", args{"pattern": "*.go"}, "dir/a.go"},
		"glob none":   {"glob", args{"pattern": "*.rs"}, "[no file matches]"},
		"grep":        {"grep", args{"pattern": "^al.ha$"}, "dir/b.txt:1: alpha"},
		"grep around": {"grep", args{"pattern": "beta", "context": 1}, "dir/b.txt-1- alpha\ndir/b.txt:2: beta\ndir/b.txt-3- gamma"},
		"grep glob":   {"grep", args{"pattern": "(?i)alpha", "glob": "*.go"}, "dir/a.go:3:"},
		"literal":     {"grep", args{"pattern": "Alpha()", "literal": true}, "dir/a.go:3:"},
		"one file":    {"grep", args{"pattern": "gamma", "path": "dir/b.txt"}, "dir/b.txt:3: gamma"},
	} {
		if out := b.must(c.tool, c.args); !strings.Contains(out.Text, c.want) {
			t.Errorf("%s: %q does not hold %q", name, out.Text, c.want)
		}
	}
	for name, c := range map[string]struct {
		tool string
		args any
		want string
	}{
		"missing file": {"read", args{"path": "nope"}, "does not exist"},
		"folder":       {"read", args{"path": "dir"}, "cannot be read"},
		"bad regexp":   {"grep", args{"pattern": "("}, "not a regular expression"},
		"bad glob":     {"glob", args{"pattern": "["}, "not a glob pattern"},
		"wrong type":   {"read", args{"path": 1}, `"path"`},
		"unknown":      {"read", args{"path": "bin", "bogus": 1}, "bogus"},
		"no object":    {"read", []int{1}, "JSON object"},
		"negative":     {"read", args{"path": "bin", "offset": -1}, "negative"},
	} {
		if msg := b.refused(c.tool, c.args); !strings.Contains(msg, c.want) {
			t.Errorf("%s: %q does not hold %q", name, msg, c.want)
		}
	}
}

func TestSearch_LeavesOutWhatGitIgnores(t *testing.T) {
	b := newBench(t)
	b.put("kept.txt", "needle\n")
	b.put("ignored/x.txt", "needle\n")
	b.put(".gitignore", "ignored/\n")
	cmd := exec.Command("git", "init", "-q")
	cmd.Dir = b.env.Cwd
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	if out := b.must("grep", args{"pattern": "needle"}); out.Text != "kept.txt:1: needle" {
		t.Errorf("grep: %s", out.Text)
	}
	if out := b.must("glob", args{"pattern": "*.txt"}); out.Text != "kept.txt" {
		t.Errorf("glob: %s", out.Text)
	}
}

func TestRead_LongLinesAndFilesAreCutBetweenCharacters(t *testing.T) {
	b := newBench(t)
	b.put("long", strings.Repeat("é€😀", 5000)+"\n"+strings.Repeat("line\n", 20000))
	out := b.must("read", args{"path": "long", "limit": 20000})
	if len(out.Text) > maxResult+maxLine+200 || strings.ContainsRune(out.Text, '\uFFFD') || !strings.Contains(out.Text, "[line cut]") {
		t.Errorf("%d bytes, ends %q", len(out.Text), out.Text[len(out.Text)-80:])
	}
	if strings.ToValidUTF8(out.Text, "!") != out.Text {
		t.Error("cut inside a character")
	}
}
