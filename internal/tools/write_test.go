//go:build unix

package tools

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/session"
)

func deadline() <-chan time.Time { return time.After(20 * time.Second) }

// The permissions of a file do not depend on the umask of the process that edits it.
func TestWrite_KeepsPermissionsUnderAnyUmask(t *testing.T) {
	b := newBench(t)
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	for _, mode := range []os.FileMode{0o644, 0o664, 0o755, 0o600} {
		b.put("f", "one\n")
		if err := os.Chmod(b.path("f"), mode); err != nil {
			t.Fatal(err)
		}
		b.must("edit", args{"path": "f", "edits": []args{{"old": "one", "new": "two"}}})
		if st, err := os.Stat(b.path("f")); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%v became %v", mode, st.Mode().Perm())
		}
	}
	b.must("write", args{"path": "new", "content": "x"})
	if st, err := os.Stat(b.path("new")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("a new file ignores the umask: %v", st.Mode().Perm())
	}
}

func TestWrite_ReadOnlyFileIsLeftAlone(t *testing.T) {
	b := newBench(t)
	b.put("f", "one\n")
	if err := os.Chmod(b.path("f"), 0o444); err != nil {
		t.Fatal(err)
	}
	if msg := b.refused("edit", args{"path": "f", "edits": []args{{"old": "one", "new": "two"}}}); !strings.Contains(msg, "read-only") {
		t.Error(msg)
	}
	b.refused("write", args{"path": "f", "content": "x", "version": b.version("f")})
}

