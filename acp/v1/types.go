package v1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Meta is the member for extensions.
type Meta map[string]any

// List is a list that the schema requires. A []T can be assigned to it and the reverse.
type List[T any] []T

// MarshalJSON writes nil as an empty list.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]T(l))
}

// Method describes a method by the names of its definitions. Side is who handles it: "agent", "client" or "protocol" for both. Result is
// empty for a notification.
type Method struct{ Side, Params, Result string }

// Text is a content block with text.
func Text(s string) ContentBlock { return ContentBlock{Text: &TextContent{Text: s}} }

// RequestID is the id of a JSON-RPC request as it stands on the wire: a string, an integer or null.
type RequestID json.RawMessage

// MarshalJSON writes the id as it came.
func (id RequestID) MarshalJSON() ([]byte, error) { return json.RawMessage(id).MarshalJSON() }

func (id *RequestID) decode(raw json.RawMessage, at string) error {
	switch kind(raw) {
	case "a string", "a number", "null":
		*id = bytes.Clone(raw)
		return nil
	}
	return &MemberError{at, "want a string, an integer or null, got " + kind(raw)}
}

// SessionConfigSelectOptions has the values of a selector, as one list or in groups.
type SessionConfigSelectOptions struct {
	Ungrouped []SessionConfigSelectOption
	Grouped   []SessionConfigSelectGroup
}

// MarshalJSON writes the list that is set.
func (o SessionConfigSelectOptions) MarshalJSON() ([]byte, error) {
	switch {
	case o.Grouped != nil && o.Ungrouped != nil:
		return nil, errors.New("options are either one list or groups, not both")
	case o.Grouped != nil:
		return json.Marshal(o.Grouped)
	}
	return json.Marshal(List[SessionConfigSelectOption](o.Ungrouped))
}

// decode tells the two lists apart by their first item: only a group has options of its own.
func (o *SessionConfigSelectOptions) decode(raw json.RawMessage, at string) error {
	items, err := array(raw, at)
	if err != nil || len(items) == 0 {
		return err
	}
	var first struct {
		Group json.RawMessage `json:"group"`
	}
	if json.Unmarshal(items[0], &first) == nil && first.Group != nil {
		return decodeInto(raw, &o.Grouped, at)
	}
	return decodeInto(raw, &o.Ungrouped, at)
}

// UnmarshalJSON reads like Decode.
func (o *SessionConfigSelectOptions) UnmarshalJSON(raw []byte) error { return o.decode(raw, "value") }

// ElicitationContentValue is one answer of a form: string, int64, float64, bool or []string.
type ElicitationContentValue struct{ Value any }

// MarshalJSON writes the value.
func (v ElicitationContentValue) MarshalJSON() ([]byte, error) {
	switch v.Value.(type) {
	case string, int64, float64, bool, []string:
		return json.Marshal(v.Value)
	}
	return nil, fmt.Errorf("a form has no values of type %T", v.Value)
}

func (v *ElicitationContentValue) decode(raw json.RawMessage, at string) error {
	switch kind(raw) {
	case "a string":
		return assign[string](raw, &v.Value, at)
	case "true or false":
		return assign[bool](raw, &v.Value, at)
	case "a list":
		return assign[[]string](raw, &v.Value, at)
	case "a number":
		if assign[int64](raw, &v.Value, at) == nil {
			return nil
		}
		return assign[float64](raw, &v.Value, at)
	}
	return &MemberError{at, "want a string, a number, true or false, or a list of strings, got " + kind(raw)}
}

// UnmarshalJSON reads like Decode.
func (v *ElicitationContentValue) UnmarshalJSON(raw []byte) error { return v.decode(raw, "value") }

func assign[T any](raw json.RawMessage, to *any, at string) error {
	var v T
	err := decodeInto(raw, &v, at)
	if err == nil {
		*to = v
	}
	return err
}
