package proc

import (
	"errors"
	"fmt"
	"io"

	"holdfast/internal/secret"
)

// Masking returns the handle for readers who must not see secrets; parts of an output that are one come as secret.Filler.
func (h *Handle) Masking(m *secret.Masker) *Handle {
	masking := *h
	masking.mask = m
	return &masking
}

// margin is how far outside of what is read a secret may begin or end that reaches into it.
const margin = 20 << 10

// cleanReader reads an output without the secrets in it, also where one is cut by the border of what is read.
type cleanReader struct {
	r     io.ReaderAt
	size  int64
	mask  *secret.Masker
	whole bool // nothing follows
}

func (h *Handle) clean(r io.ReaderAt, size int64, whole bool) cleanReader {
	return cleanReader{r, size, h.mask, whole}
}

// ReadAt implements io.ReaderAt.
func (c cleanReader) ReadAt(p []byte, at int64) (int, error) {
	from, to := max(0, at-margin), min(c.size, at+int64(len(p))+margin)
	if at >= to {
		return 0, io.EOF
	}
	b := make([]byte, to-from)
	n, err := c.r.ReadAt(b, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	b = b[:n]
	c.mask.Blank(b, true)
	if at-from >= int64(len(b)) {
		return 0, io.EOF
	}
	got := copy(p, b[at-from:])
	if got < len(p) {
		return got, io.EOF
	}
	return got, nil
}

// decided is how far an output is decided that ends at total: what may be the beginning of a secret waits for its rest.
func (c cleanReader) decided(from, total int64) (int64, error) {
	start := max(0, total-margin)
	b := make([]byte, total-start)
	if _, err := c.r.ReadAt(b, start); err != nil && !errors.Is(err, io.EOF) {
		return total, fmt.Errorf("read the output: %w", err)
	}
	return max(from, start+int64(c.mask.Blank(b, false))), nil
}
