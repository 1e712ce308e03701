package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed demo_ledger_script.json
var demoLedgerScript []byte

const publishObjective = "Publish version 1.0 through the ledger server, exactly once, and write published.txt with the line `published: 1.0`."

// external is the second act: a call to an external MCP server whose outcome nobody can know, and a person who settles it.
func (d *demoRun) external() error {
	if !d.own {
		d.say("\nThe second act, with an external MCP server, is played with the demo's own script only.")
		return nil
	}
	script := filepath.Join(d.dir, "ledger-script.json")
	if err := os.WriteFile(script, demoLedgerScript, 0o600); err != nil {
		return fmt.Errorf("write the script: %w", err)
	}
	d.model = "scripted/" + script
	for _, a := range []*demoAgent{d.first, d.second} {
		a.end()
	}
	if err := d.publish(); err != nil {
		return fmt.Errorf("before the second kill: %w", err)
	}
	d.say("\nThe server has the call. kill -9 %d", d.first.pid())
	d.first.kill()
	if err := d.settle(); err != nil {
		return fmt.Errorf("after the second kill: %w", err)
	}
	return d.proveLedger()
}

func (d *demoRun) ledger() string {
	b, err := os.ReadFile(filepath.Join(d.dir, "ledger.log"))
	if err != nil {
		return ""
	}
	return string(b)
}

// open is a session with the ledger server, as an editor asks for it.
func (d *demoRun) open(a *demoAgent, method string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this binary: %w", err)
	}
	server := map[string]any{"name": "ledger", "command": self, "args": []string{demoServerName, filepath.Join(d.dir, "ledger.log")}, "env": []any{}}
	params := map[string]any{"cwd": d.work, "mcpServers": []any{server}}
	if method != "session/new" {
		params["sessionId"] = d.session
		return a.call(method, params, nil)
	}
	var s struct{ SessionID string }
	err = a.call(method, params, &s)
	d.session = s.SessionID
	return err
}

// publish sets the Goal through our own MCP server and waits until its call has reached the ledger.
func (d *demoRun) publish() (err error) {
	if d.first, err = d.launch(); err != nil {
		return err
	}
	d.say("\nSecond act. The editor launches the agent: process %d. Its session has an external MCP server, \"ledger\".", d.first.pid())
	if err := d.open(d.first, "session/new"); err != nil {
		return err
	}
	if err := d.createOverMCP(); err != nil {
		return err
	}
	d.say("Goal: %s", publishObjective)
	return d.first.until("the ledger has the call", func() (bool, error) {
		g, err := d.goal(d.first)
		if err == nil && g.Status != "active" {
			err = fmt.Errorf("the goal is %s: %s", g.Status, g.Reason)
		}
		return d.ledger() != "", err
	})
}

// createOverMCP is an MCP client of its own: it launches `holdfast mcp` and calls create_goal.
func (d *demoRun) createOverMCP() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this binary: %w", err)
	}
	cmd := exec.CommandContext(d.ctx, self, "mcp")
	cmd.Env = append(os.Environ(), "HOLDFAST_HOME="+d.home)
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("launch holdfast mcp: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("launch holdfast mcp: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("launch holdfast mcp: %w", err)
	}
	goal := map[string]any{"sessionId": d.session, "objective": publishObjective, "requirements": []any{
		map[string]any{"id": "note", "kind": "file", "path": "published.txt", "pattern": "published: 1\\.0", "text": "the note says what was published"}}}
	for _, m := range []map[string]any{
		{"id": 1, "method": "initialize", "params": map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
			"clientInfo": map[string]any{"name": "holdfast-demo", "version": version}}},
		{"method": "notifications/initialized"},
		{"id": 2, "method": "tools/call", "params": map[string]any{"name": "create_goal", "arguments": goal}},
	} {
		m["jsonrpc"] = "2.0"
		b, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("encode a message: %w", err)
		}
		if _, err := in.Write(append(b, '\n')); err != nil {
			break // it ended; the answer that is missing says so
		}
	}
	answer, err := answerTo(bufio.NewReader(out))
	if e := errors.Join(in.Close(), cmd.Wait()); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("create a goal through holdfast mcp: %w", err)
	}
	d.say("An MCP client sets a goal through `holdfast mcp`, process %d: %s. That process executes nothing and has ended.", cmd.Process.Pid, answer)
	return nil
}

