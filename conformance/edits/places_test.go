package edits_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What lies outside is asked about by its real path in every mode; refused, nothing is read or written; allowed, it is.
func TestPlaces_OutsideAsks(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"ask", "edit"} {
		for _, answer := range []string{"reject_once", "allow_once"} {
			t.Run(mode+"/"+answer, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.answer = func(question) string { return answer }
				w.put("../outside/f", "old outside\n")
				w.must(os.Symlink("../outside", filepath.Join(w.work, "link")))
				r := w.run(mode, tool("read", object{"path": "link/f"}), tool("grep", object{"path": "../outside", "pattern": "old"}),
					editing("link/f", "old", "new"), tool("write", object{"path": "link/not/yet", "content": "x"}), tool("list", object{"path": "link"}))
				asked := w.asked()
				if len(asked) != 5 {
					t.Fatalf("asked %+v", asked)
				}
				for i, name := range []string{"f", "", "f", "not/yet", ""} {
					real := filepath.Join(w.dir, "outside", name)
					if !strings.Contains(asked[i].Title, real) || !strings.Contains(asked[i].Title, "outside the workspace") || asked[i].Paths[0] != real {
						t.Errorf("question %d is %+v", i, asked[i])
					}
				}
				if answer == "allow_once" {
					w.holds("../outside/f", "new outside\n")
					w.holds("../outside/not/yet", "x")
					w.contains(r[0]+r[1], "old outside", "f:1:")
					return
				}
				w.holds("../outside/f", "old outside\n")
				w.holds("../outside/not/yet", "<absent>")
				for _, told := range r {
					w.contains(told, "The user refused this call")
					if strings.Contains(told, "old outside") {
						t.Errorf("the content was told: %s", told)
					}
				}
			})
		}
	}
}

// A standing answer for a directory outside counts there and nowhere else; one for a folder above the workspace does not reach outside.
func TestPlaces_StandingAnswerOutside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("../outside/a", "old\n")
	w.put("../outside/b", "old\n")
	w.put("../other/c", "old\n")
	w.answer = func(q question) string {
		if slices.Contains(q.Options, "allow_always") && strings.Contains(q.Title, "outside/a") {
			return "allow_always"
		}
		return "reject_once"
	}
	w.run("ask", editing("../outside/a", "old", "new"), editing("../outside/b", "old", "new"), editing("../other/c", "old", "new"))
	w.holds("../outside/a", "new\n")
	w.holds("../outside/b", "new\n")
	w.holds("../other/c", "old\n")
	if n := len(w.asked()); n != 2 {
		t.Errorf("%d questions", n)
	}
}

// Git's own files and the state directory are refused under every name, and nobody is asked.
func TestPlaces_GitAndRecordsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, d := range []string{".git/hooks", "sub/.git", "bare.git/objects", "bare.git/refs", "bare.git/hooks"} {
		w.must(os.MkdirAll(filepath.Join(w.work, d), 0o755))
	}
	w.put("bare.git/HEAD", "ref: refs/heads/main\n")
	w.put("tree/.git", "gitdir: ../.git/worktrees/tree\n")
	w.must(os.Symlink(".git", filepath.Join(w.work, "g")))
	paths := []string{".git/hooks/pre-commit", ".git/config", ".GIT/config", "g/config", "sub/.git/config", "tree/.git", "bare.git/hooks/post-update", "bare.git/config",
		"sub/../.git/config", filepath.Join(w.home, "config.toml"), filepath.Join(w.home, "new")}
	for _, path := range paths {
		w.answer = func(q question) string { t.Errorf("%s was asked about: %+v", path, q); return "allow_once" }
		r := w.run("edit", tool("write", object{"path": path, "content": "evil"}), patching("--- /dev/null\n+++ b/"+path+"\n@@ -0,0 +1 @@\n+evil\n"))
		for _, told := range r {
			if !strings.Contains(told, "git") && !strings.Contains(told, "own records") {
				t.Errorf("%s: %s", path, told)
			}
		}
		if b, err := os.ReadFile(filepath.Join(w.work, path)); err == nil && strings.Contains(string(b), "evil") {
			t.Errorf("%s was written", path)
		}
	}
}

// Files that may hold secrets are asked about before they are read, in every mode, and no search opens them; files that a program obeys are
// asked about before they are written. No standing answer is offered.
func TestPlaces_SecretAndProtected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{".env", "conf/.env.local", "key.pem", "id_ed25519", ".aws/credentials"} {
		w.put(name, "hunter2 = secret\n")
	}
	w.put(".env.example", "hunter2 = \n")
	w.put(".vscode/tasks.json", "{}\n")
	w.must(os.Symlink(".env", filepath.Join(w.work, "plain.txt")))
	w.answer = func(question) string { return "reject_once" }
	r := w.run("edit", tool("read", object{"path": ".env"}), tool("read", object{"path": "plain.txt"}), tool("read", object{"path": "conf/.env.local"}),
		tool("read", object{"path": ".aws/credentials"}), tool("grep", object{"path": "key.pem", "pattern": "."}), editing("id_ed25519", "secret", "x"),
		editing(".vscode/tasks.json", "{}", `{"x":1}`), tool("move", object{"from": ".env", "to": "readable.txt"}))
	q := w.asked()
	if len(q) != len(r) {
		t.Errorf("%d questions for %d calls: %+v", len(q), len(r), q)
	}
	for i, told := range r {
		w.contains(told, "The user refused this call")
		if i < len(q) && slices.Contains(q[i].Options, "allow_always") {
			t.Errorf("a standing answer is offered: %+v", q[i])
		}
	}
	w.holds(".vscode/tasks.json", "{}\n")
	w.holds("readable.txt", "<absent>")
	w.answer = func(q question) string { t.Errorf("asked %+v", q); return "reject_once" }
	r = w.run("ask", tool("grep", object{"pattern": "hunter2"}), tool("read", object{"path": ".env.example"}), tool("read", object{"path": ".vscode/tasks.json"}))
	w.contains(r[0], ".env.example:1", "5 file(s) that may hold secrets were not searched")
	if strings.Contains(strings.Join(r, ""), "= secret") {
		t.Errorf("a secret was told: %q", r)
	}
}

// A review stays inside; a mode that only reads still asks about what lies outside.
func TestPlaces_PlanModeAsksToReadOutside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("../outside/f", "text outside\n")
	r := w.run("plan", tool("read", object{"path": "../outside/f"}), editing("../outside/f", "text", "x"))
	if len(w.asked()) != 1 {
		t.Errorf("asked %+v", w.asked())
	}
	w.contains(r[0], "text outside")
	w.contains(r[1], "plan mode only reads")
	w.holds("../outside/f", "text outside\n")
}
