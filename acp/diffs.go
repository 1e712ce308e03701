package acp

import (
	"fmt"

	v1 "holdfast/acp/v1"
	"holdfast/session"
)

// diffs shows what a call does to files: one diff for each, or a sentence where the content is no text or too large.
func diffs(files []session.FileChange) []v1.ToolCallContent {
	files = session.Excerpts(files)
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

// diff is what is shown of one file, nil when that is no text or too much. Of a large one that changed it is an excerpt.
func diff(f session.FileChange, old *string, meta map[string]any) *v1.Diff {
	large := f.OldSize > 0 || f.NewSize > 0
	if f.Encoding == session.EncodingBinary || large && (old == nil || f.After == session.Absent) {
		return nil
	}
	if f.FromLine > 0 {
		meta["excerptFromLine"] = f.FromLine
	}
	return &v1.Diff{Path: f.Path, OldText: old, NewText: f.NewText}
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
