package v1

import (
	"reflect"
	"strings"
	"sync"
)

// fieldInfo is what the struct tags say of one member.
type fieldInfo struct {
	name                    string
	index                   int
	required, lenient, skip bool
	nullable                bool // null is a value of the type itself
}

var fieldCache sync.Map // reflect.Type → []fieldInfo

// fieldsOf returns the members of a struct. Variants of a union are not members.
func fieldsOf(t reflect.Type) []fieldInfo {
	if c, ok := fieldCache.Load(t); ok {
		return c.([]fieldInfo)
	}
	var out []fieldInfo
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		hints := f.Tag.Get("acp")
		out = append(out, fieldInfo{name: name, index: i, required: strings.Contains(hints, "required"), lenient: strings.Contains(hints, "lenient"),
			skip: strings.Contains(hints, "skip"), nullable: f.Type == reflect.TypeFor[RequestID]()})
	}
	fieldCache.Store(t, out)
	return out
}
