package server

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
)

// maxLine is the longest line that is read, in bytes without its end. Of a longer one nothing is kept.
const maxLine = 32 << 20

var errTooLong = errors.New("the line is too long")

// lines reads lines with a limit.
type lines struct {
	r   *bufio.Reader
	max int
}

// next returns the next line; a last one without its end counts. After errTooLong the reader stands at the next line.
func (l *lines) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line)+len(bytes.TrimSuffix(part, []byte("\n"))) > l.max {
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = l.r.ReadSlice('\n')
			}
			return nil, errTooLong // an error of the reader comes again with the next line
		}
		if need := len(line) + len(part); need > cap(line) {
			line = slices.Grow(line, max(need, 2*cap(line))-len(line))
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(line, []byte("\n")), nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
