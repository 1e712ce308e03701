package main

import (
	"fmt"
	"runtime"
	"strings"

	"holdfast/internal/worktree"
	"holdfast/session"
)

// systemPrompt is what every model is told about its place. Nothing in it changes by itself while a session lasts, or endpoints could not cache
// what begins with it: the day is that on which the session began.
func systemPrompt(s session.Session, git string) string {
	var b strings.Builder
	b.WriteString("You are Holdfast, a coding agent working in the user's own directory through tools. Look before you change anything, keep changes small, and " +
		"say plainly what you did and what you do not know. Tool results may say that a call never started or that its outcome is unknown: " +
		"then look at the real state first and do not repeat the call blindly.\n")
	fmt.Fprintf(&b, "Working directory: %s\nDirectories you may use: %s\n", s.Cwd, strings.Join(s.Roots, ", "))
	if git != "" {
		b.WriteString("Git: " + git + "\n")
	}
	fmt.Fprintf(&b, "Platform: %s/%s\n", runtime.GOOS, runtime.GOARCH)
	if !s.CreatedAt.IsZero() {
		fmt.Fprintf(&b, "This session began on %s; ask the system when you need to know what day it is now.\n", s.CreatedAt.UTC().Format("Monday, 2 January 2006"))
	}
	b.WriteString("Mode: " + string(s.Mode))
	if means := modeMeans[s.Mode]; means != "" {
		b.WriteString(" (" + means + ")")
	}
	return b.String()
}

// modeMeans says what each mode means for the model. docs/permissions.md says it for the user.
var modeMeans = map[session.Mode]string{
	session.ModePlan: "nothing is changed: every call but reading is refused; say what you would do, and the user sets another mode",
	session.ModeAsk:  "reading goes on without asking; the user is asked about everything else",
	session.ModeEdit: "reading and file edits inside the directories go on without asking; the user is asked about everything else",
	session.ModeAuto: "reading, file edits inside the directories, and commands that can do no harm go on without asking; the user is asked about the rest",
}

// gitState says of git what holds while a turn lasts: where the work tree begins, and what is checked out.
func gitState(home, cwd string) string {
	t := worktree.New(home)
	head := t.Head(cwd)
	branch, onBranch := strings.CutPrefix(head, "refs/heads/")
	switch {
	case head == "no git":
		return "the working directory is in no repository"
	case onBranch:
		return fmt.Sprintf("work tree %s, branch %s when this turn began", t.Root(cwd), branch)
	}
	return fmt.Sprintf("work tree %s, no branch when this turn began", t.Root(cwd))
}
