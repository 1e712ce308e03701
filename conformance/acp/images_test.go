package acp_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// picture is a PNG file of one color.
func picture(t testing.TB, w, h int, shade uint8) []byte {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = shade
	}
	m.Set(0, 0, color.White)
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// An image of a prompt and one that read shows reach the model on both wires, are replayed after a crash, and are nowhere but in one place.
func TestImages_InPromptsAndResults(t *testing.T) {
	families(t, func(t *testing.T, family string) {
		sent, read := picture(t, 40, 30, 10), picture(t, 50, 20, 200)
		inPrompt, inFile := base64.StdEncoding.EncodeToString(sent), base64.StdEncoding.EncodeToString(read)
		w := newWorldOf(t, family, func(r fakemodel.Request) fakemodel.Reply {
			if len(r.Results()) == 0 {
				return fakemodel.Calls(fakemodel.Call{Name: "read", Args: `{"path":"pic.png"}`}, fakemodel.Call{Name: "list", Args: `{}`})
			}
			return fakemodel.Text("seen")
		})
		if err := os.WriteFile(w.path("pic.png"), read, 0o600); err != nil {
			t.Fatal(err)
		}
		a := w.start()
		session := a.NewSession(w.work)
		id := a.Begin("session/prompt", map[string]any{"sessionId": session, "prompt": []any{map[string]any{"type": "text", "text": "look"},
			map[string]any{"type": "image", "data": inPrompt, "mimeType": "image/jpeg"}, map[string]any{"type": "text", "text": "well"}}})
		if got := stop(t, a, id); got != "end_turn" {
			t.Fatalf("stopped with %s", got)
		}
		reqs := w.requests(2)
		if got := reqs[0].Images(); len(got) != 1 || got[0] != inPrompt {
			t.Errorf("the first request holds %d images", len(got))
		}
		if got := reqs[1].Images(); len(got) != 2 || got[0] != inPrompt || got[1] != inFile {
			t.Errorf("the second request holds %d images", len(got))
		}
		message(t, a, `"tool_call`, inFile) // as the call appears, or in an update
		a.Signal(syscall.SIGKILL)
		<-a.Ended()
		b := w.start()
		w.load(b, session)
		message(t, b, "user_message_chunk", inPrompt, `"mimeType":"image/png"`)
		message(t, b, `"tool_call"`, inFile)
		if got := stop(t, b, b.Prompt(session, "and now?")); got != "end_turn" {
			t.Errorf("stopped with %s", got)
		}
		if got := w.requests(3)[2].Images(); len(got) != 2 {
			t.Errorf("after the restart a request holds %d images", len(got))
		}
		if err := b.CloseInput(); err != nil {
			t.Error(err)
		}
		once := 0
		_ = filepath.WalkDir(w.home, func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			if bytes.Contains(content, []byte(inPrompt)) || bytes.Contains(content, []byte(inFile)) {
				t.Errorf("%s holds an image as text", path)
			}
			if bytes.Contains(content, sent) {
				once++
				if strings.HasSuffix(path, ".log") {
					t.Errorf("%s holds an image", path)
				}
			}
			return err
		})
		if once == 0 {
			t.Error("the image is stored nowhere")
		}
	})
}

// A model that takes no images is told of them, whoever says so of it: the variable for whichever model, the configuration for this one, where the
// variable is the stronger.
func TestImages_AModelWithoutThem(t *testing.T) {
	families(t, func(t *testing.T, family string) {
		const none = "[[models]]\nname = \"openai/fa*\"\nimages = false\n\n[[models]]\nname = \"anthropic/claude-fake\"\nimages = false\n"
		for name, tc := range map[string]struct {
			env, config string
			images      int
		}{
			"by the variable":      {env: "HOLDFAST_IMAGES=no"},
			"by the configuration": {config: none},
			"of another model":     {config: strings.NewReplacer("fa*", "fak", "claude-fake", "claude-fak").Replace(none), images: 1},
			"by both":              {env: "HOLDFAST_IMAGES=yes", config: none, images: 1},
		} {
			t.Run(name, func(t *testing.T) {
				w := newWorldOf(t, family, nil)
				if tc.env != "" {
					w.env = append(w.env, tc.env)
				}
				if tc.config != "" {
					if err := os.MkdirAll(w.home, 0o700); err != nil {
						t.Fatal(err)
					}
					w.configure(tc.config)
				}
				a := w.start()
				session := a.NewSession(w.work)
				id := a.Begin("session/prompt", map[string]any{"sessionId": session, "prompt": []any{
					map[string]any{"type": "image", "data": base64.StdEncoding.EncodeToString(picture(t, 40, 30, 10)), "mimeType": "image/png"}}})
				if got := stop(t, a, id); got != "end_turn" {
					t.Fatalf("stopped with %s", got)
				}
				r := w.requests(1)[0]
				told := strings.Contains(r.LastUser(), "cannot be shown images") && strings.Contains(r.LastUser(), "[image: png, 40x30 pixels")
				if len(r.Images()) != tc.images || told != (tc.images == 0) {
					t.Errorf("the model got %d images and %q", len(r.Images()), r.LastUser())
				}
			})
		}
	})
}

