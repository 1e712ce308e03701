package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Main(os.Args)
	if len(os.Args) == 3 && os.Args[1] == "dial" {
		c, err := net.DialTimeout("tcp", os.Args[2], 2*time.Second)
		if err != nil {
			fmt.Println("closed")
			os.Exit(0)
		}
		_ = c.Close()
		fmt.Println("open")
		os.Exit(0)
	}
	if len(os.Args) == 2 && os.Args[1] == "loop" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err == nil {
			var c net.Conn
			if c, err = net.Dial("tcp", l.Addr().String()); err == nil {
				_ = c.Close()
			}
		}
		fmt.Println(err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// walls returns what this system has, each proved.
func walls(t *testing.T) []Wall {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var list []Wall
	w := Probe(t.Context(), self)
	if w.Name == "" {
		t.Skipf("no wall here: %s; on a Linux with Landlock or bubblewrap this runs with go test ./internal/sandbox", w.Reason)
	}
	list = append(list, w)
	if w.Name == "landlock" && w.Namespace {
		w.Namespace = false
		list = append(list, w)
	}
	if p, err := exec.LookPath("bwrap"); err == nil && list[0].Name != "bubblewrap" {
		if b := (Wall{Name: "bubblewrap", program: p}); prove(t.Context(), self, b) == nil {
			list = append(list, b)
		}
	}
	return list
}

// run runs argv confined and returns what it printed.
func run(t *testing.T, w Wall, s Spec, argv ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := w.Wrap(self, s, argv)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if c.OwnNetwork {
		NetworkFlags(cmd.SysProcAttr, os.Getuid(), os.Getgid())
	}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func each(t *testing.T, f func(t *testing.T, w Wall)) {
	for _, w := range walls(t) {
		t.Run(fmt.Sprintf("%s namespace=%v", w.Name, w.Namespace), func(t *testing.T) { f(t, w) })
	}
}

func TestWall_WritesOnlyInside(t *testing.T) {
	each(t, func(t *testing.T, w Wall) {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
		for _, d := range []string{in, out} {
			if err := os.Mkdir(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(out, "kept"), []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(out, filepath.Join(in, "link")); err != nil {
			t.Fatal(err)
		}
		s := Spec{Writable: []string{in}}
		attacks := map[string]string{
			"new file":     `echo x >"$2/new"`,
			"overwrite":    `echo x >"$2/kept"`,
			"append":       `echo x >>"$2/kept"`,
			"delete":       `rm -f "$2/kept"`,
			"rename":       `mv "$2/kept" "$1/"`,
			"through link": `echo x >"$1/link/new"`,
			"hard link":    `ln "$2/kept" "$1/hard" && echo x >>"$1/hard"`,
			"mkdir":        `mkdir "$2/new"`,
			"chmod link":   `ln -s "$1" "$2/new"`,
			"truncate":     `: >"$2/kept"`,
		}
		for name, script := range attacks {
			_, _ = run(t, w, s, "/bin/sh", "-c", script, "sh", in, out)
			entries, err := os.ReadDir(out)
			if err != nil || len(entries) != 1 {
				t.Fatalf("%s: the outside holds %v, %v", name, entries, err)
			}
			if b, err := os.ReadFile(filepath.Join(out, "kept")); err != nil || string(b) != "kept" {
				t.Fatalf("%s: the file outside holds %q, %v", name, b, err)
			}
		}
		if got, err := run(t, w, s, "/bin/sh", "-c", `echo inside >"$1/f" && mkdir "$1/d" && mv "$1/f" "$1/d/g" && cat "$1/d/g" "$2/kept"`, "sh", in, out); err != nil || got != "inside\nkept" {
			t.Errorf("work inside, reading outside = %q, %v", got, err)
		}
	})
}

func TestWall_HidesSecrets(t *testing.T) {
	each(t, func(t *testing.T, w Wall) {
		home := t.TempDir()
		key, note := filepath.Join(home, ".ssh", "id"), filepath.Join(home, "note")
		if err := os.Mkdir(filepath.Dir(key), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{key, note, filepath.Join(home, ".netrc")} {
			if err := os.WriteFile(f, []byte("text of "+filepath.Base(f)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := Spec{Hidden: Secrets(home)}
		if len(s.Hidden) != 2 {
			t.Fatalf("hidden = %q", s.Hidden)
		}
		got, _ := run(t, w, s, "/bin/sh", "-c", `cat "$1/note" "$1/.ssh/id" "$1/.netrc" 2>/dev/null`, "sh", home)
		if got != "text of note" {
			t.Errorf("it read %q", got)
		}
	})
}

// What other processes of the user have in their environment may be secret.
func TestWall_HidesOtherProcesses(t *testing.T) {
	each(t, func(t *testing.T, w Wall) {
		script := fmt.Sprintf("cat /proc/%d/environ 2>/dev/null | wc -c; kill -0 %d 2>/dev/null && echo reached", os.Getpid(), os.Getpid())
		for _, open := range []bool{false, true} {
			if got, _ := run(t, w, Spec{Network: open}, "/bin/sh", "-c", script); got != "0" {
				t.Errorf("network %v: of this process it sees %q", open, got)
			}
		}
	})
}

// What may be written can lie in what is hidden.
func TestWall_OpensAFolderInAHiddenOne(t *testing.T) {
	each(t, func(t *testing.T, w Wall) {
		state := t.TempDir()
		own := filepath.Join(state, "own")
		if err := errors.Join(os.Mkdir(own, 0o700), os.WriteFile(filepath.Join(state, "db"), []byte("records"), 0o600)); err != nil {
			t.Fatal(err)
		}
		s := Spec{Writable: []string{own}, Hidden: []string{state}}
		got, err := run(t, w, s, "/bin/sh", "-c", `echo mine >"$1/own/f" && cat "$1/own/f"; cat "$1/db" 2>/dev/null; echo x 2>/dev/null >"$1/new"; true`, "sh", state)
		if err != nil || got != "mine" {
			t.Errorf("it reads %q, %v", got, err)
		}
		if _, err := os.Stat(filepath.Join(state, "new")); err == nil {
			t.Error("it wrote into what is hidden")
		}
	})
}

func TestWall_Network(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, w Wall) {
		if w.Limits() == "the network stays open: this kernel cannot close it" {
			t.Skip("this kernel cannot close the network; on one with Landlock 4 or user namespaces this runs with go test ./internal/sandbox")
		}
		if got, err := run(t, w, Spec{}, self, "dial", l.Addr().String()); got != "closed" {
			t.Errorf("without a network: %q, %v", got, err)
		}
		if got, err := run(t, w, Spec{Network: true}, self, "dial", l.Addr().String()); got != "open" {
			t.Errorf("with a network: %q, %v", got, err)
		}
		if got, err := run(t, w, Spec{}, self, "loop"); w.Namespace && got != "<nil>" {
			t.Errorf("a server and its client in one command: %q, %v", got, err)
		}
	})
}

func TestWall_KeepsExitCodeAndArguments(t *testing.T) {
	each(t, func(t *testing.T, w Wall) {
		got, err := run(t, w, Spec{}, "/bin/sh", "-c", `printf '%s|' "$@"; exit 7`, "sh", "a b", "--", "", "$HOME")
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 7 || got != "a b|--||$HOME|" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestWall_CannotSignalOthers(t *testing.T) {
	each(t, func(t *testing.T, w Wall) {
		if w.Name != "landlock" || w.ABI < 6 {
			t.Skip("this wall lets signals through; with Landlock 6 this runs with go test ./internal/sandbox")
		}
		if got, _ := run(t, w, Spec{}, "/bin/sh", "-c", fmt.Sprintf("kill -0 %d 2>/dev/null && echo reached", os.Getpid())); got != "" {
			t.Errorf("it reached this process: %q", got)
		}
	})
}

func TestWrap_WithoutAWall(t *testing.T) {
	_, err := Wall{Reason: "nothing here"}.Wrap("self", Spec{}, []string{"true"})
	if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "nothing here") {
		t.Errorf("err = %v", err)
	}
}

func TestHelper_RefusesWhatItCannotConfine(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(t.TempDir(), "mark")
	cmd := exec.CommandContext(context.Background(), self, hiddenName, "{", "/bin/sh", "-c", "touch "+mark)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != notStarted || !strings.Contains(string(out), "was not started") {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command ran")
	}
}

func TestConfines_StateDirectory(t *testing.T) {
	tests := map[string]struct {
		writable string
		ok       bool
	}{
		"beside": {"/home/u/project", true}, "around": {"/home/u", false}, "the same": {"/home/u/.local/state/holdfast", false},
		"inside": {"/home/u/.local/state/holdfast/run", false}, "like it": {"/home/u/.local/state/holdfast-2", true},
	}
	for name, tt := range tests {
		if err := Confines("/home/u/.local/state/holdfast", []string{tt.writable}); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
