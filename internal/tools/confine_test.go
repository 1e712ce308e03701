package tools

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/sandbox"
	"holdfast/session"
)

// boxed is a sandbox with a wall that nobody proved: what it would say, not what it would do.
func boxed(t *testing.T) (s *Sandbox, work string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s = &Sandbox{StateDir: filepath.Join(dir, "home", "state"), Home: filepath.Join(dir, "home"), Env: []string{"HOME=" + filepath.Join(dir, "home")}}
	s.once.Do(func() { s.wall = sandbox.Wall{Name: "landlock", ABI: 7, Namespace: true} })
	work = filepath.Join(dir, "home", "work")
	for _, d := range []string{s.StateDir, work, filepath.Join(s.Home, ".ssh")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s, work
}

func TestSandbox_WhereThereIsNone(t *testing.T) {
	s, work := boxed(t)
	for dir, ok := range map[string]bool{work: true, s.Home: false, s.StateDir: false, filepath.Join(s.Home, ".ssh"): false, "/": false} {
		c, err := s.Confine(t.Context(), session.Session{Cwd: dir, Roots: []string{dir}})
		if (err == nil) != ok || err != nil && !errors.Is(err, sandbox.ErrNone) {
			t.Errorf("%s: %+v, %v", dir, c, err)
		}
		if ok && (!slices.Contains(c.Writable, work) || !slices.Contains(c.Hidden, s.StateDir) || !slices.Contains(c.Hidden, filepath.Join(s.Home, ".ssh")) || c.Network) {
			t.Errorf("%s: %+v", dir, c)
		}
		if ok && slices.Contains(c.Writable, os.TempDir()) {
			t.Errorf("%s: the folder that it lies in can be written: %+v", dir, c)
		}
	}
}

// A folder that lies in a writable one may be a link by now: it opens nothing of its own.
func TestSandbox_NestedRootsOpenNothing(t *testing.T) {
	s, work := boxed(t)
	if err := os.Symlink(s.Home, filepath.Join(work, "sub")); err != nil {
		t.Fatal(err)
	}
	c, err := s.Confine(t.Context(), session.Session{Cwd: work, Roots: []string{work, filepath.Join(work, "sub")}})
	if err != nil || slices.Contains(c.Writable, s.Home) {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestSandbox_WorktreePointers(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, common := filepath.Join(dir, "work"), filepath.Join(dir, "repo", ".git")
	own := filepath.Join(common, "worktrees", "w")
	write := func(path, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(work, ".git"), "gitdir: "+own+"\n")
	write(filepath.Join(own, "gitdir"), filepath.Join(work, ".git")+"\n")
	write(filepath.Join(common, "objects", "x"), "")
	write(filepath.Join(common, "refs", "x"), "")
	want := []string{own, filepath.Join(common, "objects"), filepath.Join(common, "refs")}
	if got := worktreeParts(work); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	target := filepath.Join(dir, "precious")
	write(filepath.Join(target, "x"), "")
	for _, c := range []struct {
		name  string
		spoil func()
	}{
		{"objects are a link", func() {
			_ = os.RemoveAll(filepath.Join(common, "objects"))
			_ = os.Symlink(target, filepath.Join(common, "objects"))
		}},
		{"it points back elsewhere", func() { write(filepath.Join(own, "gitdir"), filepath.Join(dir, "other", ".git")+"\n") }},
		{"a place of another shape", func() { write(filepath.Join(work, ".git"), "gitdir: "+target+"\n") }},
		{"a relative one", func() { write(filepath.Join(work, ".git"), "gitdir: ../repo/.git/worktrees/w\n") }},
		{"a link", func() { _ = os.Remove(filepath.Join(work, ".git")); _ = os.Symlink(own, filepath.Join(work, ".git")) }},
	} {
		c.spoil()
		if got := worktreeParts(work); slices.ContainsFunc(got, func(p string) bool { return strings.HasPrefix(realPath(p), target) }) ||
			c.name != "objects are a link" && len(got) > 0 {
			t.Errorf("%s: it opens %q", c.name, got)
		}
	}
}

func TestSandbox_Environment(t *testing.T) {
	s, work := boxed(t)
	c, err := s.Confine(t.Context(), session.Session{Cwd: work, Roots: []string{work}})
	if err != nil {
		t.Fatal(err)
	}
	environ := append(s.Env, "PATH=/bin", "SSH_AUTH_SOCK=/x", "DBUS_SESSION_BUS_ADDRESS=y", "GOCACHE="+filepath.Join(work, "cache"), "TMPDIR=/nowhere")
	env := "\n" + strings.Join(s.confinedEnv(c, environ), "\n") + "\n"
	for _, want := range []string{"PATH=/bin", "GOCACHE=" + filepath.Join(work, "cache"), "TMPDIR=" + s.tmp(), "XDG_CACHE_HOME=" + filepath.Join(s.cache(), "xdg")} {
		if strings.Count(env, "\n"+want+"\n") != 1 {
			t.Errorf("no %s in %s", want, env)
		}
	}
	if strings.Contains(env, "SSH_AUTH_SOCK") || strings.Contains(env, "DBUS") {
		t.Errorf("a way out is left in %s", env)
	}
}

// What was to be confined and cannot be is not started.
func TestShell_ConfinedOrNotStarted(t *testing.T) {
	b := newBench(t)
	pl := b.plan("shell", args{"command": "touch ran"})
	pl.Confined = &session.Confinement{Wall: "landlock", Writable: []string{b.env.Cwd}}
	for name, s := range map[string]*Sandbox{"nothing": nil, "no wall": {}, "another wall": {wall: sandbox.Wall{Name: "bubblewrap"}}} {
		if s != nil {
			s.once.Do(func() {})
		}
		b.opt.Sandbox = s
		_, err := b.tool("shell").Run(t.Context(), b.env, pl, func(session.Output) {})
		var ns *session.NotStartedError
		if !errors.As(err, &ns) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(b.path("ran")); err == nil {
			t.Errorf("%s: it ran", name)
		}
	}
}

// The words of a command are held against what is really there.
func TestShell_ReachFollowsLinks(t *testing.T) {
	b := newBench(t)
	away := t.TempDir()
	if err := os.Symlink(away, b.path("link")); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]session.Reach{"cat a": session.ReachReads, "cat link/a": session.ReachWorks, "echo > link/a": session.ReachOutside,
		"cat " + b.opt.StateDir + "/db": session.ReachOutside, "cat .env": session.ReachOutside, "cat id_rsa.pub": session.ReachReads,
		fmt.Sprintf("cat %s/x", away): session.ReachWorks} {
		if pl := b.plan("shell", args{"command": line}); pl.Reach != want {
			t.Errorf("%s: %q because of %q, want %q", line, pl.Reach, pl.Decides, want)
		}
	}
}
