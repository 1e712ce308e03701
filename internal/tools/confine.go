package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"holdfast/internal/fault"
	"holdfast/internal/sandbox"
	"holdfast/session"
)

// Sandbox confines commands on this system. Its wall is looked for once, when the first command needs it.
type Sandbox struct {
	Which    session.ConfineWhen
	Network  bool     // confined commands may use it
	Writable []string // further folders that they may write
	StateDir string
	Home     string // of the user
	Env      []string

	once sync.Once
	self string
	wall sandbox.Wall
}

var _ session.Confiner = (*Sandbox)(nil)

// When says which commands are confined.
func (s *Sandbox) When() session.ConfineWhen {
	if s.Which == "" {
		return session.ConfineUnasked
	}
	return s.Which
}

// Wall is what confines commands here, proved.
func (s *Sandbox) Wall(ctx context.Context) sandbox.Wall {
	s.once.Do(func() {
		self, err := os.Executable()
		switch {
		case fault.NoWall():
			s.wall = sandbox.Wall{Reason: "the wall was taken away for a test"}
		case err != nil:
			s.wall = sandbox.Wall{Reason: "this program does not know its own file"}
		default:
			s.self, s.wall = self, sandbox.Probe(context.WithoutCancel(ctx), self)
		}
	})
	return s.wall
}

// Confine says what a command of a session is confined to.
func (s *Sandbox) Confine(ctx context.Context, of session.Session) (session.Confinement, error) {
	w := s.Wall(ctx)
	if w.Name == "" {
		return session.Confinement{}, fmt.Errorf("%w: %s", sandbox.ErrNone, w.Reason)
	}
	c := session.Confinement{Wall: w.Name, Network: s.Network, Limits: w.Limits()}
	state, err := filepath.EvalSymlinks(s.StateDir)
	if err != nil {
		return c, fmt.Errorf("%w: the state directory cannot be looked at", sandbox.ErrNone)
	}
	own := outermost(append(realRoots(session.ToolEnv{Cwd: of.Cwd, Roots: outermost(of.Roots)}), s.further()...))
	if err := sandbox.Confines(state, own); err != nil {
		return c, err
	}
	c.Hidden = append(s.secrets(), state)
	for _, dir := range own {
		for _, h := range c.Hidden {
			if _, in := below(dir, h); in {
				return c, fmt.Errorf("%w: %s lies in %s", sandbox.ErrNone, h, dir)
			}
		}
	}
	c.Writable = own
	for _, dir := range own {
		c.Writable = append(c.Writable, worktreeParts(dir)...)
	}
	c.Writable = append(c.Writable, s.temporary(own, state)...)
	c.Writable = append(c.Writable, s.private())
	return c, nil
}

// private is the one folder of the state directory that confined commands write: their caches, which no other command reads, and temporary files.
func (s *Sandbox) private() string {
	state := s.StateDir
	if real, err := filepath.EvalSymlinks(state); err == nil {
		state = real
	}
	return filepath.Join(state, "confined")
}
func (s *Sandbox) tmp() string   { return filepath.Join(s.private(), "tmp") }
func (s *Sandbox) cache() string { return filepath.Join(s.private(), "cache") }

// further are the folders that the configuration adds, links resolved.
func (s *Sandbox) further() (out []string) {
	for _, dir := range s.Writable {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = filepath.Join(s.Home, rest)
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil && filepath.IsAbs(real) {
			out = append(out, real)
		}
	}
	return out
}

// secrets are what a confined command cannot read: places for keys, our own configuration, and the sockets of services.
func (s *Sandbox) secrets() (out []string) {
	uid := fmt.Sprint(os.Getuid())
	list := []string{"/run/user/" + uid, "/run/docker.sock", "/run/podman"}
	for _, home := range s.homes() {
		list = append(append(list, sandbox.Secrets(home)...), filepath.Join(home, ".config", "holdfast"))
	}
	for _, p := range list {
		if real, err := filepath.EvalSymlinks(p); err == nil && !slices.Contains(out, real) {
			out = append(out, real)
		}
	}
	return out
}

// homes are the home directory of the user, and the one that commands get, which may be another.
func (s *Sandbox) homes() []string {
	out := []string{s.Home}
	for _, kv := range s.Env {
		if home, ok := strings.CutPrefix(kv, "HOME="); ok && filepath.IsAbs(home) && home != s.Home {
			out = append(out, home)
		}
	}
	return out
}

// temporary are the shared folders for temporary files, without those in which something lies that must not be replaced.
func (s *Sandbox) temporary(own []string, state string) (out []string) {
	kept := append(append([]string{state}, s.homes()...), own...)
	for _, dir := range sandbox.Temporary(s.Env) {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || slices.ContainsFunc(kept, func(k string) bool { _, in := below(real, k); return in }) {
			continue
		}
		out = append(out, real)
	}
	return out
}

