package v1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"holdfast/internal/fault"
)

// MemberError names the member that cannot be used.
type MemberError struct{ Member, Message string }

func (e *MemberError) Error() string { return e.Member + ": " + e.Message }

// Interfaces of pointers to what is not read by its kind alone.
type (
	isUnion  interface{ union() union }
	isByHand interface {
		decode(json.RawMessage, string) error
	}
	hasValues interface{ values() []string }
)

// Decode reads the parameters of a method into v, a pointer to a generated type. Missing parameters are an empty object.
func Decode(params json.RawMessage, v any) error { return decodeAt(params, v, "params") }

// decodeAt reads a whole message; at is what it is called in an error.
func decodeAt(raw json.RawMessage, v any, at string) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || kind(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	return decodeInto(raw, v, at)
}

func decodeInto(raw json.RawMessage, v any, at string) error {
	return decode(raw, reflect.ValueOf(v).Elem(), at)
}

var anyType = reflect.TypeFor[any]()

// decode reads raw, which is not null, into v.
func decode(raw json.RawMessage, v reflect.Value, at string) error {
	raw = bytes.TrimSpace(raw)
	switch t := v.Addr().Interface().(type) {
	case isByHand:
		return t.decode(raw, at)
	case isUnion:
		if err := decodeCommon(raw, v, at); err != nil {
			return err
		}
		return decodeUnion(raw, t.union(), at)
	}
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		if err := decode(raw, p.Elem(), at); err != nil {
			return err
		}
		v.Set(p)
		return nil
	case reflect.Struct:
		return decodeStruct(raw, v, at)
	case reflect.Slice:
		return decodeSlice(raw, v, at, false)
	case reflect.Map:
		return decodeMap(raw, v, at)
	case reflect.Interface:
		v.Set(reflect.ValueOf(json.RawMessage(bytes.Clone(raw))))
		return nil
	}
	return decodeScalar(raw, v, at)
}

// decodeCommon reads the members that all variants of a union share.
func decodeCommon(raw json.RawMessage, v reflect.Value, at string) error {
	if len(fieldsOf(v.Type())) == 0 {
		return nil
	}
	return decodeStruct(raw, v, at)
}

func decodeStruct(raw json.RawMessage, v reflect.Value, at string) error {
	m, err := members(raw, at)
	if err != nil {
		return err
	}
	for _, f := range fieldsOf(v.Type()) {
		member, given := m[f.name]
		if given && kind(member) == "null" {
			given = f.nullable
		}
		switch {
		case !given && f.required:
			return &MemberError{at + "." + f.name, "is missing"}
		case !given:
			continue
		}
		field := v.Field(f.index)
		if field.Kind() == reflect.Slice && f.skip {
			err = decodeSlice(member, field, at+"."+f.name, true)
		} else {
			err = decode(member, field, at+"."+f.name)
		}
		if err != nil && !f.lenient {
			return err
		}
		if err != nil {
			field.SetZero()
		}
	}
	return nil
}

func decodeSlice(raw json.RawMessage, v reflect.Value, at string, skip bool) error {
	items, err := array(raw, at)
	if err != nil {
		return err
	}
	out := reflect.MakeSlice(v.Type(), 0, len(items))
	for i, item := range items {
		e := reflect.New(v.Type().Elem()).Elem()
		switch err := decode(item, e, fmt.Sprintf("%s[%d]", at, i)); {
		case err == nil:
			out = reflect.Append(out, e)
		case !skip:
			return err
		}
	}
	v.Set(out)
	return nil
}

func decodeMap(raw json.RawMessage, v reflect.Value, at string) error {
	m, err := members(raw, at)
	if err != nil {
		return err
	}
	if v.Type().Elem() == anyType { // free-form: plain Go values
		out := map[string]any{}
		for name, member := range m {
			var value any
			if err := json.Unmarshal(member, &value); err != nil {
				return &MemberError{at + "." + name, "cannot be read"}
			}
			out[name] = value
		}
		v.Set(reflect.ValueOf(out).Convert(v.Type()))
		return nil
	}
	out := reflect.MakeMap(v.Type())
	for name, member := range m {
		e := reflect.New(v.Type().Elem()).Elem()
		if err := decode(member, e, at+"."+name); err != nil {
			return err
		}
		out.SetMapIndex(reflect.ValueOf(name), e)
	}
	v.Set(out)
	return nil
}

func decodeScalar(raw json.RawMessage, v reflect.Value, at string) error {
	want := wants(v.Kind())
	if kind(raw) == "null" {
		return &MemberError{at, "want " + want + ", got null"}
	}
	err := json.Unmarshal(raw, v.Addr().Interface())
	if err != nil && v.CanInt() || err != nil && v.CanUint() {
		err = decodeWhole(raw, v)
	}
	if err != nil {
		return &MemberError{at, "want " + want + ", got " + kind(raw)}
	}
	if c, ok := v.Interface().(hasValues); ok && !slices.Contains(c.values(), v.String()) {
		return &MemberError{at, fmt.Sprintf("want one of %q", c.values())}
	}
	return nil
}

// decodeWhole reads 3.0 as 3: some clients have one kind of number only.
func decodeWhole(raw json.RawMessage, v reflect.Value) error {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return err
	}
	if f != float64(int64(f)) || f > 1<<53 || f < -1<<53 {
		return strconv.ErrRange
	}
	return json.Unmarshal(strconv.AppendInt(nil, int64(f), 10), v.Addr().Interface())
}

// members reads an object by member. An empty array is an empty object.
func members(raw json.RawMessage, at string) (map[string]json.RawMessage, error) {
	m := map[string]json.RawMessage{}
	if empty(raw, '[', ']') && !fault.Without("empty_arrays") {
		return m, nil
	}
	if kind(raw) != "an object" || json.Unmarshal(raw, &m) != nil {
		return nil, &MemberError{at, "want an object, got " + kind(raw)}
	}
	return m, nil
}

// array reads a list by item. An empty object is an empty list.
func array(raw json.RawMessage, at string) ([]json.RawMessage, error) {
	if empty(raw, '{', '}') {
		return nil, nil
	}
	var items []json.RawMessage
	if kind(raw) != "a list" || json.Unmarshal(raw, &items) != nil {
		return nil, &MemberError{at, "want a list, got " + kind(raw)}
	}
	return items, nil
}

func empty(raw []byte, open, end byte) bool {
	return len(raw) >= 2 && raw[0] == open && raw[len(raw)-1] == end && len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
}

// kind says in words what a value is. The value itself stays out of messages: it may be secret.
func kind(raw []byte) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

func wants(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Uint16:
		return "an integer from 0 to 65535"
	case reflect.Uint32, reflect.Uint64:
		return "an integer of 0 or more"
	case reflect.Int32, reflect.Int64:
		return "an integer"
	}
	return "a number"
}