// read shows neither the mark nor CRLF, so a whole-file write cannot be meant to take them away.
func TestWrite_KeepsMarkAndLineEnds(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct{ old, content, want string }{
		"mark":          {"\ufeffone\n", "two\n", "\ufefftwo\n"},
		"mark sent":     {"\ufeffone\n", "\ufefftwo\n", "\ufefftwo\n"},
		"CRLF":          {"one\r\nmore\r\n", "two\nmore\n", "two\r\nmore\r\n"},
		"CRLF sent":     {"one\r\n", "two\r\n", "two\r\n"},
		"both":          {"\ufeffone\r\n", "two\n", "\ufefftwo\r\n"},
		"mixed as sent": {"one\r\ntwo\n", "x\ny\n", "x\ny\n"},
		"LF as sent":    {"one\n", "x\r\n", "x\r\n"},
		"mixed, kept":   {"a\r\nb\nc\r\nd\n", "a\nb\nnew\nc\nd\n", "a\r\nb\nnew\nc\r\nd\n"},
		"mixed, moved":  {"a\r\nb\r\nc\r\nd\n", "first\nb\nd\n", "first\r\nb\r\nd\n"},
		"final newline": {"one\ntwo\n", "one\nthree", "one\nthree\n"},
		"none sent":     {"one\ntwo", "one\nthree\n", "one\nthree\n"},
		"UTF-16LE":      {"\xff\xfea\x00\r\x00\n\x00", "é😀\n", "\xff\xfe\xe9\x00\x3d\xd8\x00\xde\r\x00\n\x00"},
		"UTF-16BE":      {"\xfe\xff\x00a", "b", "\xfe\xff\x00b"},
	} {
		b.put("f", c.old)
		b.must("write", args{"path": "f", "content": c.content, "version": b.version("f")})
		if got := b.get("f"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for name, old := range map[string]string{"Latin-1": "caf\xe9\n", "binary": "a\x00b", "UTF-16 without a mark": "a\x00b\x00", "half of UTF-16": "\xff\xfea", "UTF-16 with half a pair": "\xff\xfe\x00\xd8"} {
		b.put("f", old)
		if msg := b.refused("write", args{"path": "f", "content": "x", "version": b.version("f")}); !strings.Contains(msg, "neither UTF-8") || b.get("f") != old {
			t.Errorf("%s: %s", name, msg)
		}
	}
	b.refused("write", args{"path": "nul", "content": "a\x00b"})
}

// In a file with both kinds of line ends an edit finds text across either, and other lines stay as they are.
func TestEdit_MixedLineEnds(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct{ file, old, new, want string }{
		"across CRLF":         {"a\r\nb\nc\r\nd\r\n", "c\nd", "c\nD", "a\r\nb\nc\r\nD\r\n"},
		"across LF":           {"a\r\nb\nc\r\nd\r\n", "b\nc", "b\nC", "a\r\nb\nC\r\nd\r\n"},
		"across both":         {"a\r\nb\nc\r\nd\r\n", "a\nb\nc\n", "a\nB\nc\n", "a\r\nB\nc\r\nd\r\n"},
		"added lines":         {"a\r\nb\r\nc\n", "b\nc", "b\nx\nc", "a\r\nb\r\nx\r\nc\n"},
		"LF made CRLF":        {"a\nb\n", "a\nb", "a\r\nb", "a\r\nb\n"},
		"lone return is text": {"a\rb\nc\n", "a\rb", "x\ry", "x\ry\nc\n"},
	} {
		b.put("f", c.file)
		b.must("edit", args{"path": "f", "edits": []args{{"old": c.old, "new": c.new}}})
		if got := b.get("f"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// However lines end, an edit is the same as on the text that read shows, and every line it does not touch keeps its end.
func TestEdit_IsAnEditOfWhatReadShows(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		ends := rapid.SampledFrom([]string{"\n", "\r\n"})
		var file strings.Builder
		for range rapid.IntRange(1, 8).Draw(r, "lines") {
			file.WriteString(rapid.StringMatching(`[abé]{0,2}`).Draw(r, "line") + ends.Draw(r, "end"))
		}
		raw := file.String()
		seen := fold(raw).text
		from := rapid.IntRange(0, len(seen)-1).Draw(r, "from")
		to := rapid.IntRange(from+1, len(seen)).Draw(r, "to")
		old, replacement := seen[from:to], rapid.StringMatching(`[abé\n]{0,4}`).Draw(r, "new")
		got, _, err := replacementOf(old, replacement).apply(raw)
		if strings.Count(seen, old) != 1 {
			if err == nil {
				r.Fatalf("%q is ambiguous in %q", old, seen)
			}
			return
		}
		if err != nil {
			r.Fatal(err)
		}
		if want := strings.Replace(seen, old, replacement, 1); fold(got).text != want {
			r.Fatalf("%q: %q to %q gives %q, want %q", raw, old, replacement, got, want)
		}
		at := strings.Index(seen, old)
		head, tail := raw[:fold(raw).raw(at)], raw[fold(raw).raw(at+len(old)):]
		if !strings.HasPrefix(got, head) || !strings.HasSuffix(got, tail) {
			r.Fatalf("%q became %q: bytes outside %q changed", raw, got, old)
		}
	})
}

func replacementOf(old, new string) replacement { return replacement{Old: &old, New: &new} }

// What was approved is a path; a folder swapped for a link since then leads to another file.
func TestWrite_FolderSwappedForALinkSinceThePlan(t *testing.T) {
	b := newBench(t)
	b.put("a/keep", "")
	b.put("b/keep", "")
	pl := b.plan("write", args{"path": "a/new.txt", "content": "x"})
	if err := os.RemoveAll(b.path("a")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("b", b.path("a")); err != nil {
		t.Fatal(err)
	}
	_, err := b.tool("write").Run(t.Context(), b.env, pl, nil)
	var te *session.ToolError
	if !errors.As(err, &te) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(b.path("b/new.txt")); err == nil {
		t.Error("another file than the approved one was written")
	}
	if f, err := b.tool("write").(session.Prober).Probe(t.Context(), b.env, pl); err != nil || f.Fact != session.FactUnknown {
		t.Errorf("probe says %s, %v", f.Fact, err)
	}
}

// Work that is no longer wanted, or belongs to another owner by now, is not written.
func TestWrite_StoppedBeforeItWrites(t *testing.T) {
	b := newBench(t)
	for _, cause := range []error{session.ErrStopped, session.ErrFenced, session.ErrDetach} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if _, err := b.tool("write").Run(ctx, b.env, b.plan("write", args{"path": "f", "content": "x"}), nil); err == nil {
			t.Errorf("%v: no failure", cause)
		}
		if _, err := os.Stat(b.path("f")); err == nil {
			t.Fatalf("%v: it was written", cause)
		}
	}
}

// A leftover is removed by the probe of its own call only: another process may be writing beside it.
func TestProbe_LeavesOtherWritersAlone(t *testing.T) {
	b := newBench(t)
	mine, other := b.plan("write", args{"path": "a", "content": "x"}), b.plan("write", args{"path": "b", "content": "x"})
	b.put(tempName(mine.Files[0], "1"), "half")
	b.put(tempName(other.Files[0], "1"), "half")
	if _, err := b.tool("write").(session.Prober).Probe(t.Context(), b.env, mine); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(b.path(tempMark + "*"))
	if len(left) != 1 || filepath.Base(left[0]) != tempName(other.Files[0], "1") {
		t.Errorf("left are %v", left)
	}
}
