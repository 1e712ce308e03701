package v1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// MemberError names the member that cannot be used.
type MemberError struct{ Member, Message string }

func (e *MemberError) Error() string { return e.Member + ": " + e.Message }

// union is implemented by every generated union.
type union interface {
	choose(value string) any
	tag() string
}

// Decode reads raw into v, a pointer to a generated type.
func Decode(raw json.RawMessage, v any) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	return decode(raw, reflect.ValueOf(v).Elem(), "params")
}

func decode(raw json.RawMessage, v reflect.Value, at string) error {
	raw = bytes.TrimSpace(raw)
	if v.Kind() == reflect.Pointer {
		if string(raw) == "null" {
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		return decode(raw, v.Elem(), at)
	}
	if u, ok := v.Addr().Interface().(union); ok {
		return decodeUnion(raw, u, at)
	}
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes(bytes.Clone(raw))
		return nil
	case v.Kind() == reflect.Struct:
		return decodeStruct(raw, v, at)
	case v.Kind() == reflect.Slice:
		return decodeSlice(raw, v, at, false)
	}
	if string(raw) == "null" {
		return &MemberError{at, "want " + wants(v.Type()) + ", got null"}
	}
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
		return &MemberError{at, "want " + wants(v.Type()) + ", got " + short(raw)}
	}
	return nil
}

func wants(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	}
	return t.Kind().String()
}

func short(raw []byte) string {
	if len(raw) > 40 {
		return string(raw[:40]) + "…"
	}
	return string(raw)
}

// object reads the members of an object. An empty array counts as an empty object.
func object(raw json.RawMessage, at string) (map[string]json.RawMessage, error) {
	m := map[string]json.RawMessage{}
	if bytes.HasPrefix(raw, []byte("[")) && len(bytes.TrimSpace(raw[1:])) == 1 {
		return m, nil
	}
	if !bytes.HasPrefix(raw, []byte("{")) || json.Unmarshal(raw, &m) != nil {
		return nil, &MemberError{at, "want an object, got " + short(raw)}
	}
	return m, nil
}

func decodeStruct(raw json.RawMessage, v reflect.Value, at string) error {
	m, err := object(raw, at)
	if err != nil {
		return err
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		hints := f.Tag.Get("acp")
		member, given := m[name]
		path := at + "." + name
		if !given {
			if strings.Contains(hints, "required") {
				return &MemberError{path, "is missing"}
			}
			continue
		}
		if string(member) == "null" && !strings.Contains(hints, "required") {
			continue
		}
		if f.Type.Kind() == reflect.Slice && f.Type != reflect.TypeFor[json.RawMessage]() {
			err = decodeSlice(member, v.Field(i), path, strings.Contains(hints, "skip"))
		} else {
			err = decode(member, v.Field(i), path)
		}
		if err != nil && strings.Contains(hints, "lenient") {
			v.Field(i).SetZero()
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func decodeSlice(raw json.RawMessage, v reflect.Value, at string, skip bool) error {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return &MemberError{at, "want a list, got " + short(raw)}
	}
	out := reflect.MakeSlice(v.Type(), 0, len(items))
	for i, item := range items {
		e := reflect.New(v.Type().Elem()).Elem()
		if err := decode(item, e, fmt.Sprintf("%s[%d]", at, i)); err != nil {
			if skip {
				continue
			}
			return err
		}
		out = reflect.Append(out, e)
	}
	v.Set(out)
	return nil
}

func decodeUnion(raw json.RawMessage, u union, at string) error {
	m, err := object(raw, at)
	if err != nil {
		return err
	}
	value := ""
	if t, ok := m[u.tag()]; ok && json.Unmarshal(t, &value) != nil {
		return &MemberError{at + "." + u.tag(), "want a string, got " + short(t)}
	}
	into := reflect.ValueOf(u.choose(value)).Elem()
	return decode(raw, into, at)
}

// marshalVariant writes a variant with its discriminator first.
func marshalVariant(tag, value string, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil || value == "" {
		return b, err
	}
	head := fmt.Appendf(nil, `{%q:%q`, tag, value)
	if len(b) > 2 {
		head = append(head, ',')
	}
	return append(head, b[1:]...), nil
}
