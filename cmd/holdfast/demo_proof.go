package main

import (
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
	d.say("\ngoal %s", g.Status)
	for _, q := range g.Requirements {
		d.say("  %-9s %-6s %s (judged by %s; evidence %s)", q.ID, q.Result, q.Reason, q.JudgedBy, shorten(strings.Join(q.Evidence, ", "), 60))
	}
	d.say("\ntimeline")
	for _, m := range g.History {
		d.say("  %s  %s", m.At.Local().Format("15:04:05.000"), m.line())
	}
	d.say("usage: %d tokens in, %d out; unknown for %d request(s); active for at least %d s", g.Usage.InputTokens, g.Usage.OutputTokens,
		g.Usage.UnknownRequests, g.ActiveSeconds.AtLeast)
	builds, err := os.ReadFile(filepath.Join(d.work, "builds.log"))
	if err != nil {
		return fmt.Errorf("read the build log: %w", err)
	}
	d.say("builds.log has %d line(s): the command ran once", strings.Count(string(builds), "\n"))
	return d.verify(g, strings.Count(string(builds), "\n"))
}

// verify fails when something the demo claims is not so. With a model that is not scripted only what does not depend on its choices counts.
func (d *demoRun) verify(g demoGoal, builds int) error {
	pids, reconnected := map[int]bool{}, false
	for _, m := range g.History {
		if m.What == "attempt" {
			pids[m.PID] = true
			reconnected = reconnected || m.Mode == "reconnect"
		}
	}
	switch {
	case g.Status != "achieved":
		return fmt.Errorf("the goal is %s, not achieved: %s", g.Status, g.Reason)
	case builds != 1 && d.scripted:
		return fmt.Errorf("the command ran %d times", builds)
	case !pids[d.firstPID] || !pids[d.nowPID]:
		return fmt.Errorf("the attempts do not name both processes %d and %d", d.firstPID, d.nowPID)
	case !reconnected:
		return fmt.Errorf("no attempt was a reconnect")
	}
	d.say("\nkilled once, done once: the goal went on by itself.")
	return nil
}

func (m demoMoment) line() string {
	switch m.What {
	case "attempt":
		s := fmt.Sprintf("attempt %d of the %s: %s, mode %s, process %d, generation %d", m.Number, m.Kind, m.State, m.Mode, m.PID, m.Generation)
		if m.Rule != "" {
			s += " [" + m.Rule + "]"
		}
		return s
	case "request":
		return fmt.Sprintf("  model request: %s, %d tokens in, %d out", m.State, m.InputTokens, m.OutputTokens)
	}
	s := fmt.Sprintf("  call %s: %s", m.Kind, shorten(m.Title, 60))
	if m.ExitCode != nil {
		s += fmt.Sprintf(", exit code %d", *m.ExitCode)
	}
	if m.Fact != "completed" {
		s += ", " + m.Fact
	}
	return s + fmt.Sprintf(", settled by %s, %s", m.SettledBy, shorten(m.Digest, 19))
}

func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
