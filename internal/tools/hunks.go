package tools

import (
	"errors"
	"fmt"
	"strings"

	"holdfast/internal/secret"
)

// maxOffset is how many lines from where its header says a hunk is looked for, on both sides. All its lines must match there; nothing of the
// context is ever left out.
const maxOffset = 1000

// applyHunks applies the hunks of one file to its text and says where one was placed elsewhere than its header says.
func applyHunks(text string, hunks []hunk, mask *secret.Masker) (string, []string, error) {
	const mark = "\ufeff" // read does not show it, so that most patches do not have it
	if rest, ok := strings.CutPrefix(text, mark); ok && !marked(hunks, mark) {
		text, notes, err := applyHunks(rest, hunks, mask)
		return mark + text, notes, err
	}
	img := fileImage{lines: splitLines(text), mask: mask}
	img.done = make([]bool, len(img.lines))
	var notes []string
	for i, h := range hunks {
		at, loose, err := img.find(h)
		if err != nil {
			return "", nil, fmt.Errorf("hunk %d (line %d of the patch): %w", i+1, h.line, err)
		}
		if want := h.newAt - 1; at != max(want, 0) && len(h.old) > 0 {
			notes = append(notes, fmt.Sprintf("hunk %d was placed at line %d, %d line(s) from where its header says", i+1, at+1, abs(at-want)))
		}
		img.put(h, at, loose)
	}
	return strings.Join(img.lines, ""), notes, nil
}

func marked(hunks []hunk, mark string) bool {
	for _, h := range hunks {
		if len(h.old) > 0 && strings.HasPrefix(h.old[0], mark) || len(h.new) > 0 && strings.HasPrefix(h.new[0], mark) {
			return true
		}
	}
	return false
}

func abs(n int) int { return max(n, -n) }

func splitLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		return lines[:len(lines)-1]
	}
	return lines
}

// fileImage is a file on its way from hunk to hunk.
type fileImage struct {
	lines []string
	mask  *secret.Masker // of what an error shows
	done  []bool         // made or matched by a hunk; no other one matches there
}

// find looks for the one place where all old lines of a hunk match, the nearest to where its header says. A hunk that begins at the first
// line matches only there, and one without context behind it only at the end, as in git. loose: line ends had to be left out of account.
func (m *fileImage) find(h hunk) (at int, loose bool, err error) {
	if len(h.old) == 0 && len(m.lines) > 0 {
		return 0, false, errors.New("it has no line of the file in it, so its place is not certain. Give the lines around it")
	}
	first, end := h.oldAt <= 1, h.trail == 0
	want := max(h.newAt-1, 0)
	switch {
	case first:
		want = 0
	case end:
		want = max(len(m.lines)-len(h.old), 0)
	}
	want = min(want, len(m.lines))
	for _, loose := range []bool{false, true} {
		for d := 0; d <= maxOffset; d++ {
			for _, at := range []int{want + d, want - d} {
				if at < 0 || at+len(h.old) > len(m.lines) || first && at != 0 || end && at+len(h.old) != len(m.lines) {
					continue
				}
				if m.matches(h, at, loose) {
					return at, loose, nil
				}
			}
		}
	}
	return 0, false, m.unfound(h, want, first, end)
}

func (m *fileImage) matches(h hunk, at int, loose bool) bool {
	for i, l := range h.old {
		have := m.lines[at+i]
		if m.done[at+i] || have != l && (!loose || strings.HasSuffix(have, "\n") != strings.HasSuffix(l, "\n") || chomp(have) != chomp(l)) {
			return false
		}
	}
	return true
}

// unfound says what is there instead.
func (m *fileImage) unfound(h hunk, want int, first, end bool) error {
	where := fmt.Sprintf("within %d lines of line %d", maxOffset, want+1)
	switch {
	case first && end:
		where = "as the whole file"
	case first:
		where = "at the beginning of the file, where its header puts it"
	case end:
		where = "at the end of the file; it has no context behind it"
	}
	best, bestAt, bestLine := -1, 0, 0
	for at := range m.lines {
		n, odd := 0, 0
		for i, l := range h.old {
			if at+i < len(m.lines) && m.lines[at+i] == l {
				n++
			} else if odd == 0 {
				odd = i + 1
			}
		}
		if n > best {
			best, bestAt, bestLine = n, at, odd
		}
	}
	text := fmt.Sprintf("its %d old line(s) are not there %s", len(h.old), where)
	if best > 0 && bestLine > 0 {
		have := "the end of the file"
		if bestAt+bestLine-1 < len(m.lines) {
			have = fmt.Sprintf("%q", clipLine(splitLines(m.mask.Text(strings.Join(m.lines, "")))[bestAt+bestLine-1]))
		}
		text += fmt.Sprintf(". The nearest is line %d, where %d match; line %d is %s and not %q", bestAt+1, best, bestAt+bestLine, have, clipLine(h.old[bestLine-1]))
	}
	return fmt.Errorf("%s. Read the file again", text)
}

// put replaces the old lines of a hunk by the new ones. Lines that stay are not touched; where line ends were left out of account, new lines
// end as the file does there.
func (m *fileImage) put(h hunk, at int, loose bool) {
	now := append([]string{}, h.new...)
	for i, n := range h.changed {
		if n >= 0 {
			now[n] = m.lines[at+i]
		}
	}
	if loose {
		end := "\n"
		if at < len(m.lines) && strings.HasSuffix(m.lines[at], "\r\n") {
			end = "\r\n"
		}
		kept := map[int]bool{}
		for _, n := range h.changed {
			kept[n] = true
		}
		for i, l := range now {
			if kept[i] {
				if end = m.lineEnd(l, end); end == "" {
					end = "\n"
				}
			} else if strings.HasSuffix(l, "\n") {
				now[i] = chomp(l) + end
			}
		}
	}
	rest := append(now, m.lines[at+len(h.old):]...)
	m.lines = append(m.lines[:at:at], rest...)
	marks := make([]bool, len(now))
	for i := range marks {
		marks[i] = true
	}
	m.done = append(m.done[:at:at], append(marks, m.done[at+len(h.old):]...)...)
}

// lineEnd is how a line ends, or another end for one that has none.
func (m *fileImage) lineEnd(l, other string) string {
	switch {
	case strings.HasSuffix(l, "\r\n"):
		return "\r\n"
	case strings.HasSuffix(l, "\n"):
		return "\n"
	}
	return other
}
