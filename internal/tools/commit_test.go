package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/session"
)

func (b *bench) planOf(name string, a any) session.Plan {
	b.t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		b.t.Fatal(err)
	}
	pl, err := b.tool(name).Plan(b.env, raw)
	if err != nil {
		b.t.Fatalf("%s: %v", name, err)
	}
	return pl
}

// tree is every file below the workspace with its content; links show their target, executable files a star.
func (b *bench) tree() map[string]string {
	b.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(b.env.Cwd, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(b.env.Cwd, path)
		if to, err := os.Readlink(path); err == nil {
			out[rel] = "-> " + to
			return nil
		}
		text, err := os.ReadFile(path)
		if info, e := d.Info(); e == nil && info.Mode()&0o100 != 0 {
			rel += "*"
		}
		out[rel] = string(text)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *bench) wants(want map[string]string) {
	b.t.Helper()
	got := b.tree()
	g, _ := json.Marshal(got)
	w, _ := json.Marshal(want)
	if string(g) != string(w) {
		b.t.Errorf("the workspace is %s\nwant %s", g, w)
	}
}

const three = `diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
-one
+ONE
 two
diff --git a/b.txt b/sub/c.txt
similarity index 80%
rename from b.txt
rename to sub/c.txt
--- a/b.txt
+++ b/sub/c.txt
@@ -1 +1 @@
-bee
+sea
diff --git a/d.txt b/d.txt
deleted file mode 100644
--- a/d.txt
+++ /dev/null
@@ -1 +0,0 @@
-dee
diff --git a/run b/run
new file mode 100755
--- /dev/null
+++ b/run
@@ -0,0 +1 @@
+#!/bin/sh
\ No newline at end of file
diff --git a/m b/m
old mode 100644
new mode 100755
`

func (b *bench) threes() {
	for name, text := range map[string]string{"a.txt": "one\ntwo\n", "b.txt": "bee\n", "d.txt": "dee\n", "m": "m\n"} {
		b.put(name, text)
	}
}

var (
	threeBefore = map[string]string{"a.txt": "one\ntwo\n", "b.txt": "bee\n", "d.txt": "dee\n", "m": "m\n"}
	threeAfter  = map[string]string{"a.txt": "ONE\ntwo\n", "sub/c.txt": "sea\n", "run*": "#!/bin/sh", "m*": "m\n"}
)

func TestPatch_SeveralFilesOfEveryKind(t *testing.T) {
	b := newBench(t)
	b.threes()
	out := b.must("apply_patch", args{"patch": three})
	b.wants(threeAfter)
	for _, want := range []string{"Replaced a.txt, version", "Moved b.txt to sub/c.txt", "Deleted d.txt.", "Created run, version", "Replaced m,"} {
		if !strings.Contains(out.Text, want) {
			t.Errorf("the result lacks %q: %s", want, out.Text)
		}
	}
}

// The user saves a file at the worst moment of every step: all others are as before, and what the user saved is there.
func TestCommit_SavedInTheLastMoment(t *testing.T) {
	for _, victim := range []string{"a.txt", "b.txt", "d.txt", "m"} {
		for how, save := range map[string]func(b *bench){
			"in place":  func(b *bench) { b.put(victim, "the user's\n") },
			"by rename": func(b *bench) { b.put("saved", "the user's\n"); _ = os.Rename(b.path("saved"), b.path(victim)) },
		} {
			t.Run(victim+"/"+how, func(t *testing.T) {
				b := newBench(t)
				b.threes()
				pl := b.planOf("apply_patch", args{"patch": three})
				exchangeHook = func(path string) {
					if path == b.path(victim) {
						save(b)
					}
				}
				defer func() { exchangeHook = nil }()
				if out, err := b.tool("apply_patch").Run(t.Context(), b.env, pl, nil); err == nil {
					t.Errorf("it says %+v", out)
				}
				want := map[string]string{}
				for k, v := range threeBefore {
					want[k] = v
				}
				want[victim] = "the user's\n"
				b.wants(want)
				if _, err := os.Stat(b.path("sub")); err == nil {
					t.Error("a folder that was made stays")
				}
			})
		}
	}
}

// A process that dies after any of the steps leaves files that say each what became of them.
func TestProbe_EachFileOfSeveral(t *testing.T) {
	for n := 0; ; n++ {
		b := newBench(t)
		b.threes()
		pl := b.planOf("apply_patch", args{"patch": three})
		if n > len(pl.Files) {
			break
		}
		steps, err := b.opt.steps(b.env, pl)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			if err := s.stage(); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range steps[:n] { // and dies
			if err := s.take(); err != nil {
				t.Fatal(err)
			}
		}
		f, err := b.tool("apply_patch").(session.Prober).Probe(t.Context(), b.env, pl)
		if err != nil {
			t.Fatal(err)
		}
		for name := range b.tree() {
			if strings.Contains(name, tempMark) {
				t.Errorf("%d: %s is left", n, name)
			}
		}
		switch {
		case n == 0:
			if f.Fact != session.FactNotStarted {
				t.Errorf("none: %+v", f)
			}
			b.wants(threeBefore)
		case f.Fact != session.FactCompleted || f.Output.Digest != session.AppliedDigest(pl.Files, n):
			t.Errorf("%d: %+v %+v", n, f, f.Output)
		case n < len(pl.Files):
			if !f.Output.IsError || strings.Count(f.Output.Text, ": applied") != n || strings.Count(f.Output.Text, ": not applied") != len(pl.Files)-n {
				t.Errorf("%d: %s", n, f.Output.Text)
			}
		default:
			b.wants(threeAfter)
			if f.Output.IsError {
				t.Errorf("all: %s", f.Output.Text)
			}
		}
	}
}

// What somebody else saved in the instant of a death is not swept away.
func TestProbe_PutsBackWhatWasSavedInTheMomentOfDeath(t *testing.T) {
	for name, a := range map[string]args{"edit": {"path": "f", "edits": []args{{"old": "old", "new": "new"}}}, "delete": {"paths": []string{"f"}}} {
		b := newBench(t)
		b.put("f", "old\n")
		pl := b.planOf(name, a)
		steps, err := b.opt.steps(b.env, pl)
		if err != nil {
			t.Fatal(err)
		}
		s := steps[0]
		if err := s.stage(); err != nil {
			t.Fatal(err)
		}
		b.put("f", "the user's\n")
		if name == "edit" {
			err = s.dir.exchange(s.beside, "f")
		} else {
			err = s.dir.Rename("f", tempName(s.FileChange, "old-1"))
		}
		if err != nil {
			t.Skipf("needs a system that exchanges two files: go test ./internal/tools -run InTheMomentOfDeath (%v)", err)
		}
		if _, err := b.tool(name).(session.Prober).Probe(t.Context(), b.env, pl); err != nil {
			t.Fatal(err)
		}
		b.wants(map[string]string{"f": "the user's\n"})
	}
}

func TestMoveAndDelete(t *testing.T) {
	b := newBench(t)
	b.put("bin", "a\x00\xff")
	b.put("x", "x\n")
	b.put("dir/y", "y\n")
	if err := os.Symlink("x", b.path("link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(b.path("bin"), 0o711); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(b.path("bin"))
	b.must("move", args{"from": "bin", "to": "deep/er/bin2"})
	if after, err := os.Stat(b.path("deep/er/bin2")); err != nil || !os.SameFile(before, after) || after.Mode() != before.Mode() {
		t.Errorf("a moved file is another one: %v %v", after, err)
	}
	b.must("move", args{"from": "x", "to": "dir"})
	b.wants(map[string]string{"deep/er/bin2*": "a\x00\xff", "dir/x": "x\n", "dir/y": "y\n", "link": "-> x"})
	for name, c := range map[string]struct {
		tool string
		args args
		want string
	}{
		"over a file":   {"move", args{"from": "dir/x", "to": "dir/y"}, "exists already"},
		"a link":        {"delete", args{"paths": []string{"link"}}, "is a link"},
		"a folder":      {"delete", args{"paths": []string{"dir"}}, "use the shell tool: mv, rmdir"},
		"nothing":       {"delete", args{"paths": []string{"nope"}}, "does not exist"},
		"one is wrong":  {"delete", args{"paths": []string{"dir/x", "nope"}}, "does not exist"},
		"into git":      {"move", args{"from": "dir/x", "to": ".GIT/hooks/x"}, ".git"},
		"out of git":    {"move", args{"from": ".git/config", "to": "x"}, ".git"},
		"state records": {"delete", args{"paths": []string{filepath.Join(b.opt.StateDir, "holdfast.db")}}, "own records"},
	} {
		if msg := b.refused(c.tool, c.args); !strings.Contains(msg, c.want) {
			t.Errorf("%s: %s", name, msg)
		}
	}
	b.must("delete", args{"paths": []string{"dir/x", "deep/er/bin2", "dir/x"}})
	b.wants(map[string]string{"dir/y": "y\n", "link": "-> x"})
}
