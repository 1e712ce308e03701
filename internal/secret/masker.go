package secret

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Mask stands where a secret was. It needs no escape in JSON, in a shell or in a log.
const Mask = "[secret hidden by holdfast]"

// shortest is the length below which a value is not taken for a secret: masking it would eat ordinary text.
const shortest = 8

// Masked tells whether a text holds a mask, also one that a model has written anew.
func Masked(text string) bool {
	const words = "secret hidden by holdfast"
	return strings.Contains(strings.ToLower(text), words)
}

// Masker hides known values and key shapes. It may be used by many goroutines. A nil one knows no values.
type Masker struct {
	mu    sync.Mutex
	have  map[string]bool // values, not their forms; guarded by mu
	least int
	table atomic.Pointer[table]
}

// New returns a masker that knows some values.
func New(values ...string) *Masker { return Least(shortest, values...) }

// Least is New with another length below which a value is ignored.
func Least(n int, values ...string) *Masker {
	m := &Masker{have: map[string]bool{}, least: n}
	m.Add(values...)
	return m
}

// Add makes values known from now on.
func (m *Masker) Add(values ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	grown := false
	for _, v := range values {
		v = strings.TrimSpace(v)
		if len(v) < m.least || m.have[v] || Masked(v) {
			continue
		}
		m.have[v], grown = true, true
	}
	if grown || m.table.Load() == nil {
		m.table.Store(newTable(m.have, m.least))
	}
}

// Values are the known values, sorted.
func (m *Masker) Values() []string {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]string, 0, len(m.have))
	for v := range m.have {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}

var empty = newTable(nil, shortest)

func (m *Masker) current() *table {
	if m != nil {
		if t := m.table.Load(); t != nil {
			return t
		}
	}
	return empty
}

// Text is a text without secrets. A secret of several lines leaves as many lines.
func (m *Masker) Text(s string) string { return m.replace(s, m.Spans(s)) }

// Known is a text without the known values; shapes stay. It is for what a model wrote itself, which holds no key it was not shown.
func (m *Masker) Known(s string) string { return m.replace(s, m.current().spans([]byte(s), false)) }

// Has tells whether a text holds a known value.
func (m *Masker) Has(s string) bool { return len(m.current().spans([]byte(s), false)) > 0 }

// Span is a part of a text, from its first byte to the one behind its last.
type Span struct{ From, To int }

// Spans are the places of secrets in a text, in order.
func (m *Masker) Spans(s string) []Span {
	if len(s) == 0 {
		return nil
	}
	return m.current().spans([]byte(s), true)
}

func (m *Masker) replace(s string, spans []Span) string {
	if len(spans) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for _, sp := range spans {
		b.WriteString(s[at:sp.From])
		b.WriteString(maskOf(s[sp.From:sp.To]))
		at = sp.To
	}
	b.WriteString(s[at:])
	return b.String()
}

// maskOf keeps the number of lines.
func maskOf(s string) string { return Mask + strings.Repeat("\n"+Mask, strings.Count(s, "\n")) }

// Filler stands for each byte of a secret that was blanked. Text has no use for it.
const Filler = 0x1a

// Blank overwrites secrets in place, and returns where what is undecided begins: a secret may go on behind the end. With last set nothing
// follows, and it returns the length.
func (m *Masker) Blank(b []byte, last bool) int { return m.BlankFrom(b, 0, last) }

// BlankFrom is Blank from a place on. What stands before it, at most LookBack bytes matter, is looked at and not changed.
func (m *Masker) BlankFrom(b []byte, at int, last bool) int {
	t := m.current()
	for at < len(b) {
		from, to, ok := t.next(b, at, last, true)
		if !ok {
			return from
		}
		blank(b[from:to])
		at = to
	}
	return at
}

// Shown turns blanked parts into masks. A few fillers in a row are what a program printed, unless they touch an end, where a part may have
// been cut off.
func Shown(s string) string {
	if strings.IndexByte(s, Filler) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		n := 0
		for i+n < len(s) && s[i+n] == Filler {
			n++
		}
		switch {
		case n == 0:
			b.WriteByte(s[i])
			n = 1
		case n >= 4 || i == 0 || i+n == len(s):
			b.WriteString(Mask)
		}
		i += n
	}
	return b.String()
}
