package client

import (
	"strings"
	"sync"

	"holdfast/internal/secret"
)

const (
	shortest  = 4 // of a configured secret
	tailBytes = 64 << 10
	reserve   = 20 << 10 // more than any secret is long
)

// mask hides configured secrets and whatever looks like a key.
type mask struct{ *secret.Masker }

func newMask(secrets []string) *mask { return &mask{secret.Least(shortest, secrets...)} }

func (m *mask) hide(s string) string { return m.Text(s) }

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
	keep := tailBytes + reserve
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
	at := len(s) - tailBytes
	if t.cut {
		at = max(at, min(len(s), reserve)) // what begins the buffer may be the end of a secret
	}
	for _, sp := range t.mask.Spans(s) {
		if sp.From < at && at < sp.To {
			at = sp.To
		}
	}
	if at > 0 {
		s = s[at:]
	}
	return strings.ToValidUTF8(t.mask.hide(s), "")
}