// The client's buffers are read when it offers them. What differs from the disk is said, and cannot be written over unseen.
func TestBuffers_EditorAndDisk(t *testing.T) {
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		call := func(name, args string) fakemodel.Reply {
			return fakemodel.Calls(fakemodel.Call{Name: name, Args: args})
		}
		switch len(r.Results()) {
		case 0:
			return call("read", `{"path":"a.txt"}`)
		case 1:
			return call("write", `{"path":"a.txt","content":"from the stale copy\n"}`)
		case 2:
			return call("read", `{"path":"a.txt","from":"disk"}`)
		}
		return fakemodel.Text("done")
	})
	if err := os.WriteFile(w.path("a.txt"), []byte("changed by a command\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plain, _, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	a := harness.Start(t, harness.Options{Binary: plain, Env: append([]string{"HOLDFAST_HOME=" + w.home}, w.env...), Incoming: func(a *harness.Agent, m harness.Message) {
		switch m.Method {
		case "fs/read_text_file":
			a.Answer(m.ID, map[string]any{"content": "old text in the editor\n"})
		case "session/request_permission":
			a.Answer(m.ID, map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": "allow_once"}})
		}
	}})
	a.Must("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{"fs": map[string]any{"readTextFile": true}}}, nil)
	session := a.NewSession(w.work)
	if got := stop(t, a, a.Prompt(session, "go")); got != "end_turn" {
		t.Fatalf("stopped with %s", got)
	}
	asked := message(t, a, "fs/read_text_file")
	if p := decode[struct{ SessionID, Path string }](t, asked.Params); p.SessionID != session || p.Path != w.path("a.txt") {
		t.Errorf("the client was asked for %+v", p)
	}
	results := w.requests(4)[3].Results()
	for i, want := range []string{"old text in the editor", "Read it first", "changed by a command"} {
		if !strings.Contains(results[i].Content, want) {
			t.Errorf("result %d is %q", i+1, results[i].Content)
		}
	}
	if !strings.Contains(results[0].Content, "The file on disk differs") || strings.Contains(results[0].Content, "version") {
		t.Errorf("the first result is %q", results[0].Content)
	}
	if got := w.file("a.txt"); got != "changed by a command\n" {
		t.Errorf("the file holds %q", got)
	}
}

// A client that does not answer holds no read up for good, and is not asked again and again.
func TestBuffers_ASilentClient(t *testing.T) {
	const reads = 4
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if n := len(r.Results()); n < reads {
			return fakemodel.Calls(fakemodel.Call{Name: "read", Args: fmt.Sprintf(`{"path":"a.txt","limit":%d}`, n+1)})
		}
		return fakemodel.Text("done")
	})
	if err := os.WriteFile(w.path("a.txt"), []byte("on disk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := w.raw(nil)
	a.Must("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{"fs": map[string]any{"readTextFile": true}}}, nil)
	session := a.NewSession(w.work)
	if got := stop(t, a, a.Prompt(session, "go")); got != "end_turn" {
		t.Fatalf("stopped with %s", got)
	}
	asked := 0
	for _, m := range a.Log() {
		if m.Method == "fs/read_text_file" {
			asked++
		}
	}
	if asked != 2 {
		t.Errorf("a silent client was asked %d times", asked)
	}
	for _, r := range w.requests(reads + 1)[reads].Results() {
		if !strings.HasPrefix(r.Content, "1\ton disk\n") {
			t.Errorf("a result is %q", r.Content)
		}
	}
}
