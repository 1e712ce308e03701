package main

import (
	"fmt"
	"io"
	"strings"

	"holdfast/goals"
	"holdfast/session"
)

// contractLines are a goal's requirements with where they come from, and its todo.
func contractLines(w io.Writer, v goals.View) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	if said := v.Extraction.Line(); said != "" {
		p("read       %s", line(said, 400))
	}
	for _, r := range v.Requirements {
		p("  %-8s %-9s %-8s %-5s %s%s", r.Result, r.ID, r.Kind, r.Origin, line(r.Text, 100), r.Standing())
		if r.Reason != "" {
			p("%35s%s", "", line(r.Reason, 300))
		}
	}
	for _, e := range v.Todo {
		p("  todo     %s", line(todoLine(e), 300))
	}
}

// todoLine is an item of a goal's todo.
func todoLine(e session.PlanEntry) string {
	text := e.Status + " " + e.ID + ": " + e.Content
	if e.Optional {
		text += " (optional)"
	}
	if e.Blocked {
		text += " (nothing can be done about it for now)"
	}
	if len(e.Evidence) > 0 {
		text += ", evidence " + strings.Join(e.Evidence, ", ")
	}
	return text
}
