package proc

import (
	"bytes"
	"io"
	"os"

	"holdfast/internal/secret"
)

// piece is how much of an output is looked at in one go.
const piece = 256 << 10

// blanker overwrites secrets in an output while it grows. Lengths and offsets stay. What cannot be blanked is left to those who read: they
// mask too.
type blanker struct {
	mask *secret.Masker
	done int64 // everything before it is decided
}

// atOnce is how much is looked at while somebody may ask for the command's end.
const atOnce = 1 << 20

// rest looks at what is left when nothing follows. Of what a command printed beyond its cap only the end, which is shown, is blanked: between
// the cap and the moment it was stopped it may have printed for longer than anybody waits.
func (b *blanker) rest(path string, size, most int64) {
	if end := size - atOnce; most > 0 && most < end {
		b.blank(path, most, false)
		b.done = max(b.done, end)
	}
	b.blank(path, size, true)
}

// blank looks at what has come up to size. With last set nothing follows.
func (b *blanker) blank(path string, size int64, last bool) {
	if b.done >= size {
		return
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // the command's own descriptor appends wherever it is told to write
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	for b.done < size {
		from := max(0, b.done-secret.LookBack)
		raw := make([]byte, min(size-from, piece))
		if _, err := io.ReadFull(io.NewSectionReader(f, from, int64(len(raw))), raw); err != nil {
			return
		}
		end := from + int64(len(raw))
		clean := bytes.Clone(raw)
		at := b.mask.BlankFrom(clean, int(b.done-from), last && end == size)
		if err := rewrite(f, from, raw, clean); err != nil {
			return
		}
		if next := from + int64(at); next > b.done {
			b.done = next
		} else {
			return // undecided until more has come
		}
	}
}

// rewrite writes the parts that differ.
func rewrite(f io.WriterAt, from int64, raw, clean []byte) error {
	for i := 0; i < len(raw); {
		n := 0
		for i+n < len(raw) && raw[i+n] != clean[i+n] {
			n++
		}
		if n > 0 {
			if _, err := f.WriteAt(clean[i:i+n], from+int64(i)); err != nil {
				return err
			}
		}
		i += max(n, 1)
	}
	return nil
}
