package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// prove shows the timeline and checks every claim of the demo against the store and the files.
func (d *demoRun) prove() error {
	g, err := d.goal(d.second)
	if err != nil {
		return err
	}
	d.say("\nGoal %s", g.Status)
	for _, q := range g.Requirements {
		if q.Result != "met" {
			d.say("  %-10s %s", q.ID, q.Result)
			continue
		}
		d.say("  %-10s %s: %s (judged by %s; evidence %s)", q.ID, q.Result, q.Reason, d.judge(q), shorten(strings.Join(q.Evidence, ", "), 36))
	}
	d.say("\nTimeline, from the store")
	requests := 0
	for _, m := range g.History {
		if m.What == "request" {
			requests++
			continue
		}
		d.say("  %s  %s", m.At.Local().Format("15:04:05.000"), m.line())
	}
	exact := map[bool]string{true: "", false: "at least "}[g.ActiveSeconds.Exact]
	d.say("  usage: %d model requests, %d tokens in, %d out, unknown for %d; active for %s%d s", requests, g.Usage.InputTokens, g.Usage.OutputTokens,
		g.Usage.UnknownRequests, exact, g.ActiveSeconds.AtLeast)
	raw, err := os.ReadFile(filepath.Join(d.work, "builds.log"))
	if err != nil {
		return fmt.Errorf("read the build log: %w", err)
	}
	builds := strings.Count(string(raw), "\n")
	d.say("  builds.log: %d line(s), one for each time the command ran", builds)
	if problems := d.problems(g, builds); problems != nil {
		return fmt.Errorf("not everything that this demo claims holds: %w", errors.Join(problems...))
	}
	if builds == 1 {
		d.say("\nHolds: killed once, built once, and the goal went on by itself in another process.")
	} else {
		d.say("\nHolds: the goal went on by itself in another process, and no command was repeated but by the model's own new call.")
	}
	return nil
}

// judge names who decided a requirement, without the path of our own script.
func (d *demoRun) judge(q demoRequirement) string {
	if d.own && strings.HasPrefix(q.JudgedBy, "scripted/") {
		return "the scripted model"
	}
	return q.JudgedBy
}

// problems lists what the demo claims and what is not so. What depends on a model's own choices counts only with our own script.
func (d *demoRun) problems(g demoGoal, builds int) (all []error) {
	claim := func(holds bool, format string, args ...any) {
		if !holds {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	claim(g.Status == "achieved", "the goal is %s, not achieved: %s", g.Status, g.Reason)
	for _, q := range g.Requirements {
		claim(q.Result == "met" && len(q.Evidence) > 0, "requirement %s is %s with %d pieces of evidence", q.ID, q.Result, len(q.Evidence))
	}
	var before, after, over demoMoment // the killed attempt, the one that reconnected, the command between them
	commands := 0                      // calls that may have built
	for _, m := range g.History {
		switch {
		case m.What == "attempt" && m.PID == d.first.pid():
			before = m
		case m.What == "attempt" && m.PID == d.second.pid() && m.Mode == "reconnect":
			after = m
		case m.Effect != "" && m.Effect == d.killed:
			over = m
		}
		if m.What == "effect" {
			claim(m.State == "settled" && m.Fact != "unknown", "the outcome of %q is not known", m.Title)
			if m.Kind == "shell" && strings.Contains(m.Title, "builds.log") {
				commands++
			}
		}
	}
	claim(before.State == "interrupted", "process %d has no interrupted attempt", d.first.pid())
	claim(after.PID != 0, "process %d has no attempt that reconnected", d.second.pid())
	claim(after.Generation > before.Generation, "the generation did not rise: %d, then %d", before.Generation, after.Generation)
	claim(over.SettledBy == "receipt" && over.Digest != "", "the command's outcome does not come from its receipt but from %q", over.SettledBy)
	claim(builds >= 1 && builds <= commands, "the command ran %d times for %d calls", builds, commands)
	if d.own {
		claim(builds == 1, "the command ran %d times", builds)
		claim(over.code() == "0", "the command's exit code is %s", over.code())
		claim(g.Usage.InputTokens > 0 && g.Usage.UnknownRequests == 0, "the usage is not known")
	}
	return all
}
