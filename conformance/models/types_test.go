package models_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"holdfast/conformance/fakemodel"
)

// through reads a body into the parameters of an official SDK and writes it again.
func through[T any](body []byte) ([]byte, error) {
	var p T
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, err
	}
	return json.Marshal(p)
}

var sdks = map[string]func([]byte) ([]byte, error){
	"openai":    through[openai.ChatCompletionNewParams],
	"responses": throughResponses,
	"anthropic": through[anthropic.MessageNewParams],
}

// throughResponses reads what the model itself said by its own type: the types take any message for one that somebody else wrote, which has no id.
func throughResponses(body []byte) ([]byte, error) {
	written, err := through[responses.ResponseNewParams](body)
	if err != nil {
		return nil, err
	}
	var from, to map[string]json.RawMessage
	var given, got []json.RawMessage
	if err := errors.Join(json.Unmarshal(body, &from), json.Unmarshal(written, &to), json.Unmarshal(from["input"], &given), json.Unmarshal(to["input"], &got)); err != nil {
		return nil, err
	}
	for i, raw := range given {
		var it struct{ Type, ID string }
		if err := json.Unmarshal(raw, &it); err != nil {
			return nil, err
		}
		if it.Type == "message" && it.ID != "" && i < len(got) {
			if got[i], err = through[responses.ResponseOutputMessageParam](raw); err != nil {
				return nil, err
			}
		}
	}
	if to["input"], err = json.Marshal(got); err != nil {
		return nil, err
	}
	return json.Marshal(to)
}

// Every request of a session of many turns is one that the official SDK's own types hold: read into them and written again it is the same, so
// that no member is misspelt, misplaced or of another type. "stream" is the one member that the types leave to the method that is called.
func TestTypes_HoldWhatIsSent(t *testing.T) {
	for family, again := range sdks {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.Think()
			w.configure("[[models]]\nname = \"" + strings.TrimPrefix(w.model.Env(family)[0], "HOLDFAST_MODEL=") + "\"\nreasoning = \"low, high\"\n")
			w.env = append(w.model.Env(family), "HOLDFAST_MAX_TOKENS=4096")
			w.write("a.txt", "a file\n")
			w.set(func() { w.answer = reads })
			a := w.launch("")
			s := a.NewSession(w.work)
			for i := range 4 {
				w.say(a, s, fmt.Sprint("turn ", i))
				w.choose(a, s, "thought_level", []string{"high", "low", "default", "high"}[i])
			}
			m := a.Await(a.Begin("session/prompt", map[string]any{"sessionId": s, "prompt": []any{map[string]any{"type": "text", "text": "look"},
				map[string]any{"type": "image", "mimeType": "image/png", "data": pixel}}}))
			if m.Error != nil {
				t.Fatal(m.Error)
			}
			w.set(func() {
				w.answer = func(r fakemodel.Request) fakemodel.Reply {
					if r.Messages[len(r.Messages)-1].Role == "user" {
						return fakemodel.Calls(fakemodel.Call{Name: "no_such_tool", Args: "{}"}, fakemodel.Call{NoID: true, Name: "read", Args: `{"path":"none"}`})
					}
					return said(r)
				}
			})
			w.say(a, s, "fail")
			all := w.since(0)
			if len(all) < 12 {
				t.Errorf("only %d requests were made", len(all))
			}
			for _, r := range all {
				written, err := again(r.Body)
				if err != nil {
					t.Errorf("request %d cannot be read: %v", r.N, err)
					continue
				}
				if lost := differences("", tree(t, r.Body), tree(t, written)); len(lost) > 0 {
					t.Errorf("request %d is not what the SDK's types hold: %s", r.N, strings.Join(lost, "; "))
				}
			}
		})
	}
}

func tree(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var v map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	delete(v, "stream")
	return v
}

// differences are the places in which two documents differ.
func differences(at string, a, b any) (out []string) {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		for name, v := range x {
			out = append(out, differences(at+"."+name, v, y[name])...)
		}
		for name := range y {
			if _, ok := x[name]; !ok {
				out = append(out, at+"."+name+" is new")
			}
		}
		return out
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			out = append(out, differences(fmt.Sprintf("%s[%d]", at, i), x[i], y[i])...)
		}
		return out
	}
	if text, ok := a.(string); ok && reflect.DeepEqual(b, []any{map[string]any{"type": "text", "text": text}}) {
		return nil // the documented short form, which the types write out
	}
	if !reflect.DeepEqual(a, b) {
		out = append(out, fmt.Sprintf("%s is %.100v, and then %.100v", at, a, b))
	}
	return out
}
