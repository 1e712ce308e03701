package rpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
)

// DefaultMaxLine is the largest line accepted, in bytes without its end. A longer one is refused; no more than the limit of it is stored.
const DefaultMaxLine = 32 << 20

var errTooLong = errors.New("the line is too long")

// lines reads lines with a limit.
type lines struct {
	r   *bufio.Reader
	max int
}

func newLines(in io.Reader, limit int) *lines { return &lines{bufio.NewReaderSize(in, 64<<10), limit} }

// next returns the next line without its line feed; the caller owns it. A last line without an end counts as a line. After errTooLong the
// reader stands at the next line.
func (l *lines) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		size := len(line) + len(bytes.TrimSuffix(part, []byte("\n")))
		switch {
		case size > l.max:
			return nil, l.skip(err)
		case err == nil:
			return append(line, part...)[:size], nil
		case errors.Is(err, bufio.ErrBufferFull):
			if len(line)+len(part) > cap(line) {
				line = slices.Grow(line, len(line)+len(part)) // doubles, where append adds a quarter
			}
			line = append(line, part...)
		case errors.Is(err, io.EOF) && size > 0:
			return append(line, part...), nil
		default:
			return nil, err
		}
	}
}

// skip drops the rest of a line; err is what reading its last part gave.
func (l *lines) skip(err error) error {
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = l.r.ReadSlice('\n')
	}
	return errTooLong // an error of the reader comes again with the next line
}
