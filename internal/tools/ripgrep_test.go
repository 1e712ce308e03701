//go:build unix

package tools

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// helperTree has what searches trip over behind the first files, which are always searched here.
func helperTree(t *testing.T) *bench {
	b := newBench(t)
	b.git("init", "-q")
	fill := func(dir string, n int) {
		for i := range n {
			b.put(fmt.Sprintf("%s/%d/f%04d.go", dir, i%7, i), "package p\n\nfunc nothing() {}\r\n// x1y λ\n")
		}
	}
	fill("a", firstRound+100)
	b.put("n/.gitignore", "*.log\n!keep.log\n/out/\n")
	b.put("n/deep/.gitignore", "!again.log\nlocal\n")
	for _, name := range []string{"n/a.log", "n/keep.log", "n/out/o.go", "n/deep/again.log", "n/deep/local", "n/deep/x.go", "n/.hidden/.h", "n/bad\xffname", "n/new\nline", "n/sp ",
		"n/-", "n/--help", "n/ünï/é.go", "n/.ignore", "n/.rgignore", "n/s/.env", "n/s/plain.go", "n/k/id_rsa", "n/.git-not/x"} {
		b.put(name, "first\r\nneedle one\r\nNEEDLE two x9y\nΣίσυφος ſtop \u212aelvin\nlast needle")
	}
	b.put("n/binary", "needle\x00\n")
	b.put("n/late", strings.Repeat("text\n", firstRead)+"needle\x00 needle\nneedle\n")
	b.put("n/mark", "\ufeffneedle at the start\n")
	b.put("n/wide", "\xff\xfen\x00e\x00")
	b.put("n/broken", "nee\xffdle and \xe2\x82 needle\xff\nx\xc3y\n")
	b.put("n/empty", "")
	b.put("n/huge", strings.Repeat("q", maxScan+10)+"needle\nneedle\n")
	b.put("n/hugeonly", strings.Repeat("q", maxScan+10)+"\n")
	b.put("n/many", strings.Repeat("a needle\n", maxInFile+7))
	for link, to := range map[string]string{"n/link": "a.log", "n/loop": ".", "n/out-of-it": b.opt.StateDir} {
		if err := os.Symlink(to, b.path(link)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("mkfifo", b.path("n/pipe")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.put("n/nested/tracked.txt", "needle\n")
	b.put("n/nested/.gitignore", "ignored\n")
	b.put("n/nested/ignored", "needle\n")
	b.git("init", "-q", "n/nested")
	b.git("add", "-f", "n/a.log") // tracked although a rule names it
	fill("z", 2*firstRound)
	b.put("z/9/end.go", "needle at the end x9y\n")
	return b
}

// standIn puts a program named rg first on the PATH of commands.
func (b *bench) standIn(script string) (dir string) {
	b.t.Helper()
	dir = b.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rg"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		b.t.Fatal(err)
	}
	b.env.Env = []string{"PATH=" + dir}
	return dir
}

var helperSearches = []args{
	{"pattern": "needle"}, {"pattern": "needle", "literal": true, "context": 2}, {"pattern": "NeeDLe", "ignore_case": true}, {"pattern": "needle", "output": "files"},
	{"pattern": "needle", "output": "count"}, {"pattern": "^needle"}, {"pattern": "needle$"}, {"pattern": `\bneedle\b`}, {"pattern": `nee.dle`}, {"pattern": `nee[^a]dle|x\d+y`},
	{"pattern": `x.y`}, {"pattern": `x[^1]y`}, {"pattern": `(?i)stop kelvin`}, {"pattern": `(?i)σίσυφοσ`}, {"pattern": `\p{Greek}{6,}`}, {"pattern": `[[:upper:]]{6} \w+`},
	{"pattern": `(n)(e{2})(?:d|l)+e`}, {"pattern": `\xff`}, {"pattern": "\ufffd"}, {"pattern": `needle\r`}, {"pattern": `^$`}, {"pattern": `x*`}, {"pattern": `e\z`}, {"pattern": `(?s)n..dle.`},
	{"pattern": `[x-z]{2,3}y?9`}, {"pattern": "nowhere at all"}, {"pattern": "needle", "glob": "*.go"}, {"pattern": "needle", "glob": "n/**"}, {"pattern": "needle", "path": "n"},
	{"pattern": `n[e]{2}[a-f]..`}, {"pattern": `^[mn]e+d`, "context": 3}, {"pattern": `[A-Z]{4}LE|[n]e{2}dl`, "output": "count"}, {"pattern": `(?i)[l-n]e{2}d`, "output": "files"},
	{"pattern": `e\b.[m-z]`, "path": "n"}, {"pattern": `[m-n]e{2}[c-d]`, "glob": "n/**"}, {"pattern": `(?i)k..v[h-j]`}, {"pattern": `[^ -~]`}, {"pattern": `.\x{fffd}.`}, {"pattern": `q[n]|[m-o]e{2}d`},
	{"pattern": "nothing"}, {"pattern": "package", "output": "count"}, {"pattern": "-needle"}, {"pattern": "--files", "literal": true}, {"pattern": `\Qn.e\E|q{3}n`},
}

// With ripgrep a search shows, leaves out and says exactly what it does without.
func TestGrep_SameWithRipgrep(t *testing.T) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Skip("ripgrep is not here; put rg on the PATH and run: go test -run SameWithRipgrep ./internal/tools")
	}
	b := helperTree(t)
	b.env.Env = []string{"PATH=" + t.TempDir()}
	var own []string
	for _, a := range helperSearches {
		own = append(own, b.must("grep", a).Text)
	}
	t.Setenv("RIPGREP_CONFIG_PATH", b.path("n/mark"))
	dir := b.standIn("{ env; echo \"called $*\"; } >>$0.log\n" + rg + ` "$@"; code=$?; echo "code $code" >>$0.log; exit $code` + "\n")
	used := 0
	for i, a := range helperSearches {
		_ = os.Remove(filepath.Join(dir, "rg.log"))
		if got := b.must("grep", a).Text; got != own[i] {
			t.Errorf("%v with ripgrep\n%s\nwithout\n%s", a, got, own[i])
		}
		log, _ := os.ReadFile(filepath.Join(dir, "rg.log"))
		if strings.Contains(string(log), "--files-without-match") {
			used++
		}
		if strings.Contains(string(log), "RIPGREP_CONFIG_PATH") || strings.Contains(string(log), "code 2") || strings.Contains(string(log), "./n/s") {
			t.Errorf("%v: %s", a, log)
		}
	}
	if used < 15 {
		t.Errorf("ripgrep was used for %d of %d searches", used, len(helperSearches))
	}
}