// answerTo reads the answer to the call and says what became of it.
func answerTo(r *bufio.Reader) (string, error) {
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return "", fmt.Errorf("it ended before it answered: %w", err)
		}
		var m struct {
			ID     int `json:"id"`
			Result struct {
				IsError    bool `json:"isError"`
				Structured struct {
					Goal struct{ Status string } `json:"goal"`
				} `json:"structuredContent"`
			} `json:"result"`
			Error *struct{ Message string } `json:"error"`
		}
		if json.Unmarshal(line, &m) != nil || m.ID != 2 {
			continue
		}
		if m.Error != nil || m.Result.IsError {
			return "", fmt.Errorf("it refused: %s", strings.TrimSpace(string(line)))
		}
		return m.Result.Structured.Goal.Status, nil
	}
}

// settle launches the agent again. The goal goes on by itself as far as it may; then the user is asked, and says that it happened.
func (d *demoRun) settle() (err error) {
	if d.second, err = d.launch(); err != nil {
		return err
	}
	d.say("The editor launches the agent again: process %d. The session is not opened yet.", d.second.pid())
	if err := d.second.call("session/list", map[string]any{}, nil); err != nil {
		return err
	}
	err = d.second.until("the goal waits for the user", func() (bool, error) {
		g, err := d.goal(d.second)
		if err != nil {
			return false, err
		}
		if g.Status != "active" {
			return false, fmt.Errorf("the goal is %s: %s", g.Status, g.Reason)
		}
		return g.ReasonCode == "approval_pending", nil
	})
	if err != nil {
		return err
	}
	out, err := d.holdfast("effects", "list", "--unknown")
	if err != nil {
		return err
	}
	d.say("`holdfast effects list --unknown`:\n  %s", strings.ReplaceAll(strings.TrimSpace(out), "\n", "\n  "))
	d.say("The editor opens the session.")
	if err := d.open(d.second, "session/load"); err != nil {
		return err
	}
	return d.second.until("the goal ends", func() (bool, error) {
		g, err := d.goal(d.second)
		return g.Status != "active", err
	})
}

// holdfast runs this binary on the demo's store and returns what it printed.
func (d *demoRun) holdfast(args ...string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this binary: %w", err)
	}
	cmd := exec.CommandContext(d.ctx, self, args...)
	cmd.Env = append(os.Environ(), "HOLDFAST_HOME="+d.home)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("holdfast %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// proveLedger checks the second act against the ledger's own log and the store.
func (d *demoRun) proveLedger() error {
	g, err := d.goal(d.second)
	if err != nil {
		return err
	}
	d.say("\nGoal %s", g.Status)
	settled := ""
	for _, m := range g.History {
		if m.What == "request" {
			continue
		}
		d.say("  %s  %s", m.At.Local().Format("15:04:05.000"), m.line())
		if m.Kind == "mcp__ledger__publish" {
			settled += m.SettledBy + " "
		}
	}
	lines := strings.Count(d.ledger(), "\n")
	d.say("  ledger.log, the server's own: %d line(s), one for each call that reached it: %s", lines, strings.TrimSpace(d.ledger()))
	switch {
	case g.Status != "achieved":
		return fmt.Errorf("the goal is %s, not achieved: %s", g.Status, g.Reason)
	case lines != 1:
		return fmt.Errorf("the call reached the server %d times", lines)
	case settled != "person ":
		return fmt.Errorf("the call was made or settled as %q; want once, by a person", settled)
	}
	d.say("\nHolds: one call, sent once; its outcome was unknown, shown as that, and settled by a person before anything else was done.")
	return nil
}
