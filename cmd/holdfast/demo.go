package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"holdfast/internal/keys"
	"holdfast/internal/provider"
)

// The demo drives this binary as an editor would, kills it in the middle of its work, and shows from the store's own records that the
// work went on. It checks everything it claims, and fails when something does not hold.

//go:embed demo_script.json
var demoScript []byte

// demoCommand leaves its mark in builds.log at once and artifact.txt three seconds later: between them it is killed over.
const (
	demoCommand   = "echo build >> builds.log; sleep 3; echo built > artifact.txt; echo build finished"
	demoObjective = "Build the release exactly once with the one shell command `" + demoCommand + "`, then write release.txt with the line `released: 1.0`."
)

// demo runs the main job in a temporary repository. Nothing of it is left afterwards.
func demo(ctx context.Context, model string) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a reader that went away must not keep the demo from cleaning up
	if model != "" {                                        // before there is anything to clean up
		handKeys()
		if _, err := provider.Check(provider.Config{Model: model, Getenv: os.Getenv}); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "holdfast-demo-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	d := &demoRun{ctx: ctx, dir: dir, home: filepath.Join(dir, "state"), work: filepath.Join(dir, "work"), out: os.Stdout, model: model}
	err = d.run()
	left := d.clean()
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if err != nil || left != nil {
		return errors.Join(err, left)
	}
	d.say("Nothing of the demo is left: no process, and no folder.")
	return nil
}

// handKeys puts keys that setup has kept into the environment of the demo, whose processes have a state directory of their own.
func handKeys() {
	home, err := homeDir()
	if err != nil {
		return // then there are none
	}
	for _, name := range keys.Variables {
		if v := secretsOf(home).getenv(name); v != "" {
			_ = os.Setenv(name, v) // the name is valid
		}
	}
}

// demoRun is one demo. Everything but say belongs to the goroutine that runs it.
type demoRun struct {
	ctx             context.Context
	dir, home, work string
	model           string
	out             io.Writer
	own             bool // the model plays our own script, so that every step is known
	scripted        bool
	session         string
	first, second   *demoAgent
	killed          string // the effect over which the first agent was killed
}

// say prints whole lines; both the run and its agents' readers do.
func (d *demoRun) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

func (d *demoRun) run() error {
	if err := d.prepare(); err != nil {
		return err
	}
	if err := d.begin(); err != nil {
		return fmt.Errorf("before the kill: %w", err)
	}
	if err := d.killOver(); err != nil {
		return fmt.Errorf("the kill: %w", err)
	}
	if err := d.goOn(); err != nil {
		return fmt.Errorf("after the kill: %w", err)
	}
	if err := d.prove(); err != nil {
		return err
	}
	return d.external()
}

// prepare makes the repository and the model's script.
func (d *demoRun) prepare() error {
	if err := os.Mkdir(d.work, 0o755); err != nil {
		return fmt.Errorf("make the work tree: %w", err)
	}
	d.say("Holdfast %s: a goal that survives kill -9\n", version)
	if _, err := exec.LookPath("git"); err != nil {
		d.say("Git is not installed; a plain temporary folder: %s", d.work)
	} else {
		if err := d.git(); err != nil {
			return err
		}
		d.say("A temporary git repository: %s", d.work)
	}
	d.own = d.model == ""
	d.scripted = d.own || provider.IsScripted(d.model)
	if d.own {
		script := filepath.Join(d.dir, "script.json")
		if err := os.WriteFile(script, demoScript, 0o600); err != nil {
			return fmt.Errorf("write the script: %w", err)
		}
		d.model = "scripted/" + script
	}
	if d.scripted {
		d.say("The model is scripted: it plays a file, without key or network. All else is real: agent, kill, command, store.")
	} else {
		d.say("The model is %s. Its commands run in that folder, as you; the demo allows each of them once.", d.model)
	}
	return nil
}

// git makes an empty history, whatever the user's own configuration of git is.
func (d *demoRun) git() error {
	env := []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GIT_") {
			env = append(env, kv)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=demo", "-c", "user.email=demo@demo.invalid", "commit", "-q", "--allow-empty", "-m", "start"}} {
		cmd := exec.CommandContext(d.ctx, "git", args...)
		cmd.Dir, cmd.Env = d.work, env
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}
