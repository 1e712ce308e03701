// Package record_test records what a model answers through the real binary, plays the file in another directory, and compares what the two
// editors were shown. Only the language model is played.
package record_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// The secrets: one of the environment, one that is known by its shape only, and the provider's own.
const (
	envKey      = "env-7f3a9c21-Zq8Rw5Ty2Ui"
	shapedKey   = "ghp_InAFileOnly0123456789abcdefABCDEFghi"
	providerKey = "sk-proj-Prov1derKeyAb3dEf6hIj9kLmN0pQrStUvWxYz12"
)

// place is one state directory with one work tree.
type place struct {
	t          *testing.T
	home, work string
	env        []string
}

func newPlace(t *testing.T, dir, name string, env ...string) *place {
	t.Helper()
	p := &place{t: t, home: filepath.Join(dir, name+"-home"), work: filepath.Join(dir, name+"-work")}
	for _, d := range []string{p.home, p.work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text := "first line\ntoken = " + envKey + "\nother = " + shapedKey + "\nlast line\n"
	if err := os.WriteFile(filepath.Join(p.work, "notes.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.env = append([]string{"HOLDFAST_HOME=" + p.home, "HOLDFAST_KEYRING=off", "MY_SERVICE_TOKEN=" + envKey}, env...)
	return p
}

// folder is a short one: the path of a socket is limited.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		harness.Eventually(t, "nothing writes there any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	return dir
}

func binary(t *testing.T) string {
	t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func (p *place) launch(args ...string) *harness.Agent {
	p.t.Helper()
	a := harness.Start(p.t, harness.Options{Binary: binary(p.t), Args: append([]string{"acp"}, args...), Env: p.env})
	a.Initialize()
	return a
}

// refused runs the binary, which must end with an error, and returns what it says.
func (p *place) refused(args ...string) string {
	p.t.Helper()
	cmd := exec.Command(binary(p.t), args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, p.env...)
	out, err := cmd.CombinedOutput()
	if err == nil {
		p.t.Fatalf("%v did not fail:\n%s", args, out)
	}
	return string(out)
}

// talk says the prompts one after the other and returns what was shown, with the work tree as W.
func (p *place) talk(a *harness.Agent, prompts ...string) string {
	p.t.Helper()
	s := a.NewSession(p.work)
	for _, text := range prompts {
		if m := a.Await(a.Prompt(s, text)); m.Error != nil {
			p.t.Fatalf("%s: %v", text, m.Error)
		}
	}
	return strings.ReplaceAll(shown(p.t, a.Updates(s)), p.work, "W")
}

// shown is what an editor has in its window at the end: texts joined, each call once with its last state.
func shown(t *testing.T, updates []json.RawMessage) string {
	t.Helper()
	var lines []string
	calls, order, kind := map[string]map[string]any{}, map[string]int{}, ""
	for _, raw := range updates {
		var u map[string]any
		if err := json.Unmarshal(raw, &u); err != nil {
			t.Fatal(err)
		}
		was := kind
		switch kind, _ = u["sessionUpdate"].(string); kind {
		case "agent_message_chunk", "agent_thought_chunk":
			text := u["content"].(map[string]any)["text"].(string)
			if was == kind {
				lines[len(lines)-1] += text
			} else {
				lines = append(lines, kind+": "+text)
			}
		case "tool_call", "tool_call_update":
			id := u["toolCallId"].(string)
			if calls[id] == nil {
				calls[id], order[id] = map[string]any{}, len(lines)
				lines = append(lines, "")
			}
			for _, name := range []string{"title", "kind", "status", "rawInput", "content"} {
				if v, ok := u[name]; ok {
					calls[id][name] = v
				}
			}
		default:
			kind = was
		}
	}
	for id, c := range calls {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		lines[order[id]] = "call: " + string(b)
	}
	return strings.Join(lines, "\n")
}

// recording reads a file that is for its owner only, holds no secret and is a script.
func recording(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the recording has the mode %v", info.Mode().Perm())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{envKey, shapedKey, providerKey} {
		for _, part := range []string{key[:len(key)*3/5], key[len(key)*2/5:]} {
			if bytes.Contains(b, []byte(part)) {
				t.Errorf("the recording holds a secret:\n%s", b)
			}
		}
	}
	if !json.Valid(b) {
		t.Errorf("the recording is no JSON:\n%s", b)
	}
	return string(b)
}

// leftOver fails when writing the file has left anything beside it.
func leftOver(t *testing.T, dir string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		if strings.HasPrefix(filepath.Base(path), ".holdfast-record-") {
			t.Errorf("%s was left", path)
		}
		return nil
	})
}

func call(name string, args map[string]any) fakemodel.Call {
	b, err := json.Marshal(args)
	if err != nil {
		panic(fmt.Sprint(err))
	}
	return fakemodel.Call{Name: name, Args: string(b)}
}
