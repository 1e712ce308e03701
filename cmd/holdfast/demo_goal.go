package main

import (
	"fmt"
	"time"

	"holdfast/goals"
	"holdfast/session"
)

// demoGoal is what the demo reads of a goal. It has the editor's view only: the members of get_goal.
type demoGoal struct {
	Status, Phase, Reason, ReasonCode string
	Requirements                      []demoRequirement
	Usage                             struct {
		InputTokens, OutputTokens int64
		UnknownRequests           int
	}
	ActiveSeconds struct {
		AtLeast int64
		Exact   bool
	}
	History []demoMoment
}

type demoRequirement struct {
	ID, Kind, Result, Reason, JudgedBy string
	Evidence                           []string
}

// demoMoment is one line of the timeline: an attempt, a model request, or an effect.
type demoMoment struct {
	At                                   time.Time
	What, Kind, State, Title, Mode, Rule string
	Effect, Fact, SettledBy, Digest      string
	Number, PID                          int
	Generation                           int64
	InputTokens, OutputTokens            int64
	ExitCode                             *int
}

func (d *demoRun) goal(a *demoAgent) (demoGoal, error) {
	var g struct{ Goal demoGoal }
	err := a.call("get_goal", map[string]any{"sessionId": d.session, "history": true}, &g)
	return g.Goal, err
}

func (m demoMoment) code() string {
	if m.ExitCode == nil {
		return "none"
	}
	return fmt.Sprint(*m.ExitCode)
}

// momentOf is the same of a goal that this process has read itself.
func momentOf(m goals.Moment) demoMoment {
	return demoMoment{At: m.At, What: m.What, Kind: m.Kind, State: m.State, Title: m.Title, Mode: m.Mode, Rule: m.Rule, Effect: string(m.Effect),
		Fact: string(m.Fact), SettledBy: m.SettledBy, Digest: m.Digest, Number: m.Number, PID: m.PID, Generation: m.Generation, InputTokens: m.Input,
		OutputTokens: m.Output, ExitCode: m.ExitCode}
}

func (m demoMoment) line() string {
	if m.What == "request" {
		switch {
		case m.State == string(session.RequestStarted):
			return "  request to " + line(m.Kind, 60) + "; no answer yet"
		case m.State == string(session.RequestUnknown):
			return "  request to " + line(m.Kind, 60) + "; usage unknown"
		}
		return fmt.Sprintf("  request to %s; %d tokens in, %d out", line(m.Kind, 60), m.InputTokens, m.OutputTokens)
	}
	if m.What == "attempt" {
		s := fmt.Sprintf("%s, attempt %d: %s; %s in process %d, generation %d", m.Kind, m.Number, m.State, m.Mode, m.PID, m.Generation)
		if m.Rule != "" {
			s += " [" + m.Rule + "]"
		}
		return s
	}
	s := fmt.Sprintf("  %s: %s", m.Kind, line(m.Title, 44))
	if m.ExitCode != nil {
		s += "; exit code " + m.code()
	}
	if m.State == "settled" && m.Fact != "completed" {
		s += "; " + m.Fact
	}
	if m.State != "settled" {
		return s + "; " + m.State
	}
	return s + fmt.Sprintf("; settled by %s; %s", m.SettledBy, shorten(m.Digest, 19))
}

func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
