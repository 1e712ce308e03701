package session

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds of what is pinned besides what other packages add.
const (
	pinnedCalls = 500 // newest calls that are looked at for files
	pinnedFiles = 60
)

// pinned is what a compaction keeps of the records, whatever a summary says: what a Goal is about, what is unknown, what was asked, what is
// planned, and the files that were read or changed.
func (e *Engine) pinned(tx Tx, id SessionID) (string, error) {
	var parts []string
	if e.Hooks != nil {
		text, err := e.Hooks.Pinned(tx, id)
		if err != nil {
			return "", fmt.Errorf("collect what is pinned: %w", err)
		}
		parts = append(parts, text)
	}
	for _, part := range []func(Tx, SessionID) (string, error){pinnedEffects, pinnedQuestions, pinnedPlan, pinnedPaths} {
		text, err := part(tx, id)
		if err != nil {
			return "", fmt.Errorf("collect what is pinned: %w", err)
		}
		parts = append(parts, text)
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.TrimRight(strings.Join(parts, "\n"), "\n"), nil
}

func pinnedEffects(tx Tx, id SessionID) (string, error) {
	open, err := tx.OpenEffects(id)
	var b strings.Builder
	for _, ef := range open {
		if ef.Fact == FactUnknown {
			fmt.Fprintf(&b, "- %s: %s (call %s)\n", ef.Tool, shownLine(ef.Plan.Title), ef.ID)
		}
	}
	return under("Outcome unknown; never repeat these blindly:", &b), err
}

func pinnedQuestions(tx Tx, id SessionID) (string, error) {
	open, err := tx.OpenApprovals(id)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range open {
		if p.State != ApprovalPending {
			continue
		}
		ef, err := tx.Effect(p.Effect)
		if err != nil {
			return "", err
		}
		what := ef.Plan.Title
		if p.Question != "" {
			what = p.Question
		}
		fmt.Fprintf(&b, "- %s: %s\n", ef.Tool, shownLine(what))
	}
	return under("Questions that wait for the user's answer:", &b), nil
}

func pinnedPlan(tx Tx, id SessionID) (string, error) {
	plan, err := tx.PlanOf(id)
	var b strings.Builder
	for _, p := range plan {
		fmt.Fprintf(&b, "- %s: %s\n", p.Status, p.Content)
	}
	return under("The plan:", &b), err
}

// pinnedPaths lists files with the version that a call last left or saw, newest first.
func pinnedPaths(tx Tx, id SessionID) (string, error) {
	calls, err := tx.Effects(EffectFilter{Session: id}, time.Time{}, "", pinnedCalls)
	if err != nil {
		return "", err
	}
	seen := map[string]bool{}
	var b strings.Builder
	add := func(path, how string) {
		if !seen[path] && len(seen) < pinnedFiles {
			seen[path] = true
			fmt.Fprintf(&b, "- %s: %s\n", path, how)
		}
	}
	for _, ef := range calls {
		if ef.Fact != FactCompleted {
			continue
		}
		for _, f := range ef.Plan.Files {
			if f.After == Absent {
				add(f.Path, "removed")
			} else {
				add(f.Path, "changed, now "+f.After)
			}
		}
		if len(ef.Plan.Files) == 0 && ef.Tool == "read" {
			for _, p := range ef.Plan.Paths {
				add(p, "read, the result was "+ef.ResultDigest)
			}
		}
	}
	return under("Files read or changed, newest first:", &b), nil
}

// under puts lines below their heading; nothing below nothing.
func under(heading string, lines *strings.Builder) string {
	if lines.Len() == 0 {
		return ""
	}
	return heading + "\n" + lines.String()
}
