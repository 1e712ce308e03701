package tools

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"holdfast/session"
)

// An edit finds what it names in the text that read shows, or changes nothing; other lines keep their bytes, and no plan writes what is not text.
func FuzzEdit(f *testing.F) {
	f.Add([]byte("one\r\ntwo\n"), "two", "x\ny", false)
	f.Add([]byte("\xef\xbb\xbfa"), "a", "", false)
	f.Add([]byte("\xff\xfea\x00\r\x00\n\x00"), "a", "é😀\n", true)
	f.Add([]byte("aaaa"), "aa", "b\r\n", true)
	f.Add([]byte("a\r\r\n"), "\r", "\n", false)
	b := newBench(f)
	edit := b.tool("edit")
	f.Fuzz(func(t *testing.T, content []byte, old, now string, all bool) {
		if err := os.WriteFile(b.path("f"), content, 0o644); err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(args{"path": "f", "edits": []args{{"old": old, "new": now, "replace_all": all}}})
		pl, err := edit.Plan(b.env, raw)
		var te *session.ToolError
		if errors.As(err, &te) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		c := pl.Files[0]
		before, encoding := session.DecodeText(content)
		if string(c.Old()) != string(content) || c.Encoding != encoding || encoding == session.EncodingBinary || !utf8.ValidString(c.NewText) {
			t.Fatalf("the plan is about something else: %+v", c)
		}
		if text, e := session.DecodeText(c.New()); text != c.NewText || e != c.Encoding && text != "" && encoding != session.EncodingUTF8 {
			t.Fatalf("%q as %q is read back as %q %q", c.NewText, c.Encoding, text, e)
		}
		var sent struct{ Edits []struct{ Old, New string } } // as the arguments have them
		if err := json.Unmarshal(raw, &sent); err != nil {
			t.Fatal(err)
		}
		old, now = sent.Edits[0].Old, sent.Edits[0].New
		shown := strings.ReplaceAll(before, "\r\n", "\n")
		want := strings.Replace(shown, fold(old).text, fold(now).text, 1)
		if all {
			want = strings.ReplaceAll(shown, fold(old).text, fold(now).text)
		}
		if got := strings.ReplaceAll(c.NewText, "\r\n", "\n"); got != want && !strings.Contains(old+now+before, "\r") {
			t.Fatalf("%q, %q -> %q gives %q, want %q", before, old, now, got, want)
		}
		at := strings.Index(shown, fold(old).text)
		if head := strings.LastIndexByte(shown[:at], '\n') + 1; !all && !strings.HasPrefix(c.NewText, before[:fold(before).raw(head)]) {
			t.Fatalf("%q, %q -> %q changes lines before: %q", before, old, now, c.NewText)
		}
	})
}

// A patch is read and placed, or refused; it never panics, and what it makes is what its own lines say.
func FuzzPatch(f *testing.F) {
	f.Add("one\ntwo\n", three)
	f.Add("a\n", "--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n a\n+b\n")
	f.Add("a\r\n", "--- a/f\r\n+++ b/f\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n\\ No newline at end of file\r\n")
	f.Add("", "diff --git \"a/\\303\\274\" \"b/\\303\\274\"\nnew file mode 100755\n@@ -0,0 +1 @@\n+x\n")
	f.Add("a", "diff --git a/f b/g\nrename from f\nrename to g\ncopy from f\n")
	f.Add("a", "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n")
	f.Add("a", "@@ -1,99999999999999999999 +1 @@\n")
	f.Fuzz(func(t *testing.T, text, patch string) {
		files, err := parsePatch(patch)
		if err != nil {
			return
		}
		for _, x := range files {
			if x.old == "" && x.new == "" {
				t.Fatalf("a file without a name: %+v", x)
			}
			now, _, err := applyHunks(text, x.hunks, nil)
			if err != nil {
				continue
			}
			lines, added, gone := len(splitLines(text)), 0, 0
			for _, h := range x.hunks {
				added, gone = added+len(h.new), gone+len(h.old)
			}
			if len(splitLines(now)) > lines-gone+added {
				t.Fatalf("%q became %q with %+v", text, now, x.hunks)
			}
		}
	})
}

// Whatever a path looks like: a file inside stays inside, git's own files and the agent's records are never planned, and what lies outside is
// called so.
func FuzzPaths(f *testing.F) {
	for _, p := range []string{"a", "../x", "dir/../../x", "link/x", "up/work/a", "loop", ".git/config", ".GIT/hooks/x", ".git./x", "dir/.git", "git~1/x", "bare/config", "state/x",
		"/etc/passwd", "a/b", "dangling", "", "a\x00", "./.", "link/../x", ".g\u200cit/config", "dir//x", strings.Repeat("d/", 200)} {
		f.Add(p)
	}
	b := newBench(f)
	outside := f.TempDir()
	b.put("dir/x", "x")
	b.put("bare/HEAD", "ref: x\n")
	for _, d := range []string{"bare/refs", "bare/objects", "state", ".git"} {
		if err := os.MkdirAll(b.path(d), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	b.opt.StateDir = b.path("state")
	for link, to := range map[string]string{"link": outside, "up": "..", "loop": "loop", "dangling": filepath.Join(outside, "new"), "rec": "state", "g": ".git"} {
		if err := os.Symlink(to, b.path(link)); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, path string) {
		p, err := b.opt.locateWrite(b.env, path)
		if err != nil {
			return
		}
		real := p.abs
		for dir := real; ; dir = filepath.Dir(dir) { // the parts that are there have no link in them
			if r, err := filepath.EvalSymlinks(dir); err == nil {
				if r != dir {
					t.Fatalf("%q is %s, and that is %s", path, p.abs, r)
				}
				break
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
		_, inside := below(b.env.Cwd, real)
		if inside != p.inside || !inside && p.kind != session.PlaceOutside && p.kind != session.PlaceSecret {
			t.Fatalf("%q: inside %v, called %q", path, inside, p.kind)
		}
		for _, own := range []string{b.path("state"), b.path(".git"), b.path("bare")} {
			if _, in := below(own, real); in {
				t.Fatalf("%q leads to %s", path, real)
			}
		}
		if filepath.Join(p.root, p.rel) != p.abs {
			t.Fatalf("%q: %+v", path, p)
		}
	})
}
