package policy_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

// git runs git as the user would, outside of everything.
func (w *world) git(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.org"}, args...)...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// works has a command run confined, without a question and with success.
func (w *world) works(line, want string) {
	w.t.Helper()
	args, _ := json.Marshal(map[string]any{"command": line, "timeout_seconds": 900})
	o := w.do("shell " + string(args))
	if o.Asked || !strings.Contains(o.Text, "[exit code 0]") || !strings.Contains(o.Text, "it ran confined") || !strings.Contains(o.Text, want) {
		w.t.Errorf("%s: asked %v: %s", line, o.Asked, o.Text)
	}
}

// What a developer runs all day works confined, offline and with a home directory that cannot be written.
func TestConfined_DeveloperTools(t *testing.T) {
	w := newWorld(t)
	needsWall(w)
	for name, text := range map[string]string{
		"go.mod": "module sample\n\ngo 1.24\n", "sum.go": "package sample\n\nfunc Sum(a, b int) int { return a + b }\n",
		"sum_test.go":   "package sample\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestSum(t *testing.T) {\n\tif err := os.WriteFile(t.TempDir()+\"/x\", nil, 0o600); err != nil || Sum(1, 2) != 3 {\n\t\tt.Fatal(err)\n\t}\n}\n",
		"cmd/a/main.go": "package main\n\nfunc main() { println(\"built\") }\n",
		"package.json":  `{"name":"sample","version":"1.0.0","scripts":{"test":"node test.js","build":"echo built"}}`,
		"test.js":       "const fs=require('fs'),os=require('os');fs.writeFileSync(fs.mkdtempSync(os.tmpdir()+'/t-')+'/x','');require('http').createServer((q,r)=>r.end('served')).listen(0,'127.0.0.1',function(){require('http').get({port:this.address().port},r=>{r.on('data',d=>console.log(String(d)));r.on('end',()=>process.exit())})});\n",
		"Cargo.toml":    "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n", "src/main.rs": "fn main() { println!(\"built\"); }\n",
	} {
		w.write(filepath.Join(w.work, name), text)
	}
	w.write(filepath.Join(w.home, ".npmrc"), "//registry.example.org/:_authToken=the-private-key\n")
	w.git(w.work, "init", "-q")
	w.write(filepath.Join(w.home, ".gitconfig"), "[user]\n\tname = u\n\temail = u@example.org\n")
	if home, err := os.UserHomeDir(); err == nil { // toolchains are only read
		for name, dir := range map[string]string{"RUSTUP_HOME": ".rustup", "CARGO_HOME": ".cargo", "PYENV_ROOT": ".pyenv"} {
			if _, err := os.Stat(filepath.Join(home, dir)); err == nil {
				w.env = append(w.env, name+"="+filepath.Join(home, dir))
			}
		}
	}
	w.launch("auto", true)
	w.works("go test ./... && go build -o built ./cmd/a && ./built", "ok  \tsample")
	w.works("git add -A && git commit -qm first && git log --oneline", "first")
	if _, err := exec.LookPath("npm"); err == nil {
		w.works("npm test", "served")
	}
	if _, err := exec.LookPath("cargo"); err == nil {
		w.works("cargo build --offline && ./target/debug/sample", "built")
	}
	w.works("mktemp && python3 -c 'import tempfile; print(tempfile.mkdtemp())'", "")
	if entries, err := os.ReadDir(w.home); err != nil || len(entries) != 3 {
		t.Errorf("the home directory has %v, %v", entries, err)
	}
}

// A linked work tree keeps what it commits in the repository that it belongs to, which lies elsewhere.
func TestConfined_LinkedWorktree(t *testing.T) {
	w := newWorld(t)
	needsWall(w)
	repo := filepath.Join(filepath.Dir(w.work), "repo")
	w.write(filepath.Join(repo, "a"), "1\n")
	w.git(repo, "init", "-q")
	w.git(repo, "add", "-A")
	w.git(repo, "commit", "-qm", "first")
	if err := os.Remove(w.work); err != nil {
		t.Fatal(err)
	}
	w.git(repo, "worktree", "add", "-q", w.work)
	w.write(filepath.Join(w.home, ".gitconfig"), "[user]\n\tname = u\n\temail = u@example.org\n")
	w.launch("auto", true)
	w.works("echo 2 > a && git commit -qam second && git status --short", "")
	if log := w.git(w.work, "log", "--oneline"); !strings.Contains(log, "second") {
		t.Errorf("the repository has %s", log)
	}
	hooks := filepath.Join(repo, ".git", "hooks", "pre-commit")
	w.do("run h=" + hooks + "; echo x > \"$h\"; c=" + filepath.Join(repo, ".git", "config") + "; echo x >> \"$c\"")
	if _, err := os.Stat(hooks); err == nil {
		t.Error("it wrote a hook of the repository")
	}
	// The pointer lies in the work tree. Turned elsewhere it opens nothing.
	w.do("run echo gitdir: " + w.outside + "/worktrees/x > $(echo .git)")
	if b, _ := os.ReadFile(filepath.Join(w.work, ".git")); !strings.Contains(string(b), w.outside) {
		t.Fatalf("the pointer is %s", b)
	}
	w.do("run f=" + w.outside + "/new; echo x > \"$f\"")
	w.untouched("a pointer turned elsewhere")
}

// A grant is no question: what it allows runs confined. What a person allows now or by a rule does not, unless everything is to be.
func TestConfined_ByWhoSaidSo(t *testing.T) {
	w := newWorld(t)
	needsWall(w)
	w.launch("ask", true)
	w.answer = "allow_once"
	if o := w.do("run echo x > y"); !o.Asked || strings.Contains(o.Text, "confined") {
		t.Errorf("allowed by a person: %+v", o)
	}
	w.answer = "allow_always"
	w.do("run touch z")
	if o := w.do("run touch z"); o.Asked || strings.Contains(o.Text, "confined") {
		t.Errorf("allowed by a rule: %+v", o)
	}
	if p := w.stored().Permission; !strings.Contains(p, "an answer with always") || !strings.Contains(p, "touch z") {
		t.Errorf("the journal says %q", p)
	}
	w.a.Kill()
	w.write(filepath.Join(w.state, "config.toml"), "[sandbox]\ncommands = \"always\"\n")
	w.launch("ask", true)
	if o := w.do("run touch z"); o.Asked || !strings.Contains(o.Text, "it ran confined") {
		t.Errorf("always, by a rule: %+v", o)
	}
	w.answer = "allow_once"
	if o := w.do("run f=" + w.outside + "/new; echo x > \"$f\""); !o.Asked || !strings.Contains(o.Text, "could write only in "+w.work) {
		t.Errorf("always, by a person: %+v", o)
	}
	w.untouched("always")
	w.a.Kill()
	w.launch("ask", false)
	if o := w.do("run touch z"); !strings.Contains(o.Text, "Not started: every command is to be confined") {
		t.Errorf("always, without a wall: %+v", o)
	}
	w.a.Kill()
	w.write(filepath.Join(w.state, "config.toml"), "[sandbox]\ncommands = \"alway\"\n") // nobody knows what it was to be
	w.launch("ask", true)
	if o := w.do("run touch z"); !o.Asked || !strings.Contains(o.Text, "it ran confined") {
		t.Errorf("a configuration that cannot be used: %+v", o)
	}
	w.a.Kill()
	w.write(filepath.Join(w.state, "config.toml"), "[sandbox]\ncommands = \"off\"\n")
	w.launch("auto", true)
	if o := w.do("run make"); !o.Asked {
		t.Errorf("off: %+v", o)
	}
}

// In the background and in a terminal a command is confined as well, and a process that takes it over says so.
func TestConfined_InEveryShape(t *testing.T) {
	w := newWorld(t)
	needsWall(w)
	w.launch("auto", true)
	touch := "f=" + w.outside + "/new; echo x > \\\"$f\\\"; echo over"
	if o := w.do(`shell {"command":"` + touch + `","background":true}`); o.Asked || !strings.Contains(o.Text, "it ran confined") {
		t.Errorf("in the background: %+v", o)
	}
	if o := w.do(`shell_output {"id":"bg1","wait_seconds":30}`); !strings.Contains(o.Text, "over") {
		t.Errorf("its output: %+v", o)
	}
	if o := w.do(`shell {"command":"` + touch + `; tty","pty":true}`); o.Asked || !strings.Contains(o.Text, "it ran confined") || !strings.Contains(o.Text, "/dev/pts/") {
		t.Errorf("in a terminal: %+v", o)
	}
	w.untouched("other shapes")
	id := w.a.Prompt(w.session, "run touch begun; while [ ! -e $(echo go) ]; do sleep 0.05; done; f="+w.outside+"/new; echo x > \"$f\"; echo over")
	harness.Eventually(t, "the command begins", func() bool { _, err := os.Stat(filepath.Join(w.work, "begun")); return err == nil })
	w.a.Kill()
	_ = id
	w.launch("auto", true)
	w.write(filepath.Join(w.work, "go"), "")
	harness.Eventually(t, "the result of the command", func() bool {
		reqs := w.model.Requests()
		results := reqs[len(reqs)-1].Results()
		return len(results) > 0 && strings.Contains(results[len(results)-1].Content, "over\n") && strings.Contains(results[len(results)-1].Content, "it ran confined")
	})
	w.untouched("taken over")
}
