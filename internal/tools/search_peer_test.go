//go:build unix

package tools

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// peerTree is a repository with what searches trip over.
func peerTree(t *testing.T, more string) *bench {
	b := newBench(t)
	b.git("init", "-q")
	b.put(".gitignore", "*.log\n/build/\n!keep.log\nnode_modules\ndoc/**/gen\n# comment\n\\#odd\nsp\\ \n[ab].tmp\n"+more)
	b.put("sub/.gitignore", "/local\n!special.log\n")
	for _, name := range []string{"a.go", "b/c.go", "x.log", "keep.log", "build/out.go", "sub/build/in.go", "sub/local", "sub/deep/local", "sub/special.log", "node_modules/m/i.js",
		"b/node_modules/i.js", "doc/a/gen/x", "doc/gen/x", "doc/a/b/gen/x", "#odd", "sp ", "a.tmp", "c.tmp", "{x}.txt", "x.txt", ".hidden/h.go", "ünï/é.go"} {
		b.put(name, "first line\nneedle one\r\nNeedle two\nlast needle")
	}
	b.put("bin.dat", "needle\x00\n")
	b.put("empty", "")
	return b
}

// Without git the same files are left out as with it.
func TestSearch_IgnoresWhatGitDoes(t *testing.T) {
	b := peerTree(t, "{x}.txt\n")
	withGit := b.must("glob", args{"pattern": "**"}).Text
	t.Setenv("PATH", t.TempDir())
	without := b.must("glob", args{"pattern": "**"}).Text
	if withGit != without {
		t.Errorf("with git\n%s\nwithout\n%s", withGit, without)
	}
	if strings.Contains(withGit, "build/out.go") || !strings.Contains(withGit, "sub/special.log") || !strings.Contains(withGit, "x.txt") {
		t.Errorf("unexpected: %s", withGit)
	}
}

// ripgrep finds the same lines. It is never needed: go test ./internal/tools -run Ripgrep with rg on the PATH.
func TestGrep_AgreesWithRipgrep(t *testing.T) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Skip("ripgrep is not here; put rg on the PATH and run: go test -run AgreesWithRipgrep ./internal/tools")
	}
	b := peerTree(t, "") // of braces in an ignore file it makes what git does not
	for _, c := range []struct {
		args  args
		flags []string
	}{
		{args{"pattern": "needle"}, []string{"needle"}},
		{args{"pattern": "needle", "ignore_case": true}, []string{"-i", "needle"}},
		{args{"pattern": "n.e+dle$"}, []string{"--crlf", "n.e+dle$"}},
		{args{"pattern": "needle.", "literal": true}, []string{"-F", "needle."}},
		{args{"pattern": "needle", "glob": "*.go"}, []string{"-g", "*.go", "needle"}},
		{args{"pattern": "[nN]eedle t|first", "context": 1}, []string{"-C", "1", "[nN]eedle t|first"}},
	} {
		cmd := exec.Command(rg, append([]string{"--no-config", "--hidden", "-g", "!.git", "--no-heading", "--no-messages", "-n", "--color", "never"}, c.flags...)...)
		cmd.Dir, cmd.Env = b.env.Cwd, append(os.Environ(), "LC_ALL=C.UTF-8")
		out, _ := cmd.Output() // no match is an error of its
		if got, want := peerLines(b.must("grep", c.args).Text, true), peerLines(string(out), false); !slices.Equal(got, want) {
			t.Errorf("%v:\n%s\nripgrep:\n%s", c.args, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// peerLines are the lines of a result in one spelling and order.
func peerLines(text string, ours bool) []string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		line = strings.TrimSuffix(strings.TrimPrefix(line, "./"), "\r")
		if line == "--" || line == "" || line == "[no match]" || strings.HasPrefix(line, "bin.dat") {
			continue
		}
		if ours {
			line = strings.Replace(strings.Replace(line, ": ", ":", 1), "- ", "-", 1)
			line = strings.Replace(line, `sp\x20`, "sp ", 1)
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// Unreadable folders, loops of links and more than the cap end no search, and are said.
func TestSearch_SaysWhatItDidNotSee(t *testing.T) {
	b := newBench(t)
	b.put("locked/a.txt", "needle\n")
	b.put("open/a.txt", "needle\n")
	for link, to := range map[string]string{"loop": "loop", "up": "..", "open/self": "."} {
		if err := os.Symlink(to, b.path(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(b.path("locked"), 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(b.path("locked"), 0o700) }()
	out := b.must("grep", args{"pattern": "needle"})
	if os.Getuid() == 0 {
		if out.Text != "locked/a.txt:1: needle\nopen/a.txt:1: needle" {
			t.Error(out.Text)
		}
	} else if out.Text != "open/a.txt:1: needle\n[1 folder(s) could not be read]" {
		t.Error(out.Text)
	}
	if out := b.must("grep", args{"pattern": "needle", "output": "files", "path": "open"}); out.Text != "open/a.txt" {
		t.Error(out.Text)
	}
	b.put("open/b.txt", "needle needle\nneedle\n")
	if out := b.must("grep", args{"pattern": "needle", "output": "count", "path": "open"}); out.Text != "open/a.txt: 1\nopen/b.txt: 2\n[3 lines in 2 files]" {
		t.Error(out.Text)
	}
}
