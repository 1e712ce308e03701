package session

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	around   = 3       // unchanged lines shown on each side of a change
	diffArea = 4 << 20 // lines times lines that are compared; beyond, the middle is shown as replaced
	diffFile = 1 << 20 // bytes of a content that is shown
)

// unified is the difference of two contents as unified diff, "" when there is none.
func unified(old, now []byte) string {
	if len(old) > diffFile || len(now) > diffFile || !textual(old) || !textual(now) {
		return fmt.Sprintf("(%d bytes became %d, not shown)\n", len(old), len(now))
	}
	return hunks(compare(lines(old), lines(now)))
}

func textual(b []byte) bool { return bytes.IndexByte(b, 0) < 0 && utf8.Valid(b) }

func lines(b []byte) []string {
	out := strings.SplitAfter(string(b), "\n")
	if out[len(out)-1] == "" {
		return out[:len(out)-1]
	}
	return out
}

// edit is one line of a comparison.
type edit struct {
	sign byte // ' ', '-' or '+'
	line string
}

// compare is the shortest way from one text to the other, after what they share at both ends.
func compare(a, b []string) []edit {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out []edit
	for _, l := range a[:head] {
		out = append(out, edit{' ', l})
	}
	out = append(out, middle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, l := range a[len(a)-tail:] {
		out = append(out, edit{' ', l})
	}
	return out
}

func middle(a, b []string) (out []edit) {
	if len(a)*len(b) > diffArea {
		for _, l := range a {
			out = append(out, edit{'-', l})
		}
		for _, l := range b {
			out = append(out, edit{'+', l})
		}
		return out
	}
	width := len(b) + 1
	common := make([]int32, (len(a)+1)*width) // length of the longest common rest
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i*width+j] = common[(i+1)*width+j+1] + 1
			} else {
				common[i*width+j] = max(common[(i+1)*width+j], common[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, edit{' ', a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[(i+1)*width+j] >= common[i*width+j+1]:
			out = append(out, edit{'-', a[i]})
			i++
		default:
			out = append(out, edit{'+', b[j]})
			j++
		}
	}
	return out
}

// hunks prints the changed places with what stands around them.
func hunks(all []edit) string {
	var b strings.Builder
	old, now := 1, 1
	for i := 0; i < len(all); {
		next := slices.IndexFunc(all[i:], func(e edit) bool { return e.sign != ' ' })
		if next < 0 {
			break
		}
		skip := max(0, next-around)
		i, old, now = i+skip, old+skip, now+skip
		end, quiet := i, 0
		for k := i; k < len(all) && quiet <= 2*around; k++ {
			quiet++
			if all[k].sign != ' ' {
				end, quiet = k+1, 0
			}
		}
		end = min(len(all), end+around)
		var n, m int
		var body strings.Builder
		for ; i < end; i++ {
			e := all[i]
			if e.sign != '+' {
				n++
			}
			if e.sign != '-' {
				m++
			}
			body.WriteByte(e.sign)
			body.WriteString(strings.TrimSuffix(e.line, "\n") + "\n")
			if !strings.HasSuffix(e.line, "\n") {
				body.WriteString("\\ No newline at end of file\n")
			}
		}
		fmt.Fprintf(&b, "@@ -%s +%s @@\n%s", span(old, n), span(now, m), body.String())
		old, now = old+n, now+m
	}
	return b.String()
}

func span(first, n int) string {
	if n == 0 {
		first--
	}
	return fmt.Sprintf("%d,%d", first, n)
}

// DiffView is what a turn is known to have changed.
type DiffView struct {
	SessionID SessionID  `json:"sessionId"`
	Turn      int        `json:"turn"` // 0 when nothing was changed
	Title     string     `json:"title"`
	Files     []DiffFile `json:"files"`
	Unseen    []string   `json:"unseen"`  // calls whose changes nobody recorded
	Unknown   []string   `json:"unknown"` // calls whose outcome is unknown
}

// DiffFile is one changed path.
type DiffFile struct {
	Path   string   `json:"path"`
	Before PathKind `json:"before"`
	After  PathKind `json:"after"`
	Diff   string   `json:"diff"`
	By     []string `json:"by"`
	Proven bool     `json:"proven"` // by digests of the agent's own file writes alone
	Now    string   `json:"now"`    // "" as the agent left it, else what is known of it
}

// Diff shows what the agent's calls changed in a turn: the last one, or a numbered one.
func (e *Engine) Diff(ctx context.Context, id SessionID, number int) (DiffView, error) {
	v := DiffView{SessionID: id, Files: []DiffFile{}, Unseen: []string{}, Unknown: []string{}}
	j, c, err := e.turnOf(ctx, id, number)
	if err != nil || j.turn.Number == 0 {
		return v, err
	}
	v.Turn, v.Title = j.turn.Number, j.turn.Title
	v.Unseen, v.Unknown = append(v.Unseen, c.Unseen...), append(v.Unknown, c.Lost...)
	for _, p := range c.Paths {
		f := DiffFile{Path: shorten(j.session.Cwd, p.Path), Before: p.Before.Kind, After: p.After.Kind, By: p.By, Proven: p.Proven,
			Now: e.look(PathStep{Path: p.Path, From: p.After, To: p.Before})}
		if p.Mixed {
			f.Now = "somebody else changed it between two calls of the turn"
		}
		f.Diff = e.diffOf(ctx, j, p)
		v.Files = append(v.Files, f)
	}
	return v, nil
}

// diffOf shows one path. What cannot be read is said and not invented.
func (e *Engine) diffOf(ctx context.Context, j journal, p TurnChange) string {
	head := fmt.Sprintf("--- %s\n+++ %s\n", side("a", j.session.Cwd, p.Path, p.Before), side("b", j.session.Cwd, p.Path, p.After))
	if p.Before.Exec != p.After.Exec && p.Before.Exec != "" && p.After.Exec != "" {
		head += fmt.Sprintf("(executable: %s, was %s)\n", p.After.Exec, p.Before.Exec)
	}
	var text [2][]byte
	for i, s := range []PathState{p.Before, p.After} {
		if s.Kind == PathAbsent {
			continue
		}
		var err error
		if text[i], err = e.content(ctx, j.session, j.turn.Run, s, true); err != nil {
			return head + "(its content is not recorded)\n"
		}
		if s.Kind == PathLink {
			text[i] = append([]byte("link to "), append(text[i], '\n')...)
		}
	}
	var masked [2][]byte
	for i, t := range text {
		masked[i] = []byte(e.Mask.Text(string(t)))
	}
	if d := unified(masked[0], masked[1]); d != "" || bytes.Equal(text[0], text[1]) {
		return head + d
	}
	return head + "(only what is hidden differs)\n"
}

func side(prefix, cwd, path string, s PathState) string {
	if s.Kind == PathAbsent {
		return "/dev/null"
	}
	return prefix + "/" + strings.TrimPrefix(shorten(cwd, path), "/")
}

// Text is the whole of it for a person, in at most limit bytes; 0 is no limit.
func (v DiffView) Text(limit int) string {
	if v.Turn == 0 {
		return "No turn has changed anything here."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Turn %d (%s) changed %d file(s).", v.Turn, v.Title, len(v.Files))
	for _, f := range v.Files {
		if f.Now != "" {
			fmt.Fprintf(&b, "\n%s: %s.", f.Path, f.Now)
		}
	}
	for _, l := range []struct {
		what  string
		calls []string
	}{{"What these calls changed is not recorded", v.Unseen}, {"The outcome of these calls is unknown", v.Unknown}} {
		if len(l.calls) > 0 {
			fmt.Fprintf(&b, "\n%s: %s.", l.what, listed(l.calls, 20))
		}
	}
	var d strings.Builder
	for _, f := range v.Files {
		d.WriteString(f.Diff)
	}
	text := d.String()
	if limit > 0 && len(text) > limit {
		text = text[:limit]
		text = text[:strings.LastIndexByte(text, '\n')+1] + fmt.Sprintf("[cut; all of it: holdfast sessions diff %s %d]\n", v.SessionID, v.Turn)
	}
	if text != "" {
		fence := "```"
		for strings.Contains(text, fence) {
			fence += "`"
		}
		fmt.Fprintf(&b, "\n%sdiff\n%s%s", fence, text, fence)
	}
	return b.String()
}
