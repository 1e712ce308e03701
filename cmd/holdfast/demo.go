package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The demo drives this binary as an editor would, kills it in the middle of its work, and shows from the store's own records that the
// work went on. It checks everything it claims, and fails when something does not hold.

//go:embed demo_script.json
var demoScript []byte

const demoObjective = "Build the release exactly once with the command `echo build >> builds.log; sleep 2; echo built > artifact.txt; echo build finished`, " +
	"then write release.txt with the line `released: 1.0`."

// demo runs the main job in a temporary repository. Nothing of it is left afterwards.
func demo(ctx context.Context, model string) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "holdfast-demo-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	d := &demoRun{ctx: ctx, dir: dir, home: filepath.Join(dir, "state"), work: filepath.Join(dir, "work"), out: os.Stdout, model: model}
	defer func() { err = errors.Join(err, d.clean()) }()
	return d.run()
}

type demoRun struct {
	ctx              context.Context
	dir, home, work  string
	model            string
	out              io.Writer
	session          string
	scripted         bool
	first, second    *demoAgent
	firstPID, nowPID int
}

func (d *demoRun) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

func (d *demoRun) run() error {
	if err := d.prepare(); err != nil {
		return err
	}
	if err := d.begin(); err != nil {
		return fmt.Errorf("before the kill: %w", err)
	}
	d.say("\nkill -9 %d   (the agent, while its command runs)", d.firstPID)
	d.first.kill()
	if err := d.goOn(); err != nil {
		return fmt.Errorf("after the kill: %w", err)
	}
	return d.prove()
}

// prepare makes the repository and the model's script.
func (d *demoRun) prepare() error {
	if err := os.Mkdir(d.work, 0o755); err != nil {
		return fmt.Errorf("make the work tree: %w", err)
	}
	d.say("Holdfast %s: a goal that survives kill -9\n", version)
	if _, err := exec.LookPath("git"); err == nil {
		for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"-c", "user.name=demo", "-c", "user.email=demo@demo.invalid", "commit", "-q", "--allow-empty", "-m", "start"}} {
			cmd := exec.CommandContext(d.ctx, "git", args...)
			cmd.Dir = d.work
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("git %s: %w: %s", args[0], err, out)
			}
		}
		d.say("a temporary git repository: %s", d.work)
	} else {
		d.say("a temporary folder (git is not installed): %s", d.work)
	}
	if d.model == "" || strings.HasPrefix(d.model, "scripted/") {
		d.scripted = true
		if d.model == "" {
			script := filepath.Join(d.dir, "script.json")
			if err := os.WriteFile(script, demoScript, 0o600); err != nil {
				return fmt.Errorf("write the script: %w", err)
			}
			d.model = "scripted/" + script
		}
		d.say("the model is scripted: it plays a file; everything else is real")
	} else {
		d.say("the model is %s", d.model)
	}
	return nil
}

// begin sets the Goal and waits until its command runs.
func (d *demoRun) begin() (err error) {
	if d.first, err = d.launch(); err != nil {
		return err
	}
	d.firstPID = d.first.cmd.Process.Pid
	d.say("\nan editor launches the agent: process %d", d.firstPID)
	var s struct{ SessionID string }
	if err := d.first.call("session/new", map[string]any{"cwd": d.work, "mcpServers": []any{}}, &s); err != nil {
		return err
	}
	d.session = s.SessionID
	var g struct{ Goal demoGoal }
	err = d.first.call("create_goal", map[string]any{"sessionId": d.session, "objective": demoObjective, "requirements": []any{
		map[string]any{"id": "artifact", "kind": "command", "command": "test -s artifact.txt", "text": "the artifact exists"},
		map[string]any{"id": "note", "kind": "file", "path": "release.txt", "pattern": "released: 1\\.0", "text": "the note names the version"},
	}}, &g)
	if err != nil {
		return err
	}
	d.say("goal set: %s", demoObjective)
	for _, q := range g.Goal.Requirements {
		d.say("  requirement %-9s %s", q.ID, q.Kind)
	}
	return d.first.until("the command runs", func() (bool, error) {
		_, err := os.Stat(filepath.Join(d.work, "builds.log"))
		return err == nil, nil
	})
}

