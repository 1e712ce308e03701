package acp

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/session"
)

func TestDiffs_OneForEachFile(t *testing.T) {
	old, gone := "a\n", "gone\n"
	big := strings.Repeat("line of text\n", 40_000)
	changed := big[:200_200] + "CHANGED\n" + big[200_200:]
	bin := "AAA="
	got := diffs([]session.FileChange{
		{Path: "/w/new", Before: session.Absent, After: "1", NewText: "n\n", Exec: "yes"},
		{Path: "/w/to", Before: session.Absent, After: "2", NewText: "b\n", From: "/w/from"},
		{Path: "/w/from", Before: "0", After: session.Absent, OldText: &old},
		{Path: "/w/gone", Before: "0", After: session.Absent, OldText: &gone},
		{Path: "/w/big", Before: "0", After: "3", OldText: &big, NewText: changed},
		{Path: "/w/huge", Before: session.Absent, After: "4", NewText: big},
		{Path: "/w/bin", Before: "0", After: session.Absent, OldText: &bin, Encoding: session.EncodingBinary},
	})
	var lines []string
	for _, c := range got {
		if c.Diff == nil {
			lines = append(lines, c.Content.Content.Text.Text)
			continue
		}
		was := "none"
		if c.Diff.OldText != nil {
			was = fmt.Sprintf("%q", *c.Diff.OldText)
		}
		lines = append(lines, fmt.Sprintf("%s %s -> %q %v", c.Diff.Path, was, c.Diff.NewText, c.Diff.Meta["holdfast"]))
	}
	want := []string{
		`/w/new none -> "n\n" map[executable:true]`,
		`/w/to "a\n" -> "b\n" map[movedFrom:/w/from]`,
		`/w/gone "gone\n" -> "" map[deleted:true]`,
		`/w/big "line of text\nline of text\nline of text\nline of text\nline of text\nline of text\nline of text\n" -> ` +
			`"line of text\nline of text\nline of text\nCHANGED\nline of text\nline of text\nline of text\nline of text\n" map[excerptFromLine:15398]`,
		`/w/huge: a new file of 520000 bytes; too large to show here.`,
		`/w/bin: deleted, 2 bytes; no text.`,
	}
	for i := range max(len(want), len(lines)) {
		switch {
		case i >= len(lines) || i >= len(want):
			t.Fatalf("%d are shown, want %d: %q", len(lines), len(want), lines)
		case lines[i] != want[i]:
			t.Errorf("shown:\n%s\nwant:\n%s", lines[i], want[i])
		}
	}
}
