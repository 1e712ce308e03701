package edits_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever a file is made of, an edit changes what it names and nothing else.
func TestEdits_KeepEveryOtherByte(t *testing.T) {
	t.Parallel()
	utf16 := func(s string) string {
		out := "\xff\xfe"
		for _, r := range s {
			out += string([]byte{byte(r), byte(r >> 8)})
		}
		return out
	}
	w := newWorld(t)
	for name, c := range map[string]struct{ before, after string }{
		"lf": {"a\nold\nb\n", "a\nnew\nb\n"}, "crlf": {"a\r\nold\r\nb\r\n", "a\r\nnew\r\nb\r\n"}, "mixed": {"a\r\nold\nb\r\n", "a\r\nnew\nb\r\n"},
		"open": {"a\nold", "a\nnew"}, "mark": {"\ufeffold\n", "\ufeffnew\n"}, "utf16": {utf16("é\r\nold\r\n"), utf16("é\r\nnew\r\n")},
		"latin1": {"caf\xe9 old\n", "caf\xe9 old\n"}, "binary": {"old\x00", "old\x00"},
	} {
		w.put(name, c.before)
		w.must(os.Chmod(filepath.Join(w.work, name), 0o751))
		r := w.run("edit", editing(name, "old", "new"))[0]
		w.holds(name, c.after)
		if c.before == c.after && !strings.Contains(r, "neither UTF-8 text nor UTF-16") {
			t.Errorf("%s: no reason is given: %s", name, r)
		}
		if st, err := os.Stat(filepath.Join(w.work, name)); err != nil || st.Mode().Perm() != 0o751 {
			t.Errorf("%s: the mode is %v, %v", name, st.Mode(), err)
		}
	}
	w.clean()
}

// An edit through a link changes what it leads to, and the link stays.
func TestEdits_ThroughALink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("real/f", "old\n")
	w.must(os.Symlink("real/f", filepath.Join(w.work, "l")))
	w.must(os.Symlink("real", filepath.Join(w.work, "d")))
	w.run("edit", editing("l", "old", "one"), patching("--- a/d/f\n+++ b/d/f\n@@ -1 +1 @@\n-one\n+two\n"))
	w.holds("real/f", "two\n")
	for _, link := range []string{"l", "d"} {
		if _, err := os.Readlink(filepath.Join(w.work, link)); err != nil {
			t.Errorf("%s is no link any more: %v", link, err)
		}
	}
}

// The user saves the file while the question waits: what was saved stays, whatever the time stamp says, and the model is told to read again.
func TestEdits_SavedWhileTheQuestionWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", "old\n")
	w.put("b", "old\n")
	st, err := os.Stat(filepath.Join(w.work, "b"))
	w.must(err)
	w.answer = func(q question) string {
		if len(w.asks) == 1 { // asked anew about what is there then
			w.put("b", "usr\n")
			w.must(os.Chtimes(filepath.Join(w.work, "b"), st.ModTime(), st.ModTime())) // same size, same time
		}
		return "allow_once"
	}
	r := w.run("", patching("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+new\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-old\n+new\n"))
	w.holds("a", "old\n")
	w.holds("b", "usr\n")
	w.contains(r[0], "b: hunk 1", "Read the file again", "Nothing was changed")
}

// A whole file is only replaced by somebody who has read it as it is.
func TestEdits_WriteNeedsTheVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("f", "user\n")
	r := w.run("edit", tool("write", object{"path": "f", "content": "x\n"}), tool("write", object{"path": "f", "content": "x\n", "version": "000000000000"}))
	w.holds("f", "user\n")
	w.contains(r[0], "Read it first")
	w.contains(r[1], "Read it again")
}