// Whatever goes wrong with the program, the result is the same.
func TestGrep_GoesOnWithoutRipgrep(t *testing.T) {
	b := helperTree(t)
	b.env.Env = nil
	rare := args{"pattern": `[m-n]e{2}[c-d]`}
	own := b.must("grep", rare).Text
	version := `[ "$2" = --version ] && { echo "ripgrep 14.1.0"; exit; }` + "\n"
	for name, script := range map[string]string{
		"fails": version + "printf './z/9/end.go\\0'; exit 2", "dies": version + "printf './z/9/end.go\\0'; kill -9 $$", "floods": version + "exec yes ./z/9/end.go",
		"old": `echo "ripgrep 12.1.1"; [ "$2" = --version ] || printf './z/9/end.go\0'`, "other": `echo "some other program 14"; printf './z/9/end.go\0'`,
		"talks": version + `printf 'Welcome!\n\0/etc/passwd\0../../x\0'; exit 0`,
	} {
		b.standIn(script)
		said := ""
		b.opt.Debug = func(text string) { said += text + "\n" }
		if got := b.must("grep", rare).Text; got != own {
			t.Errorf("%s: %s\nwant %s", name, got, own)
		}
		if said == "" && name != "talks" {
			t.Errorf("%s: nothing is in the log", name)
		}
	}
}

// A program that the workspace brings along never runs.
func TestGrep_RunsNoRipgrepOfTheWorkspace(t *testing.T) {
	b := newBench(t)
	for i := range firstRound * 3 {
		b.put(fmt.Sprintf("d%d/%04d", i%9, i), "x\n")
	}
	script := "#!/bin/sh\ntouch " + b.path("ran") + "\necho ripgrep 14.0.0\n"
	for _, name := range []string{"rg", "bin/rg"} {
		b.put(name, script)
		if err := os.Chmod(b.path(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out := t.TempDir() // a link from elsewhere into it, and one from it to elsewhere
	if err := os.Symlink(b.path("bin/rg"), filepath.Join(out, "rg")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(b.path("bin"), filepath.Join(t.TempDir(), "bin")); err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	if err := os.WriteFile(filepath.Join(elsewhere, "rg"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(b.path("linked"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(elsewhere, "rg"), b.path("linked/rg")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(b.env.Cwd)
	for _, path := range []string{"", ".", "bin", b.env.Cwd, b.path("bin"), b.path("linked"), out, ":" + b.path("bin"), b.path("bin") + "/../bin"} {
		b.env.Env = []string{"PATH=" + path}
		b.must("grep", args{"pattern": "[0-9]{9}"})
		if _, err := os.Stat(b.path("ran")); err == nil {
			t.Errorf("PATH=%q: a program of the workspace ran", path)
			_ = os.Remove(b.path("ran"))
		}
	}
	b.env.Env = []string{"PATH=" + b.path("bin") + ":" + elsewhere}
	if b.must("grep", args{"pattern": "[0-9]{9}"}); !fileThere(b.path("ran")) {
		t.Error("the program that the user installed was not asked either")
	}
}

func fileThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Names are secret by the automaton exactly when they are by the expressions.
func TestSecretNames_AgreeWithTheExpressions(t *testing.T) {
	names := newSecretNames()
	for _, dir := range []string{".", "a", ".ssh", "a/.AWS", ".docker", "x/gcloud", "ünï", "a b"} {
		names.enter(dir)
		for _, base := range []string{"x", ".env", ".ENV.local", ".env.example", "a.env", "sample.env", "k.pem", "K.PEM.", "id_rsa", "id_rsa.pub", "config.json", "credentials", "service-account\n1.json",
			"a\n.env", "secret.yml", ".netrc", "é.key", "x.key:stream", "\u200d.env", "terraform.tfstate", "bad\xff.pem", "...", "go.mod"} {
			if got, want := names.holds(base), secretFile(filepath.Join(dir, base)); got != want {
				t.Errorf("%s in %s: %v, want %v", base, dir, got, want)
			}
		}
	}
}
