package context_test

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// system is what a request tells the model before anything is said.
func system(t *testing.T, r fakemodel.Request) string {
	t.Helper()
	if len(r.Messages) == 0 || r.Messages[0].Role != "system" {
		t.Fatalf("request %d has no instructions: %.300s", r.N, r.Body)
	}
	return r.Messages[0].Content
}

func (w *world) git(args ...string) {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t", "-C", w.work}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

const askMode = "Mode: ask (reading goes on without asking; the user is asked about everything else)"

// told is the beginning of the instructions, word by word.
func (w *world) told(cwd, directories, git, mode string) string {
	return "You are Holdfast, a coding agent working in the user's own directory through tools. Look before you change anything, keep changes small, and " +
		"say plainly what you did and what you do not know. Tool results may say that a call never started or that its outcome is unknown: then look at the " +
		"real state first and do not repeat the call blindly.\nWorking directory: " + cwd + "\nDirectories you may use: " + directories + "\nGit: " + git +
		"\nPlatform: " + runtime.GOOS + "/" + runtime.GOARCH + "\nThis session began on " + time.Now().UTC().Format("Monday, 2 January 2006") +
		"; ask the system when you need to know what day it is now.\n" + mode
}

// The model is told where it is, what it may use, what the files there ask for, and nothing else; the same bytes each time, also after a restart.
func TestTold_WordByWord(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.git("init", "-q", "-b", "trunk")
		w.write("AGENTS.md", "Use tabs.\n")
		other := filepath.Join(w.dir, "other")
		if err := os.Mkdir(other, 0o700); err != nil {
			t.Fatal(err)
		}
		a := w.launch("", nil)
		var r struct {
			SessionID string `json:"sessionId"`
		}
		a.Must("session/new", map[string]any{"cwd": w.work, "additionalDirectories": []string{other}, "mcpServers": []any{}}, &r)
		w.say(a, r.SessionID, "one")
		want := w.told(w.work, w.work+", "+other, "work tree "+w.work+", branch trunk when this turn began", askMode)
		first := system(t, w.last())
		if !strings.HasPrefix(first, want+"\n\n") {
			t.Errorf("it is told\n%s\nwant\n%s", first, want)
		}
		w.holds("the instructions", first, "| Use tabs.", "AGENTS.md")
		w.say(a, r.SessionID, "two")
		a.Kill()
		w.execute("UPDATE sessions SET updated_at = updated_at + 86400000") // as on another day
		b := w.launch("", nil)
		b.Must("session/load", map[string]any{"sessionId": r.SessionID, "cwd": w.work, "additionalDirectories": []string{other}, "mcpServers": []any{}}, nil)
		w.say(b, r.SessionID, "three")
		for _, req := range w.model.Requests() {
			if got := system(t, req); got != first {
				t.Errorf("request %d is told\n%s\nafter\n%s", req.N, got, first)
			}
		}
		w.git("commit", "-q", "--allow-empty", "-m", "x")
		w.git("checkout", "-q", "--detach")
		w.say(b, r.SessionID, "four")
		w.holds("after a checkout", system(t, w.last()), ", no branch when this turn began\n")
	})
}

// Where there is no repository and no file, that is all.
func TestTold_NothingThere(t *testing.T) {
	w := newWorld(t)
	a := w.launch("", nil)
	w.say(a, a.NewSession(w.work), "one")
	want := w.told(w.work, w.work, "the working directory is in no repository", askMode)
	if got := system(t, w.last()); got != want {
		t.Errorf("it is told\n%s\nwant\n%s", got, want)
	}
}

// Each mode is told as what it means, and a mode that is set in the middle of a turn with the next request: that is what calls are judged by.
func TestTold_TheModeThatCounts(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		gate := make(chan struct{})
		w.set(func() {
			w.answer = func(r fakemodel.Request) fakemodel.Reply {
				last := r.Messages[len(r.Messages)-1]
				switch {
				case last.Role == "user" && strings.HasPrefix(last.Content, "long"):
					reply := fakemodel.Calls(fakemodel.Call{Name: "write", Args: `{"path":"made","content":"x"}`})
					reply.Steps = []fakemodel.Step{{Text: "I write."}, fakemodel.Gate(gate)}
					return reply
				}
				return fakemodel.Text("Done.")
			}
		})
		a := w.launch("", nil)
		s := a.NewSession(w.work)
		means := map[string]string{"plan": "nothing is changed: every call but reading is refused", "edit": "reading and file edits inside the directories go on without asking",
			"auto": "commands that can do no harm go on without asking"}
		for mode, words := range means {
			a.Must("session/set_mode", map[string]any{"sessionId": s, "modeId": mode}, nil)
			w.say(a, s, "short")
			w.holds("mode "+mode, system(t, w.last()), "\nMode: "+mode+" (", words)
		}
		a.Must("session/set_mode", map[string]any{"sessionId": s, "modeId": "edit"}, nil)
		id := a.Prompt(s, "long")
		harness.Eventually(t, "it begins", func() bool { return strings.Contains(a.Text(s), "I write.") })
		a.Must("session/set_mode", map[string]any{"sessionId": s, "modeId": "plan"}, nil)
		close(gate)
		a.Await(id)
		if _, err := os.Stat(filepath.Join(w.work, "made")); err == nil {
			t.Error("something was written in plan mode")
		}
		w.holds("the next request of the turn", system(t, w.last()), "\nMode: plan (")
	})
}

// execute changes what is stored between two launches.
func (w *world) execute(query string) {
	w.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(w.home, "holdfast.db")+"?_busy_timeout=5000")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec(query); err != nil {
		w.t.Fatal(err)
	}
}
