// Package context_test holds the real binary to what it promises about long conversations: they are compacted before they no longer fit, whole
// or not at all, nothing that counts is lost, and nothing goes in circles. Only the language model is played.
package context_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// summary is what the model makes of any transcript.
const summary = "SUMMARY: the user wants numbers; one and two are written."

// world is one store, one work tree and one model.
type world struct {
	t               *testing.T
	dir, home, work string
	model           *fakemodel.Server
	also            []string // more of the environment

	mu     sync.Mutex
	window int                                              // bytes of a request that are too many; 0 for none
	asked  []fakemodel.Request                              // for summaries
	summed func(n int, r fakemodel.Request) fakemodel.Reply // answers the n-th request for a summary; nil for the summary
	answer func(r fakemodel.Request) fakemodel.Reply        // answers any other request

	family string // of the model; "" for the suite's
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
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work")}
	w.answer = func(r fakemodel.Request) fakemodel.Reply {
		return fakemodel.Text("You said: " + firstLine(r.LastUser()))
	}
	w.model = fakemodel.New(w.reply)
	t.Cleanup(func() {
		w.explain()
		w.model.Close()
		harness.Eventually(t, "nothing writes there any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	for _, d := range []string{w.work, w.home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// onEach runs a test on every wire.
func onEach(t *testing.T, test func(t *testing.T, w *world)) {
	for _, family := range fakemodel.Families {
		t.Run(family, func(t *testing.T) {
			w := newWorld(t)
			w.family = family
			test(t, w)
		})
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// isSummary tells whether a request asks for a summary.
func isSummary(r fakemodel.Request) bool {
	return len(r.Tools) == 0 && strings.Contains(r.LastUser(), "<conversation>")
}

func (w *world) reply(r fakemodel.Request) fakemodel.Reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.window > 0 && len(r.Body) > w.window {
		return fakemodel.Error(400, "This model's maximum context length is exceeded", "context_length_exceeded")
	}
	if !isSummary(r) {
		return w.answer(r)
	}
	w.asked = append(w.asked, r)
	if w.summed != nil {
		return w.summed(len(w.asked), r)
	}
	return fakemodel.Text(summary)
}

// set changes what the model does.
func (w *world) set(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn()
}

// summaries is how many requests for summaries were let through.
func (w *world) summaries() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.asked)
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
		w.t.Logf("request %d %s: %d bytes, %d messages, %d tools, the last: %.600s", r.N, r.Refused, len(r.Body), len(r.Messages), len(r.Tools), r.LastUser())
	}
}

// configure writes the user's configuration.
// named is the played model as the configuration names it.
func (w *world) named() string {
	name := ""
	for _, v := range w.env() {
		if rest, ok := strings.CutPrefix(v, "HOLDFAST_MODEL="); ok {
			name = rest
		}
	}
	return name
}

func (w *world) configure(text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.home, "config.toml"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.work, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) env() []string {
	return append([]string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_LOG=info"}, append(w.model.Env(cmp.Or(w.family, fakemodel.Family())), w.also...)...)
}

// launch starts an agent in which everything is allowed. With a point it dies there. Capabilities are those of the client.
func (w *world) launch(point string, capabilities map[string]any) *harness.Agent {
	w.t.Helper()
	plain, faulty, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	bin, env := plain, w.env()
	if point != "" {
		bin = faulty
		env = append(env, "HOLDFAST_CRASH="+point, "HOLDFAST_CRASH_LOG="+filepath.Join(w.dir, "fired"))
	}
	a := harness.Start(w.t, harness.Options{Binary: bin, Env: env})
	if capabilities == nil {
		capabilities = map[string]any{}
	}
	a.Must("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": capabilities}, nil)
	return a
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
		w.t.Fatalf("%.80s: %v", text, m.Error)
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
	out, _ := cmd.Output() // the code is looked at
	if got := cmd.ProcessState.ExitCode(); got != code {
		w.t.Fatalf("holdfast %s ended with %d, want %d:\n%s", strings.Join(args, " "), got, code, out)
	}
	return string(out)
}

// entries are the kinds of a session's entries, in order, as the command line lists them.
func (w *world) entries(session string) (kinds []string) {
	w.t.Helper()
	var d struct{ Items []struct{ Kind string } }
	if err := json.Unmarshal([]byte(w.command(0, "sessions", "show", "--json", "--limit", "500", session)), &d); err != nil {
		w.t.Fatal(err)
	}
	for _, it := range d.Items {
		kinds = append(kinds, it.Kind)
	}
	return kinds
}

func count(kinds []string, kind string) (n int) {
	for _, k := range kinds {
		if k == kind {
			n++
		}
	}
	return n
}

// last is the newest request that is not for a summary.
func (w *world) last() fakemodel.Request {
	w.t.Helper()
	all := slices.DeleteFunc(w.model.Requests(), isSummary)
	if len(all) == 0 {
		w.t.Fatal("the model was asked nothing")
	}
	return all[len(all)-1]
}

// everything is all that a request says.
func everything(r fakemodel.Request) string {
	var b strings.Builder
	for _, m := range r.Messages {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Content)
	}
	return b.String()
}

// holds fails unless a text holds each of the words.
func (w *world) holds(what, text string, words ...string) {
	w.t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			w.t.Errorf("%s does not hold %q:\n%.4000s", what, word, text)
		}
	}
}
