package secret

import (
	"encoding/json"
	"reflect"
	"time"
)

// Hider is a value that knows which of its own members hold text, and what else must change when one does.
type Hider interface {
	Hide(text func(string) string)
}

// Hide returns a value whose strings are masked; what it was made from stays as it is. Only members of the type string itself are text: ids,
// states and other named strings, and the keys of maps, are left alone. A member with the tag `secret:"known"` loses known values only,
// because somebody will act on its text as it is.
func Hide[T any](m *Masker, v T) T {
	rv := reflect.ValueOf(&v).Elem()
	out := m.hide(rv, m.Text)
	if !out.IsValid() {
		return v
	}
	return out.Interface().(T)
}

var rawType = reflect.TypeFor[json.RawMessage]()

// hide returns the masked copy of a value, or the zero Value when nothing in it changes.
func (m *Masker) hide(v reflect.Value, text func(string) string) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		if v.Type() != reflect.TypeFor[string]() {
			return reflect.Value{}
		}
		if s := v.String(); len(s) > 0 {
			if t := text(s); t != s {
				return reflect.ValueOf(t)
			}
		}
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return reflect.Value{}
		}
		if in := m.hide(v.Elem(), text); in.IsValid() {
			if v.Kind() == reflect.Interface {
				return in
			}
			p := reflect.New(v.Type().Elem())
			p.Elem().Set(in)
			return p
		}
	case reflect.Struct:
		return m.hideStruct(v, text)
	case reflect.Slice, reflect.Array:
		return m.hideList(v, text)
	case reflect.Map:
		return m.hideMap(v, text)
	}
	return reflect.Value{}
}

func (m *Masker) hideStruct(v reflect.Value, text func(string) string) reflect.Value {
	if v.Type() == reflect.TypeFor[time.Time]() {
		return reflect.Value{}
	}
	var out reflect.Value
	if h := reflect.PointerTo(v.Type()); h.Implements(reflect.TypeFor[Hider]()) {
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		p.Interface().(Hider).Hide(text)
		return p.Elem()
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		use := text
		if f.Tag.Get("secret") == "known" {
			use = m.Known
		}
		in := m.hide(v.Field(i), use)
		if !in.IsValid() {
			continue
		}
		if !out.IsValid() {
			out = reflect.New(v.Type()).Elem()
			out.Set(v)
		}
		out.Field(i).Set(in)
	}
	return out
}

func (m *Masker) hideList(v reflect.Value, text func(string) string) reflect.Value {
	if v.Kind() == reflect.Slice && v.Type() == rawType {
		raw := v.Bytes()
		if out := hideJSON(raw, text); out != nil {
			return reflect.ValueOf(json.RawMessage(out))
		}
		return reflect.Value{}
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return reflect.Value{}
	}
	var out reflect.Value
	for i := range v.Len() {
		in := m.hide(v.Index(i), text)
		if !in.IsValid() {
			continue
		}
		if !out.IsValid() {
			out = reflect.New(v.Type()).Elem()
			if v.Kind() == reflect.Slice {
				out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			}
			reflect.Copy(out, v)
		}
		out.Index(i).Set(in)
	}
	return out
}

func (m *Masker) hideMap(v reflect.Value, text func(string) string) reflect.Value {
	var out reflect.Value
	for it := v.MapRange(); it.Next(); {
		in := m.hide(it.Value(), text)
		if !in.IsValid() {
			continue
		}
		if !out.IsValid() {
			out = reflect.MakeMap(v.Type())
			for all := v.MapRange(); all.Next(); {
				out.SetMapIndex(all.Key(), all.Value())
			}
		}
		out.SetMapIndex(it.Key(), in)
	}
	return out
}

// JSON masks the string values of a JSON text. What is no JSON is masked as a text.
func (m *Masker) JSON(raw []byte) []byte {
	if out := hideJSON(raw, m.Text); out != nil {
		return out
	}
	return raw
}

// hideJSON returns nil when nothing changes.
func hideJSON(raw []byte, text func(string) string) []byte {
	if len(raw) == 0 {
		return nil
	}
	if s := string(raw); text(s) == s && !escapes(raw) {
		return nil // the usual case costs no decoding
	}
	out, changed, err := hideValue(raw, text)
	if err != nil {
		if t := text(string(raw)); t != string(raw) {
			return []byte(t)
		}
		return nil
	}
	if !changed {
		return nil
	}
	return out
}

// escapes tells whether a string in a JSON text may be spelt in another way than it reads.
func escapes(raw []byte) bool {
	for _, c := range raw {
		if c == '\\' {
			return true
		}
	}
	return false
}

// hideValue keeps the order of members and the spelling of numbers.
func hideValue(raw json.RawMessage, text func(string) string) (json.RawMessage, bool, error) {
	switch first(raw) {
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, false, err
		}
		t := text(s)
		if t == s {
			return raw, false, nil
		}
		b, err := json.Marshal(t)
		return b, true, err
	case '{', '[':
		return hideMembers(raw, text)
	}
	if !json.Valid(raw) {
		return nil, false, errNoJSON
	}
	return raw, false, nil
}
