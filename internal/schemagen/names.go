package main

import (
	"slices"
	"strings"
)

// goName turns snake_case and camelCase into a Go name.
func goName(s string) string {
	var b strings.Builder
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune("_/-$ ", r) }) {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	name := b.String()
	for _, short := range []string{"Id", "Url"} {
		if strings.HasSuffix(name, short) {
			return strings.TrimSuffix(name, short) + strings.ToUpper(short)
		}
	}
	return name
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// comment is the first paragraph of a description as a comment. name, when given, goes in front.
func comment(name, text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n\n")
	switch {
	case name != "" && text == "":
		text = name + " is defined by the schema."
	case name != "":
		text = name + ": " + text
	case text == "":
		return ""
	}
	return "// " + strings.ReplaceAll(text, "\n", "\n// ") + "\n"
}
