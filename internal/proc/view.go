package proc

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"
)

// View is the beginning and the end of an output, or of the part of it behind an offset.
type View struct {
	From   int64 // where the part begins
	Head   []byte
	Tail   []byte // empty when Head is everything
	Cut    int64  // bytes between them
	Total  int64  // of the whole output
	Digest string // sha256 of the whole, only when it was asked for
}

// Output returns at most limit bytes of the output so far, split between its beginning and its end, never inside a character.
func (h *Handle) Output(limit int, digest bool) (View, error) {
	f, total, err := h.output()
	if f == nil || err != nil {
		return View{}, err
	}
	defer func() { _ = f.Close() }()
	v := View{Total: total}
	if err := v.read(h.clean(f, total, true), max(limit, 0)); err != nil {
		return v, err
	}
	if digest {
		sum := sha256.New()
		if _, err := io.Copy(sum, io.NewSectionReader(f, 0, v.Total)); err != nil {
			return v, fmt.Errorf("digest the output: %w", err)
		}
		v.Digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	}
	return v, nil
}

// OutputFrom is Output for what comes behind an offset. A character whose last bytes are not there yet is left for the next time, and
// Total ends before it; with whole set it is taken as it is.
func (h *Handle) OutputFrom(offset int64, limit int, whole bool) (View, error) {
	f, total, err := h.output()
	if f == nil || err != nil {
		return View{}, err
	}
	defer func() { _ = f.Close() }()
	v := View{From: min(max(offset, 0), total), Total: total}
	if !whole {
		last := make([]byte, min(utf8.UTFMax-1, total-v.From))
		if _, err := f.ReadAt(last, total-int64(len(last))); err != nil {
			return v, fmt.Errorf("read the output: %w", err)
		}
		v.Total -= int64(partial(last))
	}
	r := h.clean(f, total, whole)
	if !whole {
		if v.Total, err = r.decided(v.From, v.Total); err != nil {
			return v, err
		}
	}
	return v, v.read(r, max(limit, 0))
}

// Live is Output of a command that runs: what may be the beginning of a secret at its end is left out.
func (h *Handle) Live(limit int) (View, error) {
	f, total, err := h.output()
	if f == nil || err != nil {
		return View{}, err
	}
	defer func() { _ = f.Close() }()
	r := h.clean(f, total, false)
	v := View{}
	if v.Total, err = r.decided(0, total); err != nil {
		return v, err
	}
	return v, v.read(r, max(limit, 0))
}

// output opens the output; a nil file says that there is none yet.
func (h *Handle) output() (*os.File, int64, error) {
	f, err := os.Open(path(h.dir, "out"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the output: %w", err)
	}
	st, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("read the output: %w", err), f.Close())
	}
	return f, st.Size(), nil
}

// read takes what is between From and Total, or both ends of it.
func (v *View) read(f io.ReaderAt, limit int) error {
	size := v.Total - v.From
	if size <= int64(limit) {
		var err error
		if v.Head, err = io.ReadAll(io.NewSectionReader(f, v.From, size)); err != nil {
			return fmt.Errorf("read the output: %w", err)
		}
		return nil
	}
	half := limit / 2
	v.Head, v.Tail = make([]byte, half), make([]byte, half)
	if _, err := f.ReadAt(v.Head, v.From); err != nil {
		return fmt.Errorf("read the output: %w", err)
	}
	if _, err := f.ReadAt(v.Tail, v.Total-int64(half)); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the output: %w", err)
	}
	v.Head = v.Head[:len(v.Head)-partial(v.Head)]
	for i := 0; i < utf8.UTFMax-1 && len(v.Tail) > 0 && !utf8.RuneStart(v.Tail[0]); i++ {
		v.Tail = v.Tail[1:]
	}
	v.Cut = size - int64(len(v.Head)) - int64(len(v.Tail))
	return nil
}

// partial is how many bytes at the end belong to a character that is not all there.
func partial(b []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return i
			}
			break
		}
	}
	return 0
}
