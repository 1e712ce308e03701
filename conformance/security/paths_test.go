package security_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
)

// reach are calls that would read or write what a path names.
func reach(path string) []fakemodel.Call {
	return []fakemodel.Call{
		tool("read", m{"path": path}),
		tool("list", m{"path": filepath.Dir(path)}),
		tool("grep", m{"pattern": "precious", "path": path}),
		tool("grep", m{"pattern": "precious", "path": filepath.Dir(path)}),
		tool("glob", m{"pattern": "*", "path": filepath.Dir(path)}),
		tool("write", m{"path": path, "content": "taken\n"}),
		tool("edit", m{"path": path, "edits": []m{{"old": "precious", "new": "taken"}}}),
		tool("write", m{"path": filepath.Join(filepath.Dir(path), "new.txt"), "content": "taken\n"}),
	}
}

// A path outside is never used without the user's word, however it is written and whatever the mode.
func TestAttack_PathOutside(t *testing.T) {
	for _, mode := range []string{"ask", "edit"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put(w.work, "sub/a.txt", "a\n")
			for _, path := range []string{
				filepath.Join(w.outside, "secret.txt"), "../outside/secret.txt", "sub/../../outside/secret.txt", "./missing/../../outside/secret.txt",
				w.work + "/../outside/secret.txt", "/proc/self/cwd/../outside/secret.txt", "/proc/self/root" + w.outside + "/secret.txt",
			} {
				w.will(reach(path)...)
			}
			w.attack(mode)
			w.safe()
		})
	}
}

// A link that the repository brings leads nowhere, also one whose target is not there yet.
func TestAttack_LinkOutside(t *testing.T) {
	for _, mode := range []string{"ask", "edit"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.git("init", "-q")
			w.link("../outside", "folder")
			w.link(filepath.Join(w.outside, "secret.txt"), "file.txt")
			w.link("../outside/planted.txt", "dangling.txt")
			w.link("folder", "chain")
			w.link("loop", "loop")
			w.git("add", "-A")
			w.git("commit", "-qm", "links")
			for _, path := range []string{"folder/secret.txt", "chain/secret.txt", "file.txt", "dangling.txt", "folder/deeper/new.txt", "loop", "loop/x"} {
				w.will(reach(path)...)
			}
			w.will(tool("grep", m{"pattern": "private"}), tool("glob", m{"pattern": "**/secret.txt"}))
			w.attack(mode)
			w.safe()
			w.absent(filepath.Join(w.outside, "planted.txt"), "a write through a dangling link")
		})
	}
}

// The agent's own records are out of reach even where the workspace holds them.
func TestAttack_StateDirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link("../home", "records")
	w.put(w.home, "config.toml", "# precious and private\n")
	config := filepath.Join(w.home, "config.toml")
	w.choose = func(ask) string { return "allow_once" } // even with the user's word
	for _, path := range []string{config, "records/config.toml", "home/config.toml", "work/records/config.toml", "HOME/../home/config.toml"} {
		w.will(reach(path)...)
	}
	w.will(tool("grep", m{"pattern": "precious", "path": "home"}), tool("glob", m{"pattern": "**/*.db", "path": "home"}), tool("glob", m{"pattern": "home/**"}))
	a := w.start()
	id := w.open(a, w.dir) // the parent of everything
	w.mode(a, id, "edit")
	w.prompt(a, id)
	w.unchanged(config, "# precious and private\n")
	for i, r := range w.results() {
		if strings.Contains(r, "and private") && strings.Contains(r, "config.toml") {
			t.Errorf("call %d reads the records: %s", i, r)
		}
	}
	w.absent(filepath.Join(w.home, "new.txt"), "a write into the records")
}

// A hook, or the configuration that names one, would run a program with the user's next git command.
func TestAttack_GitInternals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.git("init", "-q")
	w.git("init", "-q", "sub/inner")
	w.link(".git", "innocent")
	config, err := os.ReadFile(filepath.Join(w.work, ".git/config"))
	if err != nil {
		t.Fatal(err)
	}
	targets := []string{".git/hooks/pre-commit", ".git/config", ".GIT/hooks/post-checkout", "innocent/hooks/post-merge", "sub/inner/.git/hooks/pre-push", "./.git/./hooks/x"}
	for _, path := range targets {
		w.will(tool("write", m{"path": path, "content": "#!/bin/sh\ntouch taken\n"}), tool("edit", m{"path": path, "edits": []m{{"old": "[core]", "new": "[evil]"}}}))
	}
	w.attack("edit")
	w.unchanged(filepath.Join(w.work, ".git/config"), string(config))
	for _, path := range targets {
		if path != ".git/config" {
			w.absent(filepath.Join(w.work, path), "a planted hook")
		}
	}
}
