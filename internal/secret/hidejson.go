package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

var errNoJSON = errors.New("it is no JSON")

func first(raw []byte) byte {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) > 0 {
		return raw[0]
	}
	return 0
}

// container is an open object or list of a JSON text.
type container struct {
	object bool
	key    bool // the next string names a member
}

// hideMembers masks an object or a list, token by token, so that everything but the masked strings stays as it is written.
func hideMembers(raw []byte, text func(string) string) (json.RawMessage, bool, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out bytes.Buffer
	var open []container
	changed := false
	for at := int64(0); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) && len(open) == 0 {
			out.Write(raw[at:])
			return out.Bytes(), changed, nil
		}
		if err != nil {
			return nil, false, err
		}
		part := raw[at:d.InputOffset()] // with what separates it from the last one
		at = d.InputOffset()
		if d, ok := tok.(json.Delim); ok {
			if d == '{' || d == '[' {
				open = append(open, container{d == '{', d == '{'})
			} else {
				open = done(open[:len(open)-1])
			}
			out.Write(part)
			continue
		}
		s, isText := tok.(string)
		if top := len(open) - 1; isText && top >= 0 && open[top].key {
			open[top].key = false
			out.Write(part)
			continue
		}
		open = done(open)
		t := s
		if isText {
			t = text(s)
		}
		if t == s {
			out.Write(part)
			continue
		}
		b, err := json.Marshal(t)
		if err != nil {
			return nil, false, err
		}
		out.Write(part[:bytes.IndexByte(part, '"')])
		out.Write(b)
		changed = true
	}
}

// done says that the innermost container has got a value.
func done(open []container) []container {
	if top := len(open) - 1; top >= 0 && open[top].object {
		open[top].key = true
	}
	return open
}
