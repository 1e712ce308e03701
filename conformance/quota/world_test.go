// Package quota_test looks from outside at whose unattended work runs where: how many runs of one store the model endpoint sees at once, in
// which order sessions take turns, what waits and what it says of itself, and what becomes of it when a process dies or is suspended. The
// model holds each answer until the test lets it go.
package quota_test

import (
	"bytes"
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// world is one store, a number of work trees, and a model that answers when it is told to.
type world struct {
	t         *testing.T
	dir, home string
	model     *fakemodel.Server

	mu    sync.Mutex
	order []string                 // the requests so far, by the user's last words
	open  map[string]chan struct{} // those that are not answered
	most  int                      // how many were open at once
	plays map[string]func(fakemodel.Request) fakemodel.Reply
	looks bool // each turn begins with a look around

	family string   // of the model; "" for the suite's
	also   []string // environment on top
}

func newWorld(t *testing.T, config string) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-") // short: the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), open: map[string]chan struct{}{}, plays: map[string]func(fakemodel.Request) fakemodel.Reply{}}
	w.model = fakemodel.New(w.answer)
	t.Cleanup(func() {
		if t.Failed() {
			b, _ := os.ReadFile(filepath.Join(w.home, "holdfast.log"))
			t.Logf("asked %q\n%s", w.asked(), b[max(0, len(b)-8000):])
		}
		w.model.Close()
		harness.Eventually(t, "nothing writes there any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	w.must(os.Mkdir(w.home, 0o700))
	w.must(os.WriteFile(filepath.Join(w.home, "config.toml"), []byte(config), 0o600))
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// answer holds each request open under the user's last words.
func (w *world) answer(r fakemodel.Request) fakemodel.Reply {
	text := ""
	for _, m := range r.Messages {
		if m.Role == "user" && !strings.HasPrefix(m.Content, "[") {
			text = m.Content
		}
	}
	if strings.HasPrefix(text, "The user has set a goal") { // its review
		text = ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := r.Messages[len(r.Messages)-1]; w.looks && last.Role == "user" {
		return fakemodel.Calls(fakemodel.Call{Name: "list", Args: `{"path":"."}`})
	}
	w.order = append(w.order, text)
	if play := w.plays[text]; play != nil {
		return play(r)
	}
	if strings.HasPrefix(text, "quick") {
		return fakemodel.Text("done " + text)
	}
	gate := make(chan struct{})
	w.open[text] = gate
	w.most = max(w.most, len(w.open))
	reply := fakemodel.Text("done " + text)
	reply.Steps = append([]fakemodel.Step{fakemodel.Gate(gate)}, reply.Steps...)
	return reply
}

// asked lists the requests so far.
func (w *world) asked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.order)
}

func (w *world) times(text string) (n int) {
	for _, a := range w.asked() {
		if a == text {
			n++
		}
	}
	return n
}

// working lists the requests that wait for their answer, sorted.
func (w *world) working() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for text := range w.open {
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// release answers one request.
func (w *world) release(text string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	gate := w.open[text]
	if gate == nil {
		w.t.Fatalf("the model was not asked %q", text)
	}
	close(gate)
	delete(w.open, text)
}

// forget drops the requests of a process that was killed, and the count of how many there were.
func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open, w.order, w.most = map[string]chan struct{}{}, nil, 0
}

// await waits until exactly these requests wait for their answer.
func (w *world) await(what string, texts ...string) {
	w.t.Helper()
	slices.Sort(texts)
	harness.Eventually(w.t, what, func() bool { return slices.Equal(w.working(), texts) })
}

// tree makes a work tree.
func (w *world) tree(name string) string {
	w.t.Helper()
	d := filepath.Join(w.dir, name)
	w.must(os.MkdirAll(d, 0o755))
	return d
}

func (w *world) env() []string {
	return append(append([]string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_LOG=info"}, w.model.Env(cmp.Or(w.family, fakemodel.Family()))...), w.also...)
}

// launch starts an editor's agent. With a point it dies there.
func (w *world) launch(point string) *harness.Agent {
	w.t.Helper()
	a := w.start(point, "acp")
	a.Initialize()
	return a
}

// worker starts a process that works with no editor and stays.
func (w *world) worker(point string) *harness.Agent {
	return w.start(point, "work", "--watch", "--json")
}

func (w *world) start(point string, args ...string) *harness.Agent {
	w.t.Helper()
	plain, faulty, err := harness.Binaries()
	w.must(err)
	bin, env := plain, w.env()
	if point != "" {
		bin = faulty
		env = append(env, "HOLDFAST_CRASH="+point, "HOLDFAST_CRASH_LOG="+filepath.Join(w.dir, "fired"))
	}
	return harness.Start(w.t, harness.Options{Binary: bin, Args: args, Env: env, Invalid: args[0] != "acp"})
}

func (w *world) fired(point string) {
	w.t.Helper()
	b, _ := os.ReadFile(filepath.Join(w.dir, "fired")) // absent is empty
	if !strings.HasPrefix(string(b), point+" kill ") {
		w.t.Fatalf("the crash point %s did not fire: %q", point, b)
	}
}

func (w *world) load(a *harness.Agent, session, cwd string) {
	w.t.Helper()
	a.Must("session/load", map[string]any{"sessionId": session, "cwd": cwd, "mcpServers": []any{}}, nil)
}

// say runs a prompt to its end.
func (w *world) say(a *harness.Agent, session, text string) {
	w.t.Helper()
	if m := a.Await(a.Prompt(session, text)); m.Error != nil || !strings.Contains(string(m.Result), "end_turn") {
		w.t.Fatalf("the prompt %q ended with %v %s", text, m.Error, m.Result)
	}
}

// left is a session in the middle of a request whose process was killed.
type left struct{ id, cwd, text string }

// interrupted leaves n sessions behind, each with a tree of its own and in the middle of a request.
func (w *world) interrupted(prefix string, n int) []left {
	w.t.Helper()
	var trees []string
	for i := range n {
		trees = append(trees, w.tree(fmt.Sprintf("%s%02d", prefix, i)))
	}
	return w.interruptedIn(prefix, trees...)
}

// interruptedIn does the same in given trees.
func (w *world) interruptedIn(prefix string, trees ...string) (all []left) {
	w.t.Helper()
	a := w.launch("")
	for i, cwd := range trees {
		all = append(all, w.begin(a, cwd, fmt.Sprintf("%s %02d", prefix, i)))
	}
	w.kill(a, all...)
	return all
}

// begin is a prompt that the model does not answer.
func (w *world) begin(a *harness.Agent, cwd, text string) left {
	w.t.Helper()
	l := left{a.NewSession(cwd), cwd, text}
	a.Prompt(l.id, l.text)
	harness.Eventually(w.t, l.text+" is asked", func() bool { return slices.Contains(w.working(), l.text) })
	return l
}

// kill ends a process in the middle of its requests.
func (w *world) kill(a *harness.Agent, all ...left) {
	a.Kill()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range all {
		delete(w.open, l.text)
	}
	w.order, w.most = nil, len(w.open)
}

// suspend stops a process outside of any write: others go on using the store.
func (w *world) suspend(a *harness.Agent) {
	w.t.Helper()
	harness.Eventually(w.t, "it is suspended outside of a write", func() bool {
		a.Signal(syscall.SIGSTOP)
		if _, _, code := w.command("sessions", "list"); code == 0 {
			return true
		}
		a.Signal(syscall.SIGCONT)
		return false
	})
}

// command runs the command line to its end.
func (w *world) command(args ...string) (out, errs string, code int) {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	w.must(err)
	cmd := exec.Command(plain, args...)
	cmd.Env, cmd.Dir = append([]string{"PATH=" + os.Getenv("PATH")}, w.env()...), w.dir
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	cmd.WaitDelay = time.Second
	_ = cmd.Run() // the code is looked at
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// holdfast runs the command line, which must end with a code, and decodes what it prints.
func (w *world) holdfast(code int, v any, args ...string) string {
	w.t.Helper()
	out, errs, got := w.command(args...)
	if got != code {
		w.t.Fatalf("holdfast %s ended with %d, want %d:\n%s%s", strings.Join(args, " "), got, code, out, errs)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(out), v); err != nil {
			w.t.Fatalf("holdfast %s: %v\n%s%s", strings.Join(args, " "), err, out, errs)
		}
	}
	return out + errs
}

// state is a session as it is listed.
type state struct {
	SessionID, State, ReasonCode, Reason, Recovery string
	OwnerPID                                       int
}

func (w *world) states() map[string]state {
	w.t.Helper()
	var all []state
	w.holdfast(0, &all, "sessions", "list", "--limit", "500", "--json")
	out := map[string]state{}
	for _, s := range all {
		out[s.SessionID] = s
	}
	return out
}

// stands waits until a session is in a state with a code.
func (w *world) stands(l left, at, code string) (s state) {
	w.t.Helper()
	harness.Eventually(w.t, l.text+" is "+at+" "+code, func() bool {
		s = w.states()[l.id]
		return s.State == at && s.ReasonCode == code
	})
	return s
}

// place is a place of the queue as 'ps' shows it.
type place struct {
	SessionID, Kind, State, WorkTree, ReasonCode, Reason string
	PID                                                  int
}

func (w *world) queue() (all []place) {
	w.t.Helper()
	var ps struct{ Queue []place }
	w.holdfast(0, &ps, "ps", "--json")
	return ps.Queue
}

func (w *world) holders() (ids []string) {
	for _, p := range w.queue() {
		if p.State == "working" {
			ids = append(ids, p.SessionID)
		}
	}
	return ids
}

// query asks the store, read-only. The rows come a line each.
func (w *world) query(query string, args ...any) string {
	w.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(w.home, "holdfast.db")+"?mode=ro")
	w.must(err)
	defer func() { _ = db.Close() }()
	rows, err := db.Query(query, args...)
	w.must(err)
	defer func() { _ = rows.Close() }()
	var out []string
	for rows.Next() {
		var s string
		w.must(rows.Scan(&s))
		out = append(out, s)
	}
	w.must(rows.Err())
	return strings.Join(out, "\n")
}

// ask has the model begin its answer with a command that has to be allowed.
func (w *world) ask(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plays[text] = func(r fakemodel.Request) fakemodel.Reply {
		delete(w.plays, text) // the next request is held
		return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: `{"command":"echo x >> made"}`})
	}
}
