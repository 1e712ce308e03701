package rpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxLine is the largest message accepted, in bytes. A longer one is refused without being stored.
const MaxLine = 32 << 20

var errTooLong = errors.New("the message is too long")

// lines reads lines with a limit; the rest of a line that is too long is skipped.
type lines struct{ r *bufio.Reader }

func newLines(in io.Reader) lines { return lines{bufio.NewReaderSize(in, 64<<10)} }

// next returns the next line without its end. It is valid until the following call when it is short. A last line without an end counts.
func (l lines) next() ([]byte, error) {
	part, err := l.r.ReadSlice('\n')
	if err == nil {
		return part, nil
	}
	if errors.Is(err, io.EOF) && len(part) > 0 {
		return part, nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	line := bytes.Clone(part)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = l.r.ReadSlice('\n')
		if len(line)+len(part) > MaxLine {
			return nil, errors.Join(errTooLong, l.skip(err))
		}
		line = append(line, part...)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return line, nil
}

// skip reads on to the end of the line.
func (l lines) skip(err error) error {
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = l.r.ReadSlice('\n')
	}
	return nil
}
