package tools

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// filePatch is what a patch says of one file. A name is "" where there is no file.
type filePatch struct {
	old, new string
	copied   bool
	exec     string // "yes" or "no" where the patch makes it so
	wasExec  string // what the patch says it was
	hunks    []hunk
	line     int // of the patch
}

// hunk is one changed place. Lines keep their ends; one without is the last of its file.
type hunk struct {
	oldAt, newAt int // lines as the header counts them
	old, new     []string
	changed      []int // of each old line that stays: its place among the new ones; -1 for one that goes
	lead, trail  int   // unchanged lines at both ends
	line         int   // of the patch
}

// patchReader goes over a patch line by line.
type patchReader struct {
	lines []string
	at    int
}

func (r *patchReader) failf(format string, args ...any) error {
	return fmt.Errorf("line %d of the patch: %s", r.at+1, fmt.Sprintf(format, args...))
}

func (r *patchReader) peek(ahead int) string {
	if r.at+ahead < len(r.lines) {
		return r.lines[r.at+ahead]
	}
	return ""
}

// parsePatch reads a unified diff as git and diff -u make it. What stands before, between and behind the files is left out, as git does.
func parsePatch(text string) ([]filePatch, error) {
	r := &patchReader{lines: strings.SplitAfter(text, "\n")}
	if n := len(r.lines); r.lines[n-1] == "" {
		r.lines = r.lines[:n-1]
	}
	var out []filePatch
	for r.at < len(r.lines) {
		line := r.peek(0)
		var f filePatch
		var err error
		switch {
		case strings.HasPrefix(line, "diff --git "):
			f, err = r.gitFile()
		case strings.HasPrefix(line, "--- ") && strings.HasPrefix(r.peek(1), "+++ ") && strings.HasPrefix(r.peek(2), "@@ -"):
			f, err = r.plainFile()
		case strings.HasPrefix(line, "@@ -"):
			return nil, r.failf("a hunk without the --- and +++ lines of its file")
		case strings.HasPrefix(line, "*** Begin Patch"):
			return nil, r.failf("this is no unified diff. Begin each file with --- a/PATH and +++ b/PATH, and each hunk with @@ -LINE,COUNT +LINE,COUNT @@")
		default:
			r.at++
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	if len(out) == 0 {
		return nil, errors.New("there is no file in the patch. Begin each with --- a/PATH and +++ b/PATH")
	}
	return out, nil
}

// plainFile reads a file without git's header.
func (r *patchReader) plainFile() (filePatch, error) {
	f := filePatch{line: r.at + 1}
	old, err := patchName(r.peek(0)[len("--- "):], '\t')
	if err != nil {
		return f, r.failf("%v", err)
	}
	r.at++
	now, err := patchName(r.peek(0)[len("+++ "):], '\t')
	if err != nil {
		return f, r.failf("%v", err)
	}
	r.at++
	if f.old, f.new = stripped(old, now); f.old == "" && f.new == "" {
		return f, r.failf("the file has no name")
	}
	if f.old != "" && f.new != "" && f.old != f.new {
		return f, r.failf("%s and %s are two files. To move one, give git's lines rename from and rename to", f.old, f.new)
	}
	f.hunks, err = r.hunks()
	return f, err
}

// gitFile reads a file with git's header.
func (r *patchReader) gitFile() (filePatch, error) {
	f := filePatch{line: r.at + 1}
	first := chomp(r.peek(0)[len("diff --git "):])
	r.at++
	var old, now, from, to string
	var made, gone, renamed bool
	for ; r.at < len(r.lines); r.at++ {
		key, value := header(chomp(r.peek(0)))
		var err error
		switch key {
		case "--- ":
			old, err = patchName(value, '\t')
		case "+++ ":
			now, err = patchName(value, '\t')
		case "old mode ":
			f.wasExec, err = modeOf(value)
		case "new mode ":
			f.exec, err = modeOf(value)
		case "new file mode ":
			made = true
			f.exec, err = modeOf(value)
		case "deleted file mode ":
			gone = true
			f.wasExec, err = modeOf(value)
		case "rename from ", "copy from ":
			renamed, f.copied = true, key == "copy from "
			from, err = patchName(value, 0)
		case "rename to ", "copy to ":
			renamed = true
			to, err = patchName(value, 0)
		case "index ":
			if _, mode, ok := strings.Cut(value, " "); ok {
				f.wasExec, err = modeOf(mode)
			}
		case "GIT binary patch", "Binary files ":
			err = errors.New("binary changes are not applied here. Use git apply in a command")
		case "similarity index ", "dissimilarity index ":
		default:
			return r.named(f, first, old, now, from, to, made, gone, renamed)
		}
		if err != nil {
			return f, r.failf("%v", err)
		}
	}
	return r.named(f, first, old, now, from, to, made, gone, renamed)
}

var headers = []string{"--- ", "+++ ", "old mode ", "new mode ", "new file mode ", "deleted file mode ", "rename from ", "rename to ", "copy from ", "copy to ",
	"index ", "GIT binary patch", "Binary files ", "similarity index ", "dissimilarity index "}

func header(line string) (key, value string) {
	for _, h := range headers {
		if v, ok := strings.CutPrefix(line, h); ok {
			return h, v
		}
	}
	return "", ""
}

// named settles the names of a file and reads its hunks.
func (r *patchReader) named(f filePatch, first, old, now, from, to string, made, gone, renamed bool) (filePatch, error) {
	var err error
	switch {
	case old != "" && (old == devNull) != made, now != "" && (now == devNull) != gone:
		return f, r.failf("behind a diff --git line, --- /dev/null goes with a new file mode line and +++ /dev/null with a deleted file mode line. Without that line neither is needed")
	case renamed && (from == "" || to == ""):
		return f, r.failf("a rename or copy needs both its from and its to line")
	case renamed:
		f.old, f.new = from, to
	case old != "" && now != "":
		f.old, f.new = stripped(old, now)
		if name, err := sameTwice(first); err == nil && (f.old != "" && f.old != name || f.new != "" && f.new != name) {
			return f, r.failf("the diff --git line is about %s, and the --- and +++ lines behind it about another file. Each file begins with a diff --git line of its own", name)
		}
	case old != "" || now != "":
		return f, r.failf("the --- and the +++ line belong together")
	default:
		if f.old, err = sameTwice(first); err != nil {
			return f, r.failf("%v", err)
		}
		f.new = f.old
	}
	if made {
		f.old = ""
	}
	if gone {
		f.new = ""
	}
	switch {
	case f.old == "" && f.new == "":
		return f, r.failf("the file has no name")
	case !renamed && f.old != "" && f.new != "" && f.old != f.new:
		return f, r.failf("%s and %s are two files, and there is no rename from line", f.old, f.new)
	}
	f.hunks, err = r.hunks()
	if bare := len(f.hunks) == 0; err == nil && bare && (old != "" || !renamed && !made && !gone && f.exec == "") {
		err = r.failf("the file of line %d has no hunk. One begins with @@ -LINE,COUNT +LINE,COUNT @@", f.line)
	}
	return f, err
}

func chomp(s string) string { return strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r") }

// modeOf says whether a git mode makes a file executable. Links and submodules are nothing that text is applied to.
func modeOf(s string) (string, error) {
	switch strings.TrimSpace(s) {
	case "100644", "100664":
		return "no", nil
	case "100755":
		return "yes", nil
	case "120000":
		return "", errors.New("symbolic links are not patched here. Use a command")
	case "160000":
		return "", errors.New("submodules are not patched here. Use git commands")
	}
	return "", fmt.Errorf("%q is no file mode of git", s)
}

// patchName reads a name, quoted as git does where it has to.
func patchName(s string, end byte) (string, error) {
	s = chomp(s)
	if strings.HasPrefix(s, `"`) {
		name, _, err := unquoted(s)
		return name, err
	}
	if i := strings.IndexByte(s, end); end != 0 && i >= 0 {
		s = s[:i]
	}
	if s == "" {
		return "", errors.New("a name is missing")
	}
	return s, nil
}

// unquoted reads a name in git's quotes, and what is behind it.
func unquoted(s string) (name, rest string, err error) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			name, err = strconv.Unquote(s[:i+1])
			return name, s[i+1:], err
		}
	}
	return "", "", fmt.Errorf("the quote is not closed in %s", s)
}

