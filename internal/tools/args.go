package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"holdfast/session"
)

// failf is a failure whose text the model reads. It says what to do next.
func failf(format string, args ...any) error {
	return &session.ToolError{Message: fmt.Sprintf(format, args...)}
}

// decodeArgs reads the arguments of a call into v, and names the member that is wrong or missing. A missing one is never taken for empty.
func decodeArgs(tool string, args json.RawMessage, v any, required ...string) error {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	if !utf8.Valid(args) {
		return failf("The arguments of %s are not valid UTF-8. Send them again.", tool)
	}
	if err := brokenSurrogate(tool, args); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			return failf("The arguments of %s go on after the closing brace. Send one JSON object.", tool)
		}
		return missing(tool, args, required)
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return failf("The argument %q of %s must be %s, not %s.", wrong.Field, tool, jsonName(wrong.Type.Kind().String()), wrong.Value)
	}
	if errors.As(err, &wrong) {
		return failf("The arguments of %s must be one JSON object, not %s.", tool, wrong.Value)
	}
	if _, name, found := strings.Cut(err.Error(), "unknown field "); found {
		return failf("%s has no argument %s. Leave it out.", tool, name)
	}
	return failf("The arguments of %s are not valid JSON (%v). They may have been cut off: send the whole call again.", tool, err)
}

// missing names the first required member that is not there.
func missing(tool string, args json.RawMessage, required []string) error {
	var have map[string]json.RawMessage
	if err := json.Unmarshal(args, &have); err != nil || have == nil {
		return failf("The arguments of %s must be one JSON object, not null.", tool)
	}
	for _, name := range required {
		if v, ok := have[name]; !ok || string(v) == "null" {
			return failf("%s needs the argument %q. Send the whole call again.", tool, name)
		}
	}
	return nil
}

func jsonName(kind string) string {
	switch kind {
	case "string":
		return "a string"
	case "bool":
		return "true or false"
	case "slice":
		return "a list"
	case "struct":
		return "an object"
	}
	return "a whole number"
}

// brokenSurrogate refuses half a \u pair: the decoder would turn it into a replacement mark, which would end up in the user's file.
func brokenSurrogate(tool string, args []byte) error {
	for i := 0; i+1 < len(args); i++ {
		if args[i] != '\\' {
			continue
		}
		i++ // at the escape's letter
		hi, ok := escapedUnit(args, i)
		if !ok || hi < 0xD800 || hi > 0xDFFF {
			continue
		}
		lo, ok := uint16(0), false
		if i+5 < len(args) && args[i+5] == '\\' {
			lo, ok = escapedUnit(args, i+6)
		}
		if hi >= 0xDC00 || !ok || lo < 0xDC00 || lo > 0xDFFF {
			return failf("The arguments of %s hold half of a surrogate pair (\\u%04x). Send the whole character.", tool, hi)
		}
		i += 10
	}
	return nil
}

// escapedUnit reads the four digits of a \u escape whose letter is at i.
func escapedUnit(b []byte, i int) (uint16, bool) {
	if i+4 >= len(b) || b[i] != 'u' {
		return 0, false
	}
	var n uint16
	for _, c := range b[i+1 : i+5] {
		d := strings.IndexByte("0123456789abcdef", c|0x20)
		if c >= '0' && c <= '9' {
			d = int(c - '0')
		}
		if d < 0 {
			return 0, false
		}
		n = n<<4 | uint16(d)
	}
	return n, true
}

// normalised is the stored form of checked arguments.
func normalised(v any) (json.RawMessage, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("store arguments: %w", err)
	}
	return b, nil
}

// stored reads back what normalised wrote.
func stored(plan session.Plan, v any) error {
	if err := json.Unmarshal(plan.Args, v); err != nil {
		return fmt.Errorf("read stored arguments: %w", err)
	}
	return nil
}
