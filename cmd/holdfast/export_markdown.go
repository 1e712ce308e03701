package main

import (
	"fmt"
	"regexp"
	"strings"

	"holdfast/session"
)

// markdown is the document for a person. Whatever a model, a tool or a user wrote stays inside its own block: texts are quoted line by line,
// everything else is fenced by more backticks than it holds.
func (x *export) markdown() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	s := x.Session
	p("# Session %s\n", code(string(s.SessionID)))
	p("- Title: %s", code(s.Title))
	p("- Directory: %s", code(strings.Join(append([]string{s.Cwd}, s.Directories...), ", ")))
	p("- Mode: %s, state: %s", s.Mode, s.State)
	p("- From %s to %s", clock(s.CreatedAt), clock(s.UpdatedAt))
	p("- Usage: %s, %d tokens in, %d out%s%s", plural(x.Usage.Requests, "model request"), x.Usage.Input, x.Usage.Output,
		partsText(x.Usage.CacheRead.Pointer(), x.Usage.CacheWrite.Pointer(), x.Usage.Reasoning.Pointer()), x.unknownRequests())
	if cost := session.MoneyOf(x.Usage.Costs, x.Usage.UnknownCost).String(); cost != "" {
		p("- Cost: %s", cost)
	}
	p("- Exported by %s (%s)\n", x.Program, x.Format)
	if len(x.Unknown) > 0 {
		p("**The outcome of %s is unknown.** Each may have happened, wholly or in part, or not at all:\n", plural(len(x.Unknown), "call"))
		for _, e := range x.Entries {
			if e.Call != nil && e.Call.Fact == session.FactUnknown {
				p("- [%d] %s %s", e.Seq, code(e.Call.Tool), code(e.Call.Title))
			}
		}
		p("")
	}
	if len(x.Plan) > 0 {
		p("## Plan\n")
		for _, e := range x.Plan {
			mark := map[string]string{"completed": "x"}[e.Status]
			p("- [%s] %s (%s, %s)", or(mark, " "), code(e.Content), e.Priority, e.Status)
		}
		p("")
	}
	for _, g := range x.Goals {
		p("## Goal %s: %s\n\n%s", code(g.GoalID), g.Status, quote(g.Objective))
		for _, r := range g.Requirements {
			p("- %s %s: %s", code(r.ID), r.Result, code(r.Text))
		}
		p("")
	}
	p("## History\n")
	thread := ""
	for _, e := range x.Entries {
		if e.Thread != thread {
			thread = e.Thread
			p("## Review %s\n", code(thread))
		}
		x.markdownEntry(p, e)
	}
	return b.String()
}

func (x *export) unknownRequests() string {
	if x.Usage.Unknown == 0 {
		return ""
	}
	return fmt.Sprintf("; usage unknown for %d more", x.Usage.Unknown)
}

// spoken is how an entry is headed.
var spoken = map[session.ItemKind]string{session.ItemUser: "User", session.ItemAgent: "Agent", session.ItemThought: "Thought", session.ItemNote: "Note to the model",
	session.ItemMarker: "Holdfast", session.ItemGoal: "Goal", session.ItemCompaction: "Summary of what was said before"}

func (x *export) markdownEntry(p func(string, ...any), e exportEntry) {
	state := ""
	if e.State != session.ItemComplete {
		state = ", " + string(e.State)
	}
	if e.Unusable {
		state += ", the record is damaged"
	}
	c := e.Call
	if c == nil {
		if e.Text != "" || e.Unusable {
			p("### [%d] %s (%s%s)\n\n%s", e.Seq, or(spoken[e.Kind], string(e.Kind)), clock(e.At), state, quote(e.Text))
		}
		return
	}
	status := string(c.Status)
	if c.Fact == session.FactUnknown {
		status = "OUTCOME UNKNOWN"
	}
	p("### [%d] Call of %s: %s (%s%s)\n", e.Seq, code(c.Tool), status, clock(e.At), state)
	p("%s\n", code(c.Title))
	p("Arguments:\n\n%s", fenced(c.Arguments))
	for _, f := range c.Files {
		p("Changes %s:\n\n%s", code(f.Path), fenced(diffText(f)))
	}
	if c.Note != "" {
		p("What is known of it:\n\n%s", quote(c.Note))
	}
	if c.ExitCode != nil {
		p("Exit code %d.\n", *c.ExitCode)
	}
	if c.Result != nil {
		p("Result:\n\n%s", fenced(*c.Result))
	} else {
		p("There is no result.\n")
	}
}

func diffText(f exportFile) string {
	var b strings.Builder
	for _, part := range []struct{ mark, text string }{{"-", f.Old}, {"+", f.New}} {
		for l := range strings.Lines(part.text) {
			b.WriteString(part.mark + strings.TrimRight(l, "\n") + "\n")
		}
	}
	return b.String()
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n", "\u0085", "\n")

// readable is a text without what a terminal or a renderer would act on, in lines that end in one way.
func readable(s string) string { return plain(lineEnds.Replace(s)) }

var tags = regexp.MustCompile(`<([A-Za-z/!?])`)

// quote is a text as a block quote: each line is marked, so that none begins anything outside, and no raw HTML is left.
func quote(s string) string {
	var b strings.Builder
	for _, l := range strings.Split(strings.TrimRight(tags.ReplaceAllString(readable(s), "&lt;$1"), "\n"), "\n") {
		b.WriteString(strings.TrimRight("> "+l, " ") + "\n")
	}
	return b.String()
}

// fenced is a text as a code block that it cannot end.
func fenced(s string) string {
	s = strings.TrimRight(readable(s), "\n")
	fence := strings.Repeat("`", max(3, longestRun(s)+1))
	return fence + "text\n" + s + "\n" + fence + "\n"
}

// code is one line as inline code.
func code(s string) string {
	s = line(strings.ReplaceAll(readable(s), "\n", " "), 2000)
	if s == "" {
		return "(none)"
	}
	ticks := strings.Repeat("`", longestRun(s)+1)
	return ticks + " " + s + " " + ticks
}

// longestRun counts the longest run of backticks.
func longestRun(s string) int {
	longest, n := 0, 0
	for _, r := range s {
		if r != '`' {
			n = 0
			continue
		}
		n++
		longest = max(longest, n)
	}
	return longest
}
