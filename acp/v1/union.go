package v1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// union is how a generated union shows itself to the encoder and the decoder.
type union struct {
	tag      string // the member that names the variant; "" when they are told apart by their members
	unknown  *json.RawMessage
	variants []variant
}

// variant is one shape. One without a value carries no tag, and is recognised by the members it requires.
type variant struct {
	value    string
	at       any // **T, the field of the union
	name     string
	required []string
}

var errVariants = errors.New("a union has exactly one variant")

// marshalUnion writes the tag, the common members and those of the variant as one object.
func marshalUnion(u union, common any) ([]byte, error) {
	var chosen *variant
	for i := range u.variants {
		if reflect.ValueOf(u.variants[i].at).Elem().IsNil() {
			continue
		}
		if chosen != nil {
			return nil, errVariants
		}
		chosen = &u.variants[i]
	}
	switch {
	case chosen == nil && len(*u.unknown) > 0:
		return *u.unknown, nil
	case chosen == nil || len(*u.unknown) > 0:
		return nil, errVariants
	}
	out := []byte{'{'}
	if chosen.value != "" {
		out = fmt.Appendf(out, "%q:%q", u.tag, chosen.value)
	}
	for _, part := range []any{common, chosen.at} {
		if part == nil {
			continue
		}
		b, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		if members := b[1 : len(b)-1]; len(members) > 0 {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, members...)
		}
	}
	return append(out, '}'), nil
}

// decodeUnion reads the variant that the tag names. Without a known tag it is the variant whose required members are all there. A tag
// that is not known keeps the value as it came.
func decodeUnion(raw json.RawMessage, u union, at string) error {
	m, err := members(raw, at)
	if err != nil {
		return err
	}
	value := ""
	if t, ok := m[u.tag]; ok && u.tag != "" {
		if json.Unmarshal(t, &value) != nil || kind(t) != "a string" {
			return &MemberError{at + "." + u.tag, "want a string, got " + kind(t)}
		}
	}
	var fallback *variant // what the value is taken for when nothing fits: to say which member is missing
	for i := range u.variants {
		v := &u.variants[i]
		switch {
		case v.value != "" && v.value == value:
			return decodeVariant(raw, v, at)
		case v.value != "":
		case has(m, v.required, false):
			return decodeVariant(raw, v, at)
		case has(m, v.required, true), fallback == nil && u.tag != "" && (value == "" || value == v.name):
			fallback = v
		}
	}
	switch {
	case fallback != nil:
		return decodeVariant(raw, fallback, at)
	case u.tag == "":
		return &MemberError{at, "fits none of the known shapes"}
	case value == "":
		return &MemberError{at + "." + u.tag, "is missing"}
	}
	*u.unknown = bytes.Clone(raw)
	return nil
}

// has tells whether all of the members are there; null counts only when nulls does.
func has(m map[string]json.RawMessage, required []string, nulls bool) bool {
	for _, name := range required {
		if member, ok := m[name]; !ok || !nulls && kind(member) == "null" {
			return false
		}
	}
	return true
}

func decodeVariant(raw json.RawMessage, v *variant, at string) error {
	field := reflect.ValueOf(v.at).Elem()
	p := reflect.New(field.Type().Elem())
	if err := decode(raw, p.Elem(), at); err != nil {
		return err
	}
	field.Set(p)
	return nil
}
