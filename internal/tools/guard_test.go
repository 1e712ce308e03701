//go:build unix

package tools

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/session"
)

func TestKindOf_Names(t *testing.T) {
	for want, names := range map[session.Place][]string{
		session.PlaceSecret: {".env", "a/.ENV.local", "prod.env", "x.pem", "id_rsa", "id_ed25519", "id_work", ".ssh/config", ".aws/credentials", "credentials.json", ".npmrc", ".netrc",
			"deploy.key", "service-account-1.json", "secrets.yaml", ".env.", ".e\u200cnv", ".env:stream", "terraform.tfstate"},
		session.PlaceProtected: {".vscode/tasks.json", ".holdfast/config.toml", ".envrc", ".husky/pre-commit", "sub/.idea/x", ".mcp.json", ".VSCODE/x", ".gitmodules"},
		session.PlaceInside: {"main.go", ".env.example", ".env.sample", "id_rsa.pub", "id_generator.go", "credentials.go", "monkey.go", "environment", "keys/readme.md", "envrc", ".gitignore",
			"secrets_test.go", "key"},
	} {
		for _, name := range names {
			if got := kindOf("/w/"+name, filepath.FromSlash(name), true); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
	if kindOf("/x/main.go", "", false) != session.PlaceOutside || kindOf("/x/.env", "", false) != session.PlaceSecret {
		t.Error("what lies outside is not called so")
	}
}

// Where names that differ only in case are one file, no other spelling gets around a check.
func TestReach_CaseInsensitiveSystem(t *testing.T) {
	b := newBench(t)
	b.opt.StateDir = b.path("State")
	try := func(path string) (bool, error) {
		p, err := b.opt.locateWrite(b.env, path)
		return p.inside, err
	}
	other := strings.ToUpper(b.env.Cwd) + "/f"
	if in, err := try(other); in || err != nil {
		t.Errorf("with case: %v %v", in, err)
	}
	foldCase = true
	defer func() { foldCase = false }()
	if in, err := try(other); !in || err != nil {
		t.Errorf("without case a path inside is outside: %v %v", in, err)
	}
	for _, path := range []string{"sTATE/holdfast.db", strings.ToUpper(b.path("state/x"))} {
		var te *session.ToolError
		if _, err := try(path); !errors.As(err, &te) || !strings.Contains(te.Message, "own records") {
			t.Errorf("%s: %v", path, err)
		}
	}
	b.put("f", "x\n")
	b.refused("apply_patch", args{"patch": "--- /dev/null\n+++ b/New\n@@ -0,0 +1 @@\n+x\n--- /dev/null\n+++ b/nEW\n@@ -0,0 +1 @@\n+x\n"})
}

// Somebody swaps a folder for a link, over and over, while files are written, deleted and read through it: nothing outside is ever touched
// or seen, and git's own files never are.
func TestFolders_SwappedWhileUsed(t *testing.T) {
	b := newBench(t)
	outside := t.TempDir()
	others := map[string]string{outside: "not yours\n", b.path(".git"): "git's own, free to read\n"}
	for dir, text := range others {
		if err := os.MkdirAll(filepath.Join(dir, "in"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "in", "f"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.put("d/in/f", "mine\n")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		targets := []string{outside, ".git"}
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(b.path("d"), b.path("away"))
			_ = os.Symlink(targets[i%2], b.path("d"))
			_ = os.Remove(b.path("d"))
			_ = os.Rename(b.path("away"), b.path("d"))
		}
	}()
	done := 0
	for range 400 {
		for tool, a := range map[string]args{"edit": {"path": "d/in/f", "edits": []args{{"old": "mine", "new": "mine too"}}}, "read": {"path": "d/in/f"},
			"write": {"path": "d/in/new", "content": "x"}, "delete": {"paths": []string{"d/in/new"}}} {
			out, err := b.callInside(tool, a)
			if err == nil && strings.Contains(out.Text, "not yours") {
				t.Fatalf("%s saw what is outside: %s", tool, out.Text)
			}
			if err == nil {
				done++
			}
		}
	}
	close(stop)
	<-stopped
	for dir, want := range others {
		entries, err := os.ReadDir(filepath.Join(dir, "in"))
		text, _ := os.ReadFile(filepath.Join(dir, "in", "f"))
		if err != nil || len(entries) != 1 || string(text) != want {
			t.Errorf("%s was touched: %v %q", dir, entries, text)
		}
	}
	if t.Logf("%d calls came through", done); done == 0 {
		t.Error("nothing was tried")
	}
}

// callInside is call for what the policy lets through without a question.
func (b *bench) callInside(tool string, a args) (session.Output, error) {
	raw, err := json.Marshal(a)
	if err != nil {
		return session.Output{}, err
	}
	pl, err := b.tool(tool).Plan(b.env, raw)
	if err != nil {
		return session.Output{}, err
	}
	if pl.Place != session.PlaceInside {
		return session.Output{}, errors.New("asked")
	}
	return b.tool(tool).Run(b.t.Context(), b.env, pl, nil)
}

func TestWrite_KeepsExtendedAttributes(t *testing.T) {
	b := newBench(t)
	b.put("f", "old\n")
	if err := unix.Setxattr(b.path("f"), "user.note", []byte("kept"), 0); err != nil {
		t.Skipf("needs a file system with user attributes: TMPDIR=/dir go test ./internal/tools -run ExtendedAttributes (%v)", err)
	}
	b.must("edit", args{"path": "f", "edits": []args{{"old": "old", "new": "new"}}})
	b.must("apply_patch", args{"patch": "diff --git a/f b/g\nrename from f\nrename to g\n--- a/f\n+++ b/g\n@@ -1 +1 @@\n-new\n+newer\n"})
	buf := make([]byte, 16)
	if n, err := unix.Getxattr(b.path("g"), "user.note", buf); err != nil || string(buf[:n]) != "kept" {
		t.Errorf("the attribute is %q, %v", buf[:max(n, 0)], err)
	}
}
