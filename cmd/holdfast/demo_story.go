package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"holdfast/internal/proc"
)

// begin sets the Goal and waits until its command runs.
func (d *demoRun) begin() (err error) {
	if d.first, err = d.launch(); err != nil {
		return err
	}
	d.say("\nThe editor launches the agent: process %d.", d.first.pid())
	var s struct{ SessionID string }
	if err := d.first.call("session/new", map[string]any{"cwd": d.work, "mcpServers": []any{}}, &s); err != nil {
		return err
	}
	d.session = s.SessionID
	err = d.first.call("create_goal", map[string]any{"sessionId": d.session, "objective": demoObjective, "requirements": []any{
		map[string]any{"id": "artifact", "kind": "command", "command": "test -s artifact.txt", "text": "the artifact exists"},
		map[string]any{"id": "note", "kind": "file", "path": "release.txt", "pattern": "released: 1\\.0", "text": "the note names the version"},
	}}, nil)
	if err != nil {
		return err
	}
	d.say("Goal: %s", demoObjective)
	d.say("  It needs: the objective, as a review sees it; `test -s artifact.txt`; and release.txt with \"released: 1.0\".")
	return d.first.until("the command runs", func() (bool, error) {
		g, err := d.goal(d.first)
		if err != nil {
			return false, err
		}
		for _, m := range g.History {
			if m.What == "effect" && m.Kind == "shell" && m.State == "dispatched" && d.has("builds.log") {
				d.killed = m.Effect
				return true, nil
			}
		}
		if g.Status != "active" || d.has("artifact.txt") {
			return false, fmt.Errorf("there was no running command to kill the agent over; the goal is %s: %s", g.Status, g.Reason)
		}
		return false, nil
	})
}

// killOver kills the agent and sees that its command goes on.
func (d *demoRun) killOver() (err error) {
	d.say("\nThe command runs. kill -9 %d", d.first.pid())
	d.first.kill()
	var s proc.State
	for s, err = d.command().State(); err == nil && s.Verdict == proc.Live && s.Command.PID == 0; s, err = d.command().State() {
		time.Sleep(5 * time.Millisecond) // its supervisor is about to write down who it is
	}
	if err != nil {
		return fmt.Errorf("look at the command: %w", err)
	}
	if s.Verdict != proc.Live || d.has("artifact.txt") {
		return fmt.Errorf("the command did not outlive its agent (%s), or ended before it", s.Verdict)
	}
	d.say("The agent is gone. Its command goes on (process %d, watched by %d).", s.Command.PID, s.Supervisor.PID)
	return nil
}

func (d *demoRun) command() *proc.Handle { return proc.Open(filepath.Join(d.home, "calls", d.killed)) }

// goOn launches the agent again and waits for the Goal's end.
func (d *demoRun) goOn() (err error) {
	if d.second, err = d.launch(); err != nil {
		return err
	}
	d.say("The editor launches the agent again: process %d. It lists its sessions and opens none.", d.second.pid())
	if err := d.second.call("session/list", map[string]any{}, nil); err != nil {
		return err
	}
	began, seen := time.Now(), false
	err = d.second.until("the command's result arrives", func() (bool, error) {
		g, err := d.goal(d.second)
		if err != nil {
			return false, err
		}
		for _, m := range g.History {
			switch {
			case m.Mode == "reconnect" && !seen:
				seen = true
				d.say("Reconnected to the running command. [%s]", m.Rule)
			case m.Effect == d.killed && m.State == "settled":
				d.say("Its exit code arrives after %.1f s: %s, from its %s.", time.Since(began).Seconds(), m.code(), m.SettledBy)
				return true, nil
			}
		}
		if g.Status != "active" {
			return false, fmt.Errorf("the goal is %s before the command has a result: %s", g.Status, g.Reason)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	d.say("The editor opens the session; what waited for an answer is asked now.")
	if err := d.second.call("session/load", map[string]any{"sessionId": d.session, "cwd": d.work, "mcpServers": []any{}}, nil); err != nil {
		return err
	}
	return d.second.until("the goal ends", func() (bool, error) {
		g, err := d.goal(d.second)
		return g.Status != "active", err
	})
}

func (d *demoRun) has(name string) bool {
	_, err := os.Stat(filepath.Join(d.work, name))
	return err == nil
}
