package acp

import (
	"fmt"
	"strings"

	v1 "holdfast/acp/v1"
	"holdfast/session"
)

const (
	maxDiff     = 256 << 10 // bytes of the two texts of a diff; beyond, only what changed is sent
	diffContext = 3         // unchanged lines on each side of an excerpt
)

// diffs shows what a call does to files: one diff for each, or a sentence where the content is no text or too large.
func diffs(files []session.FileChange) []v1.ToolCallContent {
	var out []v1.ToolCallContent
	for i, f := range files {
		if i > 0 && files[i-1].From == f.Path {
			continue // shown with where it goes to
		}
		old := f.OldText
		if f.From != "" && i+1 < len(files) {
			old = files[i+1].OldText
		}
		meta := map[string]any{}
		if f.From != "" {
			meta["movedFrom"] = f.From
		}
		if f.After == session.Absent {
			meta["deleted"] = true
		}
		if f.Exec != "" {
			meta["executable"] = f.Exec == "yes"
		}
		if d := diff(f, old, meta); d != nil {
			if len(meta) > 0 {
				d.Meta = v1.Meta{"holdfast": meta}
			}
			out = append(out, v1.ToolCallContent{Diff: d})
			continue
		}
		out = append(out, v1.ToolCallContent{Content: &v1.Content{Content: textBlock(untold(f, old))}})
	}
	return out
}

// diff is what is shown of one file, nil when that is no text or too much.
func diff(f session.FileChange, old *string, meta map[string]any) *v1.Diff {
	if f.Encoding == session.EncodingBinary {
		return nil
	}
	d := &v1.Diff{Path: f.Path, OldText: old, NewText: f.NewText}
	if size(old)+len(f.NewText) <= maxDiff {
		return d
	}
	if old == nil || f.After == session.Absent {
		return nil
	}
	from, to, line := excerpt(*old, f.NewText)
	if len(from)+len(to) > maxDiff {
		return nil
	}
	meta["excerptFromLine"] = line
	d.OldText, d.NewText = &from, to
	return d
}

func size(s *string) int {
	if s == nil {
		return 0
	}
	return len(*s)
}

// excerpt is what two texts do not share, with some lines around it, and the line where it begins.
func excerpt(old, now string) (string, string, int) {
	head, line := 0, 1
	for { // whole lines that both begin with
		n := strings.IndexByte(old[head:], '\n') + 1
		if n == 0 || !strings.HasPrefix(now[head:], old[head:head+n]) {
			break
		}
		head += n
		line++
	}
	tail := 0
	for tail < len(old)-head && tail < len(now)-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	if i := strings.IndexByte(old[len(old)-tail:], '\n'); i >= 0 && tail > 0 {
		tail -= i + 1
	} else {
		tail = 0
	}
	for range diffContext {
		if head == 0 {
			break
		}
		head = strings.LastIndexByte(old[:head-1], '\n') + 1
		line--
		i := strings.IndexByte(old[len(old)-tail:], '\n') + 1
		tail -= i
	}
	return old[head : len(old)-tail], now[head : len(now)-tail], line
}

// untold says what becomes of a file that no diff shows.
func untold(f session.FileChange, old *string) string {
	why := "too large to show here"
	if f.Encoding == session.EncodingBinary {
		why = "no text"
	}
	before, after := f.Sizes()
	switch {
	case f.From != "":
		return fmt.Sprintf("%s: moved from %s, %d bytes; %s.", f.Path, f.From, after, why)
	case f.After == session.Absent:
		return fmt.Sprintf("%s: deleted, %d bytes; %s.", f.Path, before, why)
	case old == nil:
		return fmt.Sprintf("%s: a new file of %d bytes; %s.", f.Path, after, why)
	}
	return fmt.Sprintf("%s: %d bytes become %d; %s.", f.Path, before, after, why)
}
