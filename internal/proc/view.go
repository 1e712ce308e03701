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

// View is the beginning and the end of an output.
type View struct {
	Head   []byte
	Tail   []byte // empty when Head is everything
	Cut    int64  // bytes between them
	Total  int64
	Digest string // sha256 of the whole, only when it was asked for
}

// Output returns at most limit bytes of the output so far, split between its beginning and its end, never inside a character.
func (h *Handle) Output(limit int, digest bool) (View, error) {
	f, err := os.Open(path(h.dir, "out"))
	if errors.Is(err, fs.ErrNotExist) {
		return View{}, nil
	}
	if err != nil {
		return View{}, fmt.Errorf("read the output: %w", err)
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return View{}, fmt.Errorf("read the output: %w", err)
	}
	v := View{Total: st.Size()}
	limit = max(limit, 0)
	if v.Total <= int64(limit) {
		if v.Head, err = io.ReadAll(io.LimitReader(f, v.Total)); err != nil {
			return v, fmt.Errorf("read the output: %w", err)
		}
	} else if err := v.ends(f, limit/2); err != nil {
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

// ends reads half bytes from each end.
func (v *View) ends(f io.ReaderAt, half int) error {
	v.Head, v.Tail = make([]byte, half), make([]byte, half)
	if _, err := f.ReadAt(v.Head, 0); err != nil {
		return fmt.Errorf("read the output: %w", err)
	}
	if _, err := f.ReadAt(v.Tail, v.Total-int64(half)); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the output: %w", err)
	}
	for i := 1; i < utf8.UTFMax && i <= len(v.Head); i++ { // a character cut in two at the end
		if c := v.Head[len(v.Head)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(v.Head[len(v.Head)-i:]) {
				v.Head = v.Head[:len(v.Head)-i]
			}
			break
		}
	}
	for i := 0; i < utf8.UTFMax-1 && len(v.Tail) > 0 && !utf8.RuneStart(v.Tail[0]); i++ {
		v.Tail = v.Tail[1:]
	}
	v.Cut = v.Total - int64(len(v.Head)) - int64(len(v.Tail))
	return nil
}
