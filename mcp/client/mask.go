package client

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

const (
	shortest  = 4 // a shorter value is no secret, and masking it would eat ordinary text
	tailBytes = 64 << 10
	blank     = "[hidden]"
)

// mask hides configured secrets, also as they look inside a JSON string and line by line.
type mask struct {
	values   []string // longest first
	replacer *strings.Replacer
}

func newMask(secrets []string) *mask {
	m := &mask{}
	add := func(s string) {
		if len(s) >= shortest && !slices.Contains(m.values, s) {
			m.values = append(m.values, s)
		}
	}
	for _, s := range secrets {
		add(s)
		if b, err := json.Marshal(s); err == nil {
			add(string(b[1 : len(b)-1]))
		}
		if strings.Contains(s, "\n") {
			for line := range strings.Lines(s) {
				add(strings.TrimSpace(line))
			}
		}
	}
	slices.SortStableFunc(m.values, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, v := range m.values {
		pairs = append(pairs, v, blank)
	}
	m.replacer = strings.NewReplacer(pairs...)
	return m
}

func (m *mask) hide(s string) string { return m.replacer.Replace(s) }

func (m *mask) longest() int {
	if len(m.values) == 0 {
		return 0
	}
	return len(m.values[0])
}

// tail keeps the end of what was written to it.
type tail struct {
	mask *mask

	mu  sync.Mutex
	buf []byte // at most twice what is shown
	cut bool   // something before buf was dropped
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	keep := tailBytes + t.mask.longest()
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*keep {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-keep:]...)
		t.cut = true
	}
	return len(p), nil
}

// String is the masked end. Where the kept part begins inside a secret, the rest of that secret is not shown either.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := string(t.buf)
	if from := len(s) - tailBytes; from > 0 || t.cut {
		s = s[t.safe(s, max(from, min(len(s), t.mask.longest()))):]
	}
	return strings.ToValidUTF8(t.mask.hide(s), "")
}

// safe moves a place to cut behind the secret it would cut.
func (t *tail) safe(s string, at int) int {
	for moved := true; moved; {
		moved = false
		for _, v := range t.mask.values {
			lo, hi := max(0, at-len(v)+1), min(len(s), at+len(v)-1)
			if lo >= hi {
				continue
			}
			if i := strings.Index(s[lo:hi], v); i >= 0 && lo+i < at {
				at, moved = lo+i+len(v), true
			}
		}
	}
	return at
}
