// Package undo_test holds the real binary to what it promises about the user's files: work that was cut off goes on in the tree as it is,
// what the agent changed can be shown and taken back, the user's own edits are never touched, and the user's repository is only read. Only the
// language model is played.
package undo_test

import (
	"database/sql"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// world is one store, one work tree under git and one model. The model plays what each prompt's text says, see answer.
type world struct {
	t               *testing.T
	dir, home, work string
	model           *fakemodel.Server

	mu    sync.Mutex
	plays map[string]func(call int, r fakemodel.Request) fakemodel.Reply
	given map[string]int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-") // short: the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"),
		plays: map[string]func(int, fakemodel.Request) fakemodel.Reply{}, given: map[string]int{}}
	w.model = fakemodel.New(w.answer)
	t.Cleanup(func() {
		w.explain()
		w.model.Close()
		harness.Eventually(t, "nothing writes there any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	return w
}

// explain shows the log of a failed test.
func (w *world) explain() {
	if !w.t.Failed() {
		return
	}
	if b, err := os.ReadFile(filepath.Join(w.home, "log.jsonl")); err == nil {
		w.t.Logf("log:\n%s", b)
	}
	for _, r := range w.model.Requests() {
		w.t.Logf("request %d %s: %d messages, the last: %+v", r.N, r.Refused, len(r.Messages), r.Messages[max(0, len(r.Messages)-2):])
	}
}

// repository puts the work tree under git, with one commit.
func (w *world) repository() {
	w.t.Helper()
	w.git("init", "-q", "-b", "main")
	w.write("kept.txt", "kept\n")
	w.write("edited.txt", "one\ntwo\nthree\n")
	w.git("add", ".")
	w.git("commit", "-qm", "first")
}

func (w *world) git(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t.invalid"}, args...)...)
	cmd.Dir = w.work
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// read is the content of a file, "<absent>" without one.
func (w *world) read(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.work, name))
	if os.IsNotExist(err) {
		return "<absent>"
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

func (w *world) holds(name, want string) {
	w.t.Helper()
	if got := w.read(name); got != want {
		w.t.Errorf("%s holds %q, want %q", name, got, want)
	}
}

func (w *world) env() []string {
	return append([]string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_LOG=info"}, w.model.Env(fakemodel.Family())...)
}

// launch starts an agent in which everything is allowed. With a point it dies there.
func (w *world) launch(point string, more ...string) *harness.Agent {
	w.t.Helper()
	plain, faulty, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	bin, env := plain, append(w.env(), more...)
	if point != "" {
		bin = faulty
		env = append(env, "HOLDFAST_CRASH="+point, "HOLDFAST_CRASH_LOG="+filepath.Join(w.dir, "fired"))
	}
	a := harness.Start(w.t, harness.Options{Binary: bin, Env: env})
	a.Initialize()
	return a
}

// fired fails when the crash point of a life was not reached.
func (w *world) fired(point string) {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, "fired"))
	name, _, _ := strings.Cut(point, "/")
	if err != nil || !strings.HasPrefix(string(b), name+" kill ") {
		w.t.Fatalf("the crash point %s did not fire: %q, %v", point, b, err)
	}
}

// load opens a session that was there before.
func (w *world) load(a *harness.Agent, session string) {
	w.t.Helper()
	a.Must("session/load", map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": []any{}}, nil)
}

// say prompts and waits for the end of the turn. It returns what the agent said meanwhile.
func (w *world) say(a *harness.Agent, session, text string) string {
	w.t.Helper()
	before := len(a.Text(session))
	m := a.Await(a.Prompt(session, text))
	if m.Error != nil {
		w.t.Fatalf("%s: %v", text, m.Error)
	}
	return a.Text(session)[before:]
}

// command runs the binary to its end.
func (w *world) command(code int, args ...string) string {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(plain, args...)
	cmd.Env, cmd.Dir = append([]string{"PATH=" + os.Getenv("PATH")}, w.env()...), w.work
	cmd.WaitDelay = time.Second
	out, _ := cmd.CombinedOutput() // the code is looked at
	if got := cmd.ProcessState.ExitCode(); got != code {
		w.t.Fatalf("holdfast %s ended with %d, want %d:\n%s", strings.Join(args, " "), got, code, out)
	}
	return string(out)
}

// store asks the store a question with SQL, read-only, once nobody has it open. The rows come as a JSON list of objects.
func (w *world) store(query string) string {
	w.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(w.home, "holdfast.db")+"?mode=ro")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	rows, err := db.Query(query)
	if err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		w.t.Fatal(err)
	}
	all := []map[string]any{}
	for rows.Next() {
		values := make([]any, len(names))
		into := make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			w.t.Fatal(err)
		}
		row := map[string]any{}
		for i, v := range values {
			if b, ok := v.([]byte); ok {
				v = string(b)
			}
			row[names[i]] = v
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	if len(all) == 0 {
		return ""
	}
	b, err := json.Marshal(all)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// play says how the model answers the prompt that begins with a text. call counts the answers to it so far, over all lives.
func (w *world) play(text string, fn func(call int, r fakemodel.Request) fakemodel.Reply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plays[text] = fn
}

// steps plays calls one after the other, then a last word.
func (w *world) steps(text string, calls ...fakemodel.Call) {
	w.play(text, func(n int, _ fakemodel.Request) fakemodel.Reply {
		if n < len(calls) {
			return fakemodel.Calls(calls[n])
		}
		return fakemodel.Text("Done.")
	})
}

func (w *world) answer(r fakemodel.Request) fakemodel.Reply {
	w.mu.Lock()
	prompt := ""
	for _, m := range r.Messages {
		if _, ok := w.plays[m.Content]; ok && m.Role == "user" {
			prompt = m.Content
		}
	}
	n := w.given[prompt]
	w.given[prompt]++
	fn := w.plays[prompt]
	w.mu.Unlock()
	if fn == nil {
		return fakemodel.Text("I have nothing to do.")
	}
	return fn(n, r)
}

func (w *world) asked(prompt string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.given[prompt]
}

func call(name string, args any) fakemodel.Call {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return fakemodel.Call{Name: name, Args: string(b)}
}

func shell(command string) fakemodel.Call {
	return call("shell", map[string]string{"command": command})
}

func create(path, content string) fakemodel.Call {
	return call("write", map[string]string{"path": path, "content": content})
}

func edit(path, old, now string) fakemodel.Call {
	return call("edit", map[string]any{"path": path, "edits": []any{map[string]string{"old": old, "new": now}}})
}

// contains fails when a text lacks one of the words.
func (w *world) contains(text string, words ...string) {
	w.t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			w.t.Errorf("it lacks %q: %s", word, text)
		}
	}
}

// gone tells whether the process whose id a file holds has ended. It is a grandchild and nobody's zombie here.
func (w *world) gone(name string) bool {
	pid, err := strconv.Atoi(strings.TrimSpace(w.read(name)))
	return err == nil && syscall.Kill(pid, 0) != nil
}
