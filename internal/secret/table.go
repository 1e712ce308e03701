package secret

import (
	"bytes"
	"slices"
	"strings"
)

// verdict is what is known about a place in a text.
type verdict int

const (
	no   verdict = iota // no secret begins here, whatever follows
	yes                 // one does, and its length does not depend on what follows
	more                // what follows decides
)

// table is everything a text is compared with. It does not change.
type table struct {
	values [256][][]byte // known forms by their first byte, the longest first
	known  [256]bool     // bytes with which one may begin
}

func newTable(values map[string]bool, least int) *table {
	t := &table{}
	seen := map[string]bool{}
	for v := range values {
		for _, f := range forms(v) {
			if len(f) < least || seen[f] {
				continue
			}
			seen[f] = true
			t.values[f[0]] = append(t.values[f[0]], []byte(f))
			t.known[f[0]] = true
		}
	}
	for i := range t.values {
		slices.SortFunc(t.values[i], func(a, b []byte) int {
			if len(a) != len(b) {
				return len(b) - len(a)
			}
			return bytes.Compare(a, b)
		})
	}
	return t
}

// spans are all places of secrets in a whole text, which is blanked.
func (t *table) spans(b []byte, shapes bool) (out []Span) {
	for at := 0; at < len(b); {
		from, to, ok := t.next(b, at, true, shapes)
		if !ok {
			break
		}
		out = append(out, Span{from, to})
		blank(b[from:to])
		at = to
	}
	return out
}

// next finds the first secret at or behind a place. Without one, from is where undecided text begins, the end if there is none. Bytes before
// the place are looked at, and not matched again; secrets among them have been blanked, so that what follows one may begin a word.
func (t *table) next(b []byte, at int, last, shapes bool) (from, to int, ok bool) {
	for i := at; i < len(b); i++ {
		if !t.known[b[i]] && !(shapes && maybe(b, i)) {
			continue
		}
		n, v := t.at(b, i, last, shapes)
		if v == yes {
			n, v = t.extend(b, i, n, last)
		}
		switch v {
		case yes:
			return i, i + n, true
		case more:
			return i, i, false
		}
	}
	return len(b), len(b), false
}

// at looks for a secret that begins at a place.
func (t *table) at(b []byte, i int, last, shapes bool) (int, verdict) {
	if n, v := t.value(b[i:], last); v != no || !shapes {
		return n, v
	}
	return shape(b, i, last)
}

// value compares with the known values, the longest first.
func (t *table) value(b []byte, last bool) (int, verdict) {
	for _, v := range t.values[b[0]] {
		if len(b) >= len(v) {
			if bytes.HasPrefix(b, v) {
				return len(v), yes
			}
		} else if !last && bytes.HasPrefix(v, b) {
			return 0, more
		}
	}
	return 0, no
}

// extend takes in known values that begin inside a secret and end behind it.
func (t *table) extend(b []byte, i, n int, last bool) (int, verdict) {
	for k := i + 1; k < i+n; k++ {
		if !t.known[b[k]] {
			continue
		}
		m, v := t.value(b[k:], last)
		switch {
		case v == more:
			return 0, more
		case v == yes && k+m > i+n:
			n = k + m - i
		}
	}
	return n, yes
}

// lower is the lower-case end of what stands before a place.
func lower(b []byte, i, n int) string { return strings.ToLower(string(b[max(0, i-n):i])) }

func blank(b []byte) {
	for i := range b {
		b[i] = Filler
	}
}
