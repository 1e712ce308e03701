package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

var errTooLong = errors.New("a line is longer than allowed")

// lines reads messages of a bounded length.
type lines struct {
	r     *bufio.Reader
	limit int
}

func newLines(r io.Reader, limit int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next returns one line without its end, in memory of its own. The last line counts even if nothing ends it.
func (l *lines) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line)+len(part) > l.limit+1 {
			return nil, errTooLong
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && len(line) == 0:
			return nil, err
		}
		return bytes.TrimRight(line, "\r\n"), nil
	}
}

// class is what a message of the server is.
type class int

const (
	noise class = iota
	answer
	notification
	request
)

// envelope is the outside of a JSON-RPC message.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// open reads the outside of one line.
func open(line []byte) (envelope, class) {
	var e envelope
	if !bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")) || json.Unmarshal(line, &e) != nil {
		return envelope{}, noise
	}
	switch hasID := len(e.ID) > 0 && !bytes.Equal(e.ID, []byte("null")); {
	case e.Method != nil && hasID:
		return e, request
	case e.Method != nil:
		return e, notification
	case hasID:
		return e, answer
	}
	return e, noise
}