// outermost leaves out folders that lie in others of the list: by name, before their links are resolved, because what lies in a folder that
// can be written may have been made a link.
func outermost(dirs []string) (out []string) {
	for i, d := range dirs {
		inside := func(o string) bool { _, in := below(o, d); return in && o != d }
		if !slices.ContainsFunc(dirs, inside) && !slices.Contains(dirs[:i], d) {
			out = append(out, d)
		}
	}
	return out
}

// worktreeParts are the folders of a git repository that a linked work tree of it writes. The pointer to them lies in the work tree, where
// anything may write, so it counts only when the repository points back from a place of its own.
func worktreeParts(dir string) []string {
	link := filepath.Join(dir, ".git")
	info, err := os.Lstat(link)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	b, err := os.ReadFile(link)
	if err != nil {
		return nil
	}
	own, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
	if !ok || !filepath.IsAbs(own) {
		return nil
	}
	if real, err := filepath.EvalSymlinks(own); err != nil || real != filepath.Clean(own) || filepath.Base(filepath.Dir(real)) != "worktrees" {
		return nil
	}
	if b, err = os.ReadFile(filepath.Join(own, "gitdir")); err != nil || strings.TrimSpace(string(b)) != link {
		return nil
	}
	common := filepath.Dir(filepath.Dir(filepath.Clean(own)))
	out := []string{filepath.Clean(own)}
	for _, part := range []string{"objects", "refs", "logs"} {
		path := filepath.Join(common, part)
		if real, err := filepath.EvalSymlinks(path); err == nil && real == path {
			out = append(out, path)
		}
	}
	return out
}

// caches are where programs keep what they can make again, by the variable that names the folder and its usual place below the home directory.
var caches = []struct{ name, usual, own string }{{"XDG_CACHE_HOME", ".cache", "xdg"}, {"GOCACHE", ".cache/go-build", "go-build"}, {"npm_config_cache", ".npm", "npm"}}

// reaching are variables that lead to services outside, which would act with the user's rights.
var reaching = []string{"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DOCKER_HOST",
	"CONTAINER_HOST", "DISPLAY", "WAYLAND_DISPLAY", "TMUX", "STY", "XAUTHORITY"}

// confinedEnv is the environment of a confined command: caches where it may write them, and no way to services outside.
func (s *Sandbox) confinedEnv(c session.Confinement, environ []string) []string {
	has := map[string]string{}
	var env []string
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !slices.Contains(reaching, name) {
			env, has[name] = append(env, kv), value
		}
	}
	mayWrite := func(dir string) bool {
		real, err := resolveLinks(dir)
		return err == nil && slices.ContainsFunc(c.Writable, func(w string) bool { _, in := below(w, real); return in })
	}
	set := func(name, value string) {
		env = append(slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }), name+"="+value)
	}
	for _, k := range caches {
		usual := has[k.name]
		if usual == "" {
			usual = filepath.Join(has["HOME"], k.usual)
		}
		if !filepath.IsAbs(usual) || !mayWrite(usual) {
			set(k.name, filepath.Join(s.cache(), k.own))
		}
	}
	tmp := has["TMPDIR"]
	if tmp == "" {
		tmp = "/tmp"
	}
	if !filepath.IsAbs(tmp) || !mayWrite(tmp) {
		set("TMPDIR", s.tmp())
	}
	set("HOLDFAST_CONFINED", c.Wall)
	return env
}

// wrap is how a plan's command is started: as it stands, or confined. What was to be confined and cannot be is not started.
func (s *Sandbox) wrap(ctx context.Context, pl session.Plan, argv, env []string) (sandbox.Command, []string, error) {
	if pl.Confined == nil {
		return sandbox.Command{Argv: argv}, env, nil
	}
	if s == nil {
		return sandbox.Command{}, nil, errors.New("it was to be confined, and nothing here does that")
	}
	if w := s.Wall(ctx); w.Name != pl.Confined.Wall {
		return sandbox.Command{}, nil, fmt.Errorf("it was to be confined by %s, which is not there any more", pl.Confined.Wall)
	}
	if err := errors.Join(os.MkdirAll(s.tmp(), 0o700), os.MkdirAll(s.cache(), 0o700)); err != nil {
		return sandbox.Command{}, nil, errors.New("it was to be confined, and no folder for its temporary files can be made")
	}
	c, err := s.wall.Wrap(s.self, sandbox.Spec{Writable: pl.Confined.Writable, Hidden: pl.Confined.Hidden, Network: pl.Confined.Network}, argv)
	if err != nil {
		return c, nil, err
	}
	return c, s.confinedEnv(*pl.Confined, env), nil
}

// confinedNote tells the model how a command ran, and after a failure what was closed to it.
func confinedNote(pl session.Plan, failed bool) string {
	c := pl.Confined
	switch {
	case c == nil:
		return ""
	case !failed:
		return "\n[it ran confined]"
	}
	network := "without a network"
	if c.Network {
		network = "with the network open"
	}
	return fmt.Sprintf("\n[it ran confined, %s, and could write only in %s; places for keys could not be read. If that is why it failed, say what it needs: "+
		"outside of this the user is asked.]", network, strings.Join(c.Writable, ", "))
}