// goOn launches the agent again and waits for the Goal's end.
func (d *demoRun) goOn() (err error) {
	if d.second, err = d.launch(); err != nil {
		return err
	}
	d.nowPID = d.second.cmd.Process.Pid
	d.say("the editor launches the agent again: process %d; nobody opens the session", d.nowPID)
	if err := d.second.call("session/list", map[string]any{}, nil); err != nil {
		return err
	}
	seen := false
	err = d.second.until("the command's result arrives", func() (bool, error) {
		g, err := d.goal(d.second)
		if err != nil {
			return false, err
		}
		for _, m := range g.History {
			if m.Mode == "reconnect" && !seen {
				seen = true
				d.say("reconnected to the running command (%s)", m.Rule)
			}
			if m.Kind == "shell" && m.State == "settled" && strings.Contains(m.Title, "builds.log") {
				d.say("its exit code: %d, settled by its %s", deref(m.ExitCode), m.SettledBy)
				return true, nil
			}
		}
		return g.Status != "active", nil
	})
	if err != nil {
		return err
	}
	d.say("the editor opens the session; questions that waited are asked now")
	if err := d.second.call("session/load", map[string]any{"sessionId": d.session, "cwd": d.work, "mcpServers": []any{}}, nil); err != nil {
		return err
	}
	return d.second.until("the goal ends", func() (bool, error) {
		g, err := d.goal(d.second)
		return g.Status != "active", err
	})
}

func deref(n *int) int {
	if n == nil {
		return -1
	}
	return *n
}

// clean ends what the demo started and removes its folder.
func (d *demoRun) clean() error {
	for _, a := range []*demoAgent{d.first, d.second} {
		if a != nil {
			a.end()
		}
	}
	d.endCommands()
	return os.RemoveAll(d.dir)
}

// demoGoal is what the demo reads of a goal.
type demoGoal struct {
	Status, Phase, Reason, ReasonCode string
	Requirements                      []struct {
		ID, Kind, Text, Result, Reason, JudgedBy string
		Evidence                                 []string
	}
	Usage struct {
		InputTokens, OutputTokens int64
		UnknownRequests           int
	}
	ActiveSeconds struct {
		AtLeast int64
		Exact   bool
	}
	History []demoMoment
}

type demoMoment struct {
	At                                   time.Time
	What, Kind, State, Title, Mode, Rule string
	Effect, Fact, SettledBy, Digest      string
	Number, PID                          int
	Generation                           int64
	ExitCode                             *int
	InputTokens, OutputTokens            int64
}

func (d *demoRun) goal(a *demoAgent) (demoGoal, error) {
	var g struct{ Goal demoGoal }
	err := a.call("get_goal", map[string]any{"sessionId": d.session, "history": true}, &g)
	return g.Goal, err
}

// launch starts the agent as an editor does.
func (d *demoRun) launch() (*demoAgent, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this binary: %w", err)
	}
	cmd := exec.Command(self, "acp", "--model", d.model)
	cmd.Env = append(os.Environ(), "HOLDFAST_HOME="+d.home)
	a := &demoAgent{d: d, cmd: cmd, answers: map[int]json.RawMessage{}, ended: make(chan struct{}), changed: make(chan struct{}, 1)}
	if a.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = &a.errs
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("launch the agent: %w", err)
	}
	go a.read(out) // ends with the process
	return a, a.call("initialize", map[string]any{"protocolVersion": 1, "clientInfo": map[string]any{"name": "holdfast-demo", "version": version}}, nil)
}

// errText is what an agent wrote to stderr, for an error of the demo.
func errText(b *bytes.Buffer) string { return strings.TrimSpace(b.String()) }
