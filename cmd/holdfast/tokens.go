package main

import (
	"fmt"
	"strings"
)

// partsText says what is known of the parts of tokens: " (7 read from a cache, 1 of reasoning)". Of what is unknown it says nothing.
func partsText(read, written, reasoning *int64) string {
	var parts []string
	for _, p := range []struct {
		n    *int64
		what string
	}{{read, "read from a cache"}, {written, "written to one"}, {reasoning, "of reasoning"}} {
		if p.n != nil && *p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", *p.n, p.what))
		}
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
