//go:build unix

package client

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/ident"
)

// inherits are the names a child gets from our environment. Everything else it needs is configured.
var inherits = []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "TMPDIR"}

// child is one process with its group. The goroutine that started it belongs to its thread for as long as the child lives: the
// parent-death signal is sent when that thread ends. It also waits for the child and ends what the child leaves in its group.
type child struct {
	self           ident.Process
	stdin          *os.File
	stdout, stderr *os.File
	limits         Limits

	exited chan struct{} // the leader has ended; its number is still taken
	status string        // how, set before exited is closed
	ended  chan struct{} // nothing of the group is left

	mu     sync.Mutex
	reaped bool // the number of the group may belong to others
}

// spawn launches the server. After an error there is no process.
func spawn(cfg Config, o Options, l Limits) (*child, error) {
	cmd, err := command(cfg, o.Tag)
	if err != nil {
		return nil, err
	}
	c := &child{limits: l, exited: make(chan struct{}), ended: make(chan struct{})}
	theirs, err := c.pipes()
	if err != nil {
		return nil, fmt.Errorf("make its pipes: %w", err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	if err := announce(o.Children, record{Tag: o.Tag}); err != nil {
		closeAll(append(theirs, c.stdin, c.stdout, c.stderr)...)
		return nil, err
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			err = c.register(cmd, o)
		}
		started <- err
		if err == nil {
			c.attend(cmd)
		}
	}()
	err = <-started
	closeAll(theirs...)
	if err != nil {
		closeAll(c.stdin, c.stdout, c.stderr)
		return nil, err
	}
	return c, nil
}

// command builds the child's command. The program is looked up in the child's own PATH.
func command(cfg Config, tag string) (*exec.Cmd, error) {
	env := environment(cfg.Env, tag)
	path, err := lookup(cfg.Command, cfg.Dir, env)
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{Path: path, Args: append([]string{cfg.Command}, cfg.Args...), Env: env, Dir: cfg.Dir, SysProcAttr: ownGroup()}, nil
}

// Lookup tells why the program of a server cannot be found where a start would look for it. It starts nothing.
func Lookup(cfg Config) error {
	_, err := lookup(cfg.Command, cfg.Dir, environment(cfg.Env, ""))
	return err
}

func environment(configured []string, tag string) []string {
	var env []string
	for _, name := range inherits {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	env = append(env, configured...) // of two with one name the last counts
	if tag != "" {
		env = append(env, tagName+"="+tag)
	}
	return env
}

// errCommand: trying again does not help.
var errCommand = errors.New("the command cannot be started")

func lookup(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		return path, runnable(path)
	}
	search := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v
		}
	}
	for _, d := range filepath.SplitList(search) {
		if path := filepath.Join(d, name); filepath.IsAbs(d) && runnable(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: %s is not in the PATH", errCommand, name)
}

func runnable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errCommand, err)
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fmt.Errorf("%w: %s is not a program", errCommand, path)
	}
	return nil
}

// pipes makes the three pipes and returns the child's ends.
func (c *child) pipes() (theirs []*os.File, err error) {
	all := make([]*os.File, 0, 6)
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(all...)
			return nil, err
		}
		all = append(all, r, w)
	}
	c.stdin, c.stdout, c.stderr = all[1], all[2], all[4]
	return []*os.File{all[0], all[3], all[5]}, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close() // a pipe has nothing to lose
	}
}

// register makes the child known to a later Sweep. A child that cannot be is not kept.
func (c *child) register(cmd *exec.Cmd, o Options) error {
	self, err := ident.Start(cmd.Process.Pid)
	if errors.Is(err, ident.ErrGone) { // it has ended already; there is nothing to find later but its group
		self, err = ident.Process{PID: cmd.Process.Pid}, nil
	}
	if err == nil {
		err = announce(o.Children, record{Process: self, Tag: o.Tag})
	}
	if err != nil {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		_ = cmd.Wait() // killed
		return fmt.Errorf("note its process: %w", err)
	}
	c.self = self
	return nil
}

// attend waits for the leader, then ends what it left in its group, and only then gives its number back: until then the number of the
// group is nobody else's.
func (c *child) attend(cmd *exec.Cmd) {
	c.status = awaitExit(c.self.PID)
	close(c.exited)
	c.clear()
	c.mu.Lock()
	c.reaped = true
	_ = cmd.Wait() // its status is known
	c.mu.Unlock()
	close(c.ended)
}

// clear ends the rest of the group.
func (c *child) clear() {
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		end := time.Now().Add(c.limits.Term)
		for others(c.self.PID) {
			c.signal(sig)
			if time.Now().After(end) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// signal reaches the group while its number is ours.
func (c *child) signal(sig unix.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		_ = unix.Kill(-c.self.PID, sig) // it may be empty
	}
}

// end stops the server: closed stdin, SIGTERM, SIGKILL, and what went out of the group meanwhile.
func (c *child) end() {
	strays, _ := ident.Descendants(c.self.PID) // the group is reached without
	_ = c.stdin.Close()
	if !within(c.ended, c.limits.EOF) {
		c.signal(unix.SIGTERM)
		if !within(c.ended, c.limits.Term) {
			c.signal(unix.SIGKILL)
			within(c.ended, 2*c.limits.Term+time.Second) // only a process that the kernel holds takes longer
		}
	}
	for _, p := range strays {
		_ = ident.Signal(p, unix.SIGKILL) // most are gone
	}
	closeAll(c.stdout, c.stderr) // somebody who left the group may still hold the other ends
}

// kill ends a server that is not worth waiting for.
func (c *child) kill() { c.signal(unix.SIGKILL) }

// drain reads stderr to its end, whoever wants it: a full pipe would stop the server.
func (c *child) drain(to io.Writer) { _, _ = io.Copy(to, c.stderr) }
