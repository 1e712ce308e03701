package secrets_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

const lookAlikes = "commit da39a3ee5e6b4b0d3255bfef95601890afd80709\nid 01932f5e-7b1a-7c3d-8e4f-0123456789ab\n" +
	"integrity sha512-AKIAIOSFODNN7EXAMPLEzzzz0123456789+/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX==\ncall_0123456789abcdefghijABCDEFGHIJ\n" +
	"task-0123456789abcdef0123456789abcdef\n.sk-fading-circle-with-many-dots {}\n"

// A file with hashes and ids that look like secrets, and with secrets. The agent edits one line of it, and nothing else changes.
func TestSecrets_EditsLeaveFilesRight(t *testing.T) {
	w := newWorld(t)
	secretLine := "token = " + envKey + " # of the service\n"
	before := lookAlikes + secretLine + "color = red\naws = " + fileKey + "\n"
	w.put("conf", before)
	w.put(".gitignore", "home\n")
	w.calls(fakemodel.Text("done"),
		call("read", m{"path": "conf"}),
		call("edit", m{"path": "conf", "edits": []m{{"old": "color = red", "new": "color = blue"}}}),
		call("edit", m{"path": "conf", "edits": []m{{"old": "token = " + mask + " # of the service", "new": "token = " + mask + " # of ours"}}}),
		call("edit", m{"path": "conf", "edits": []m{{"old": "color = blue", "new": "t = [Secret Hidden by Holdfast]"}}}),
		call("write", m{"path": "copy", "content": "token = " + mask + "\n"}),
		call("shell", m{"command": "echo 'token = " + mask + "' > copy"}),
		call("edit", m{"path": "conf", "edits": []m{{"old": "# of the service", "new": "# of ours"}}}),
		call("write", m{"path": "example", "content": "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE\n"}),
	)
	a := w.launch()
	session := a.NewSession(w.work)
	a.Await(a.Prompt(session, "edit it"))
	want := strings.Replace(strings.Replace(before, "color = red", "color = blue", 1), "# of the service", "# of ours", 1)
	if got := w.read("conf"); got != want {
		t.Errorf("the file is\n%q, want\n%q", got, want)
	}
	if _, err := os.Stat(filepath.Join(w.work, "copy")); err == nil {
		t.Errorf("a mask was written into a file: %q", w.read("copy"))
	}
	if got := w.read("example"); got != "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE\n" {
		t.Errorf("what the model made up was written as %q", got)
	}
	reqs := w.model.Requests()
	last := reqs[len(reqs)-1]
	refused := 0
	for i, msg := range last.Results() {
		if i == 0 {
			for l := range strings.Lines(lookAlikes) {
				if !strings.Contains(msg.Content, l) {
					t.Errorf("the model was not shown %q", l)
				}
			}
		}
		if strings.Contains(msg.Content, "stands for a secret") && strings.Contains(msg.Content, "by its number") {
			refused++
		}
	}
	if refused != 4 {
		t.Errorf("%d calls with a mask were refused with the reason, want 4", refused)
	}
	_ = a.CloseInput() // it may be gone
	_ = a.Wait()
	w.searchHome()
	w.undo(session, before)
}

// undo takes the turn back: what is put back is what the file held, or the file is left alone with a reason.
func (w *world) undo(session, before string) {
	w.t.Helper()
	if out, code := w.holdfast("", "sessions", "undo", session); code != 0 && !strings.Contains(out, "not recorded") {
		w.t.Errorf("undo: %d %s", code, out)
	}
	got := w.read("conf")
	if strings.Contains(got, mask) || !strings.Contains(got, envKey) {
		w.t.Errorf("after the undo the file is %q", got)
	}
}

// In a repository the undo has the content itself.
func TestSecrets_UndoRestoresSecrets(t *testing.T) {
	w := newWorld(t)
	if out, err := git(w.work, "init", "-q"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	before := "token = " + envKey + "\ncolor = red\n"
	w.put("conf", before)
	w.calls(fakemodel.Text("done"), call("edit", m{"path": "conf", "edits": []m{{"old": "color = red", "new": "color = blue"}}}))
	a := w.launch()
	session := a.NewSession(w.work)
	a.Await(a.Prompt(session, "edit it"))
	if got := w.read("conf"); got == before {
		t.Fatal("nothing was edited")
	}
	_ = a.CloseInput() // it may be gone
	_ = a.Wait()
	if out, code := w.holdfast("", "sessions", "undo", session); code != 0 {
		t.Errorf("undo: %d %s", code, out)
	}
	if got := w.read("conf"); got != before {
		t.Errorf("after the undo the file is %q", got)
	}
	w.searchHome()
}

// While a command runs, its output file and what the editor sees of it hold no key, though it comes in two halves.
func TestSecrets_RunningCommand(t *testing.T) {
	w := newWorld(t)
	w.put("half1", envKey[:9])
	w.put("half2", envKey[9:])
	w.calls(fakemodel.Text("done"), call("shell", m{"command": "cat half1; until [ -e go ]; do sleep 0.05; done; cat half2; echo .; until [ -e stop ]; do sleep 0.05; done"}))
	a := w.launch()
	session := a.NewSession(w.work)
	id := a.Prompt(session, "run it")
	outs := func() (all []string) {
		paths, _ := filepath.Glob(filepath.Join(w.home, "calls", "*", "out"))
		for _, p := range paths {
			b, _ := os.ReadFile(p) // it may be gone
			all = append(all, string(b))
		}
		return all
	}
	harness.Eventually(t, "the first half is printed", func() bool { o := outs(); return len(o) == 1 && strings.HasPrefix(o[0], envKey[:9]) })
	w.put("go", "")
	harness.Eventually(t, "the key is blanked where it lies", func() bool {
		o := outs()
		return len(o) == 1 && len(o[0]) == len(envKey)+2 && strings.Trim(o[0], "\x1a") == ".\n"
	})
	shown := func() string {
		var b strings.Builder
		for _, u := range a.Updates(session) {
			b.Write(u)
		}
		return b.String()
	}
	harness.Eventually(t, "the editor sees the mask", func() bool { return strings.Contains(shown(), mask) })
	w.put("stop", "")
	a.Await(id)
	search(t, "what the editor saw", shown())
}
