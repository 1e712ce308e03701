package context_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// A goal with a noted piece of evidence and a question that nobody has answered is compacted: all of it is there afterwards, word by word.
func TestFacts_OfAGoalStay(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		const command = `echo "deploy  --all"; touch 'done for ever'`
		w.write("notes.txt", "the tests are green\n")
		w.set(func() {
			w.answer = func(r fakemodel.Request) fakemodel.Reply {
				calls := 0
				var first string
				for _, m := range r.Messages {
					for _, c := range m.ToolCalls {
						if calls++; first == "" {
							first = c.ID
						}
					}
				}
				switch calls {
				case 0:
					return fakemodel.Calls(fakemodel.Call{Name: "read", Args: `{"path":"notes.txt"}`})
				case 1:
					return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"evidence","requirementId":"green","callId":"` + first + `"}`})
				}
				return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: `{"command":"echo \"deploy  --all\"; touch 'done for ever'"}`})
			}
		})
		plain, _, err := harness.Binaries()
		if err != nil {
			t.Fatal(err)
		}
		a := harness.Start(t, harness.Options{Binary: plain, Env: w.env(), Permission: func(json.RawMessage) string { return "" }})
		a.Initialize()
		s := a.NewSession(w.work)
		a.Must("_holdfast/create_goal", map[string]any{"sessionId": s, "objective": objective,
			"requirements": []any{map[string]any{"id": "green", "kind": "semantic", "text": "All  tests are green; none is left out."}}}, nil)
		harness.Eventually(t, "it asks", func() bool { return strings.Contains(w.command(0, "sessions", "approvals"), "deploy") })
		a.Kill()
		harness.Start(t, harness.Options{Binary: plain, Args: []string{"work", "--watch", "--json"}, Env: w.env(), Invalid: true})
		w.command(0, "sessions", "compact", s)
		var facts string
		harness.Eventually(t, "it is compacted", func() bool {
			facts = strings.Join(harness.Rows(t, w.home, "SELECT json_extract(body, '$.compaction.pinned') FROM items WHERE session = ? AND kind = 'compaction'", s), "")
			return facts != ""
		})
		w.holds("what is kept", facts, "The objective, verbatim:\n"+objective, "All  tests are green; none is left out.", "- green is unknown; evidence: ", ": Read notes.txt",
			"Questions that wait for the user's answer:\n- shell: "+command)
		if !strings.Contains(w.command(0, "sessions", "approvals"), "deploy") {
			t.Error("the question is gone")
		}
	})
}

// dot is a small picture of one colour.
func dot(t *testing.T, red uint8) string {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 16, 16))
	draw.Draw(img, img.Bounds(), image.NewUniform(color.RGBA{red, 0, 0, 255}), image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// Pictures of what is covered are not sent again; that of the last message is.
func TestImages_OfTheLastMessageStay(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		a := w.launch("", nil)
		s := a.NewSession(w.work)
		picture := func(text, data string) {
			m := a.Await(a.Begin("session/prompt", map[string]any{"sessionId": s, "prompt": []any{
				map[string]any{"type": "text", "text": text}, map[string]any{"type": "image", "mimeType": "image/png", "data": data}}}))
			if m.Error != nil {
				t.Fatal(m.Error)
			}
		}
		picture("the first picture", dot(t, 255))
		picture("the second picture", dot(t, 0))
		w.say(a, s, "/compact")
		w.mu.Lock()
		if images := len(w.asked[0].Messages[len(w.asked[0].Messages)-1].Images); images != 0 {
			t.Errorf("the request for a summary holds %d pictures", images)
		}
		w.mu.Unlock()
		w.say(a, s, "and now")
		n := 0
		for _, m := range w.last().Messages {
			n += len(m.Images)
		}
		w.holds("the request", everything(w.last()), "the second picture")
		if n != 1 || strings.Contains(everything(w.last()), "the first picture") {
			t.Errorf("the request holds %d pictures:\n%s", n, everything(w.last()))
		}
	})
}