const devNull = "/dev/null"

// pairs are the prefixes that git gives the two names of a file.
var pairs = [][2]string{{"a/", "b/"}, {"b/", "a/"}, {"i/", "w/"}, {"w/", "i/"}, {"c/", "i/"}, {"c/", "w/"}, {"o/", "w/"}, {"w/", "o/"}}

// stripped takes the prefixes off two names.
func stripped(old, now string) (string, string) {
	for _, p := range pairs {
		a, okA := strings.CutPrefix(old, p[0])
		b, okB := strings.CutPrefix(now, p[1])
		switch {
		case okA && okB:
			return a, b
		case okA && now == devNull:
			return a, ""
		case okB && old == devNull:
			return "", b
		}
	}
	if old == devNull {
		old = ""
	}
	if now == devNull {
		now = ""
	}
	return old, now
}

// sameTwice reads the name out of a header that has nothing else: "a/NAME b/NAME".
func sameTwice(s string) (string, error) {
	if strings.HasPrefix(s, `"`) {
		a, rest, err := unquoted(s)
		if err != nil {
			return "", err
		}
		b, err := patchName(strings.TrimLeft(rest, " "), 0)
		if err != nil {
			return "", err
		}
		if old, now := stripped(a, b); old == now {
			return old, nil
		}
		return "", fmt.Errorf("the two names in %q differ", s)
	}
	for i := range len(s) {
		if s[i] != ' ' {
			continue
		}
		b, err := patchName(s[i+1:], 0)
		if err != nil {
			continue
		}
		if old, now := stripped(s[:i], b); old == now {
			return old, nil
		}
	}
	return "", fmt.Errorf("the two names in %q differ", s)
}

