package session

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d is here\n", i)
	}
	return b.String()
}

// A person is shown the lines that differ and those around them, the same lines of both sides, however large the file is.
func TestExcerpts_ShowWhatDiffers(t *testing.T) {
	old := numbered(50_000)
	cases := map[string]struct{ old, text, wantOld, wantNew string }{
		"in the middle": {old, strings.Replace(old, "line 25000 is here", "changed", 1),
			"line 24997 is here\nline 24998 is here\nline 24999 is here\nline 25000 is here\nline 25001 is here\nline 25002 is here\nline 25003 is here\n",
			"line 24997 is here\nline 24998 is here\nline 24999 is here\nchanged\nline 25001 is here\nline 25002 is here\nline 25003 is here\n"},
		"at the beginning": {old, "new\n" + old, "line 0 is here\nline 1 is here\nline 2 is here\nline 3 is here\n",
			"new\nline 0 is here\nline 1 is here\nline 2 is here\nline 3 is here\n"},
		"at the end": {old, old + "more", "line 49997 is here\nline 49998 is here\nline 49999 is here\n",
			"line 49997 is here\nline 49998 is here\nline 49999 is here\nmore"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := Excerpts([]FileChange{{Path: "/f", OldText: &c.old, NewText: c.text}})[0]
			if *got.OldText != c.wantOld || got.NewText != c.wantNew {
				t.Errorf("old %q\nnew %q", *got.OldText, got.NewText)
			}
		})
	}
}

// An excerpt is bounded and whole characters, whatever the texts are, it is its own excerpt, and small changes are shown whole.
func TestExcerpts_AreBounded(t *testing.T) {
	small := "a\nb\n"
	wide, oneLine := strings.Repeat("ä€😀", 1<<20), strings.Repeat("x", 11<<20)
	cases := map[string]FileChange{
		"all of it":      {OldText: new(strings.Repeat("old\n", 1<<20)), NewText: strings.Repeat("new\n", 1<<20)},
		"one line":       {OldText: &oneLine, NewText: oneLine[:5<<20] + "y" + oneLine[5<<20:]},
		"wide":           {OldText: &wide, NewText: wide[:90] + "x" + wide[90:]},
		"part of a rune": {OldText: new(wide + "é" + wide), NewText: wide + "è" + wide},
		"new file":       {NewText: wide},
		"emptied":        {OldText: &wide},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := Excerpts([]FileChange{c})
			f := got[0]
			if f.size() > inEntry || !utf8.ValidString(f.NewText) || f.OldText != nil && !utf8.ValidString(*f.OldText) {
				t.Errorf("%d bytes, valid %v", f.size(), utf8.ValidString(f.NewText))
			}
			if (c.OldText == nil) != (f.OldText == nil) || c.OldText != nil && *f.OldText == f.NewText {
				t.Error("the excerpt hides what was done")
			}
			if again := Excerpts(got)[0]; again.size() != f.size() {
				t.Error("an excerpt of an excerpt differs")
			}
		})
	}
	if f := Excerpts([]FileChange{{OldText: &small, NewText: "c"}})[0]; *f.OldText != small || f.NewText != "c" {
		t.Error("a small change was cut")
	}
}

// Large texts leave a plan under their digests; what a plan without them holds is what decides.
func TestApart_LeavesDigests(t *testing.T) {
	old, text := numbered(3000), numbered(3001)
	p := Plan{Title: "Edit f", Files: []FileChange{{Path: "/f", Before: "sha256:old", After: "sha256:new", OldText: &old, NewText: text}}}
	got, texts := p.Apart()
	if f := got.Files[0]; f.OldText != nil || f.NewText != "" || !f.Kept || f.Before != "sha256:old" || f.After != "sha256:new" {
		t.Errorf("left is %+v", f)
	}
	if texts["sha256:old"] != old || texts["sha256:new"] != text || len(texts) != 2 {
		t.Errorf("%d texts", len(texts))
	}
	if p.Files[0].NewText != text || p.Files[0].Kept {
		t.Error("the plan itself was changed")
	}
	if again, texts := got.Apart(); len(texts) != 0 || !again.Files[0].Kept {
		t.Error("what is kept was taken apart again")
	}
	if small, texts := (Plan{Files: []FileChange{{NewText: "x"}}}).Apart(); texts != nil || small.Files[0].NewText != "x" {
		t.Error("a small text was taken out")
	}
}

// The oldest results are given in short form when there are too many bytes of them; where that begins depends on what is stored alone,
// moves on only, and in large steps.
func TestWholeFrom_MovesSeldom(t *testing.T) {
	var sizes []int
	last, moves := 0, 0
	for i := range 10_000 {
		sizes = append(sizes, 1000+i%30_000)
		from := wholeFrom(sizes, fullMost)
		total := 0
		for _, n := range sizes[from:] {
			total += n
		}
		if from < last || total > fullMost || from > 0 && total < fullLeast-31_000 {
			t.Fatalf("after %d results it begins at %d, was %d, with %d bytes", i+1, from, last, total)
		}
		if from != last {
			moves++
		}
		last = from
	}
	if moves == 0 || moves > 40 {
		t.Errorf("it moved %d times", moves)
	}
	if wholeFrom([]int{fullMost + 1}, fullMost) != 0 {
		t.Error("the newest result is never cut")
	}
}
