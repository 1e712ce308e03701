package secrets_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

func git(dir string, args ...string) (string, error) {
	b, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	return string(b), err
}

// without drops variables.
func without(env []string, names ...string) (out []string) {
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		keep := true
		for _, n := range names {
			keep = keep && n != name
		}
		if keep {
			out = append(out, kv)
		}
	}
	return out
}

// A key that setup keeps is used, is private, is never printed, and is hidden like any other.
func TestSetup_KeepsUsesAndForgets(t *testing.T) {
	w := newWorld(t)
	w.env = without(w.env, "OPENAI_API_KEY", "MY_SERVICE_TOKEN")
	w.put("leak", "k="+providerKey+"\n")
	w.calls(fakemodel.Text("done"), call("shell", m{"command": "cat leak"}))
	out, code := w.holdfast(providerKey+"\n", "setup", "--provider", "openai", "--key-stdin")
	if code != 0 || !strings.Contains(out, filepath.Join(w.home, "keys.json")) {
		t.Fatalf("setup: %d %s", code, out)
	}
	search(t, "what setup says", out)
	st, err := os.Stat(filepath.Join(w.home, "keys.json"))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("keys.json: %v %v", st, err)
	}
	out, code = w.holdfast("", "setup", "--list")
	if search(t, "the list", out); code != 0 || !strings.Contains(out, "openai") || !strings.Contains(out, "keys.json") {
		t.Errorf("list: %d %s", code, out)
	}
	a := w.launch()
	session := a.NewSession(w.work)
	a.Await(a.Prompt(session, "show it"))
	_ = a.CloseInput() // it may be gone
	_ = a.Wait()
	w.searchTraffic(a) // the credential is in its header
	if len(w.requests()) < 2 || count(w, mask) == 0 {
		t.Errorf("%d requests, the last with %d masks", len(w.requests()), count(w, mask))
	}
	w.searchHome("keys.json")
	out, _ = w.holdfast("", "doctor")
	if search(t, "doctor", out); !strings.Contains(out, "The key of openai comes from the private file") {
		t.Errorf("doctor: %s", out)
	}
	w.env = append(w.env, "OPENAI_API_KEY=another-key-0123456789")
	if out, _ = w.holdfast("", "doctor"); !strings.Contains(out, "comes from the variable OPENAI_API_KEY") || strings.Contains(out, "another-key") {
		t.Errorf("doctor with the variable: %s", out)
	}
	if out, code = w.holdfast("", "setup", "--remove", "--provider", "openai"); code != 0 {
		t.Errorf("remove: %d %s", code, out)
	}
	w.searchHome()
}

// A key on the command line is refused and not repeated.
func TestSetup_RefusesKeysInArguments(t *testing.T) {
	w := newWorld(t)
	for _, args := range [][]string{{"setup", pastedKey}, {"setup", "--provider", pastedKey, "--key-stdin"}, {"setup", "--provider", "openai"}} {
		out, code := w.holdfast("", args...)
		if search(t, "the refusal", out); code != 2 {
			t.Errorf("%v: exit code %d, %s", args[:1], code, out)
		}
	}
	out, code := w.holdfast("two words "+pastedKey, "setup", "--provider", "openai", "--key-stdin")
	if search(t, "the refusal", out); code != 1 || !strings.Contains(out, "nothing was changed") {
		t.Errorf("a bad key: %d %s", code, out)
	}
}

// An editor is told how to set a key up, and by a terminal only when it has one.
func TestSetup_IsNamedToEditors(t *testing.T) {
	w := newWorld(t)
	w.env = []string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_KEYRING=off"}
	for terminal, want := range map[bool]bool{true: true, false: false} {
		a := harness.Start(t, harness.Options{Binary: builtBinary(t), Env: w.env})
		res, _ := a.Call("initialize", m{"protocolVersion": 1, "clientCapabilities": m{"auth": m{"terminal": terminal}}})
		if got := strings.Contains(string(res), `"type":"terminal"`) && strings.Contains(string(res), `"--setup"`); got != want {
			t.Errorf("with terminal %v the methods are %s", terminal, res)
		}
		_, err := a.Call("session/new", m{"cwd": w.work, "mcpServers": []any{}})
		if err == nil || err.Code != -32000 || !strings.Contains(err.Message, "holdfast setup") {
			t.Errorf("session/new: %v", err)
		}
		_ = a.CloseInput() // it may be gone
		_ = a.Wait()
	}
	if out, code := w.holdfast(pastedKey, "acp", "--setup"); code != 2 || !strings.Contains(out, "no terminal") {
		t.Errorf("the launch line with the sign-in's argument: %d %s", code, out)
	}
}

// What is open to other users is closed at the start; doctor says what was.
func TestModes_AreCorrected(t *testing.T) {
	w := newWorld(t)
	w.calls(fakemodel.Text("done"), call("shell", m{"command": "echo hello"}))
	a := w.launch()
	a.Await(a.Prompt(a.NewSession(w.work), "run it"))
	_ = a.CloseInput() // it may be gone
	_ = a.Wait()
	open := func() (loose []string) {
		_ = filepath.WalkDir(w.home, func(path string, e fs.DirEntry, err error) error {
			if err != nil || strings.Contains(path, "/trees/") {
				return nil
			}
			if st, err := e.Info(); err == nil && st.Mode().Perm()&0o077 != 0 {
				loose = append(loose, path)
			}
			return nil
		})
		return loose
	}
	if got := open(); len(got) > 0 {
		t.Fatalf("open from the start: %v", got)
	}
	if err := os.WriteFile(filepath.Join(w.home, "log.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".", "run", "holdfast.db", "log.jsonl", "calls"} {
		path := filepath.Join(w.home, name)
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, st.Mode().Perm()|0o044); err != nil {
			t.Fatal(err)
		}
	}
	out, _ := w.holdfast("", "doctor")
	if !strings.Contains(out, "could read") || !strings.Contains(out, "taken back") {
		t.Errorf("doctor: %s", out)
	}
	if got := open(); len(got) > 0 {
		t.Errorf("still open: %v", got)
	}
}

// What belongs to another user is refused with a sentence.
func TestModes_OtherOwnersAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can act as two users: sudo go test -run TestModes ./conformance/secrets")
	}
	w := newWorld(t)
	w.calls(fakemodel.Text("done"))
	if err := os.MkdirAll(filepath.Join(w.home, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.own(t, 4711)
	if err := os.WriteFile(filepath.Join(w.home, "run", "x.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := w.as(4711, "work")
	if code != 1 || !strings.Contains(out, "x.sock belongs to another user") {
		t.Errorf("work: %d %s", code, out)
	}
}