// hunks reads all hunks of a file.
func (r *patchReader) hunks() ([]hunk, error) {
	var out []hunk
	for strings.HasPrefix(r.peek(0), "@@ -") {
		h, err := r.hunk()
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	line := r.peek(0)
	header := strings.HasPrefix(line, "--- ") && strings.HasPrefix(r.peek(1), "+++ ") || chomp(line) == "-- " // git signs its mails so
	if len(out) > 0 && line != "" && strings.Contains("+- ", line[:1]) && !header {
		return nil, r.failf("the hunk of line %d has more lines than its header counts", out[len(out)-1].line)
	}
	return out, nil
}

func (r *patchReader) hunk() (hunk, error) {
	h := hunk{line: r.at + 1}
	ranges, _, ok := strings.Cut(r.peek(0)[len("@@ -"):], " @@")
	left, right, both := strings.Cut(ranges, " +")
	if !ok || !both {
		return h, r.failf("a hunk begins with @@ -LINE,COUNT +LINE,COUNT @@")
	}
	var oldN, newN int
	var err error
	if h.oldAt, oldN, err = span(left); err == nil {
		h.newAt, newN, err = span(right)
	}
	if err != nil {
		return h, r.failf("%v", err)
	}
	r.at++
	for len(h.old) < oldN || len(h.new) < newN {
		if r.at >= len(r.lines) {
			return h, r.failf("the hunk of line %d ends early: its header counts %d old and %d new lines, there are %d and %d", h.line, oldN, newN, len(h.old), len(h.new))
		}
		line := r.peek(0)
		if !strings.HasSuffix(line, "\n") {
			line += "\n" // the patch itself was cut behind its last line
		}
		switch line[0] {
		case ' ', '\n', '\r':
			if line[0] == ' ' {
				line = line[1:]
			}
			h.keep(line)
		case '-':
			h.drop(line[1:])
		case '+':
			h.add(line[1:])
		case '\\':
			h.openEnd(r.peek(-1)[0])
		default:
			return h, r.failf("a line of a hunk begins with a space, - or +; the header of line %d counts %d old and %d new lines, there are %d and %d", h.line, oldN, newN,
				len(h.old), len(h.new))
		}
		r.at++
	}
	if len(h.old) > oldN || len(h.new) > newN {
		return h, r.failf("the header of line %d counts %d old and %d new lines, there are %d and %d", h.line, oldN, newN, len(h.old), len(h.new))
	}
	if strings.HasPrefix(r.peek(0), `\ `) {
		h.openEnd(r.peek(-1)[0])
		r.at++
	}
	if h.lead == len(h.old) && len(h.old) == len(h.new) {
		return h, r.failf("the hunk of line %d changes nothing", h.line)
	}
	return h, nil
}

func (h *hunk) keep(line string) {
	if h.changed = append(h.changed, len(h.new)); h.lead == len(h.old) && h.lead == len(h.new) {
		h.lead++
	}
	h.old, h.new = append(h.old, line), append(h.new, line)
	h.trail++
}

func (h *hunk) drop(line string) {
	h.changed, h.old, h.trail = append(h.changed, -1), append(h.old, line), 0
}

func (h *hunk) add(line string) { h.new, h.trail = append(h.new, line), 0 }

// openEnd takes the newline off the line before a "\ No newline at end of file".
func (h *hunk) openEnd(sign byte) {
	if n := len(h.old); n > 0 && sign != '+' {
		h.old[n-1] = strings.TrimSuffix(h.old[n-1], "\n")
	}
	if n := len(h.new); n > 0 && sign != '-' {
		h.new[n-1] = strings.TrimSuffix(h.new[n-1], "\n")
	}
}

// span reads LINE or LINE,COUNT.
func span(s string) (at, n int, err error) {
	first, count, two := strings.Cut(s, ",")
	if at, err = strconv.Atoi(first); err == nil {
		if n = 1; two {
			n, err = strconv.Atoi(count)
		}
	}
	if err != nil || at < 0 || n < 0 {
		return 0, 0, fmt.Errorf("%q is no LINE,COUNT", s)
	}
	return at, n, nil
}
