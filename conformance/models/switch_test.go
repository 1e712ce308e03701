package models_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// option is one configuration option of a session.
type option struct {
	ID, Category, Type, CurrentValue string
	Options                          []struct{ Value, Name string }
}

func (o option) values() (all []string) {
	for _, v := range o.Options {
		all = append(all, v.Value)
	}
	return all
}

type optionList struct{ ConfigOptions []option }

func (l optionList) of(id string) option {
	i := slices.IndexFunc(l.ConfigOptions, func(o option) bool { return o.ID == id })
	if i < 0 {
		return option{}
	}
	return l.ConfigOptions[i]
}

// reopen loads a session and returns its options.
func (w *world) reopen(a *harness.Agent, session string) (l optionList) {
	w.t.Helper()
	a.Must("session/load", map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": []any{}}, &l)
	return l
}

// choose sets an option of a session.
func (w *world) choose(a *harness.Agent, session, id, value string) (l optionList) {
	w.t.Helper()
	a.Must("session/set_config_option", map[string]any{"sessionId": session, "configId": id, "value": value}, &l)
	if got := l.of(id).CurrentValue; got != value {
		w.t.Errorf("%s is %q, not %q", id, got, value)
	}
	return l
}

// figures are models that the configuration names, so that they can be chosen at addresses of others.
const figures = "[[models]]\nname = \"openai/gpt-fake\"\nreasoning = \"low, high\"\n[[models]]\nname = \"openai/blind\"\nimages = false\nreasoning = \"none\"\n" +
	"[[models]]\nname = \"anthropic/claude-fake\"\nreasoning = \"low, medium, high\"\n"

// both is an environment in which both providers are the played one.
func (w *world) both(more ...string) {
	w.env = append([]string{"HOLDFAST_MODEL=anthropic/claude-fake", "OPENAI_BASE_URL=" + w.model.URL(), "ANTHROPIC_BASE_URL=" + w.model.Origin()}, more...)
}

// reads calls a tool once for each message of the user, and then answers.
func reads(r fakemodel.Request) fakemodel.Reply {
	last := r.Messages[len(r.Messages)-1]
	if last.Role == "user" {
		return fakemodel.Reply{Steps: []fakemodel.Step{{Reasoning: "I should look."}, {Text: "I look. "}},
			Calls: []fakemodel.Call{{Name: "read", Args: `{"path":"a.txt"}`}, {Name: "read", Args: `{"path":"a.txt","offset":1}`}}, Usage: &fakemodel.Usage{Prompt: 9, Completion: 9}}
	}
	return fakemodel.Text("You said: " + r.LastUser())
}

// since are the requests behind the first n, none of which the service refused.
func (w *world) since(n int) []fakemodel.Request {
	w.t.Helper()
	all := w.model.Requests()[n:]
	for _, r := range all {
		if r.Refused != "" {
			w.t.Errorf("request %d was refused: %s", r.N, r.Refused)
		}
	}
	return all
}

// A session goes on with another model, on another wire, over a restart, and back: what was said and done goes along as each wire takes it, and
// reasoning only to the model that gave it.
func TestSwitch_EveryWireAndBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.Think()
	w.configure(figures)
	w.write("a.txt", "a file\n")
	w.both()
	w.set(func() { w.answer = reads })
	a := w.launch("")
	s := a.NewSession(w.work)
	w.say(a, s, "one")
	w.choose(a, s, "model", "openai/gpt-fake")
	w.say(a, s, "two")
	a.Kill()
	w.both("HOLDFAST_OPENAI_API=responses")
	a = w.launch("")
	if got := w.reopen(a, s).of("model").CurrentValue; got != "openai/gpt-fake" {
		t.Errorf("after a restart the model is %q", got)
	}
	w.say(a, s, "three")
	w.choose(a, s, "model", "anthropic/claude-fake")
	w.say(a, s, "four")
	all := w.since(0)
	var went []string
	for _, r := range all {
		went = append(went, fmt.Sprintf("%s %s %d", r.Family, r.Model, len(r.Results())))
	}
	want := "anthropic claude-fake 0,anthropic claude-fake 2,openai gpt-fake 2,openai gpt-fake 4,responses gpt-fake 4,responses gpt-fake 6,anthropic claude-fake 6,anthropic claude-fake 8"
	if strings.Join(went, ",") != want {
		t.Errorf("the requests are\n%s\nwant\n%s", strings.Join(went, ","), want)
	}
	for i, r := range all {
		for _, said := range []string{"one", "two", "three", "four"}[:i/2+1] {
			if !r.Said(said) {
				t.Errorf("request %d does not hold what the user said: %s", r.N, said)
			}
		}
		if body := string(r.Body); r.Family != "anthropic" && strings.Contains(body, `"signature"`) || r.Family == "openai" && strings.Contains(body, "encrypted_content") {
			t.Errorf("request %d holds reasoning of another model: %s", r.N, body)
		}
	}
	if n := len(thoughts(all[4])); n != 0 {
		t.Errorf("the other wire was sent %d thoughts", n)
	}
	if len(thoughts(all[6])) == 0 || len(thoughts(all[5])) == 0 {
		t.Error("a model's own reasoning did not come back to it")
	}
}

// A model that takes no images is told of those that came before it.
func TestSwitch_Images(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.configure(figures)
	w.both()
	a := w.launch("")
	s := a.NewSession(w.work)
	m := a.Await(a.Begin("session/prompt", map[string]any{"sessionId": s, "prompt": []any{map[string]any{"type": "text", "text": "look"},
		map[string]any{"type": "image", "mimeType": "image/png", "data": pixel}}}))
	if m.Error != nil {
		t.Fatal(m.Error)
	}
	w.choose(a, s, "model", "openai/blind")
	w.say(a, s, "and now?")
	all := w.since(0)
	seen := func(r fakemodel.Request) (n int) {
		for _, m := range r.Messages {
			n += len(m.Images)
		}
		return n
	}
	if len(all) != 2 || seen(all[0]) != 1 || seen(all[1]) != 0 || !strings.Contains(string(all[1].Body), "This model cannot be shown images. 1 image(s) belong here that it does not see.") {
		t.Errorf("%d requests with %v", len(all), all)
	}
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// How much a model thinks is chosen for a session, sent as its wire wants it, stays over a restart, and goes when the next model has no such level.
func TestOptions_Effort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.configure(figures)
	w.both()
	a := w.launch("")
	var made struct {
		SessionID string
		optionList
	}
	a.Must("session/new", map[string]any{"cwd": w.work, "mcpServers": []any{}}, &made)
	s := made.SessionID
	if o := made.of("thought_level"); o.Category != "thought_level" || o.Type != "select" || o.CurrentValue != "default" || strings.Join(o.values(), " ") != "default low medium high" {
		t.Errorf("the option is %+v", o)
	}
	if o := made.of("model"); o.CurrentValue != "anthropic/claude-fake" || !slices.Contains(o.values(), "openai/gpt-fake") || !slices.Contains(o.values(), "openai/blind") {
		t.Errorf("the option is %+v", o)
	}
	if o := made.of("mode"); o.CurrentValue != "ask" || len(o.Options) != 4 {
		t.Errorf("the option is %+v", o)
	}
	for _, bad := range []struct{ id, value, says string }{
		{"thought_level", "xhigh", "the values are default, low, medium, high"}, {"model", "openai/other", "is not offered"}, {"colour", "red", "there are mode, model, thought_level"},
	} {
		_, err := a.Call("session/set_config_option", map[string]any{"sessionId": s, "configId": bad.id, "value": bad.value})
		if err == nil || err.Code != -32602 || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%s = %s: %v", bad.id, bad.value, err)
		}
	}
	w.say(a, s, "one")
	w.choose(a, s, "thought_level", "high")
	w.say(a, s, "two")
	a.Kill()
	a = w.launch("")
	if got := w.reopen(a, s).of("thought_level").CurrentValue; got != "high" {
		t.Errorf("after a restart it is %q", got)
	}
	if shown := w.command("sessions", "show", s); !strings.Contains(shown, "\neffort     high\n") || strings.Contains(shown, "\nmodel      ") {
		t.Errorf("it is shown as\n%s", shown)
	}
	w.say(a, s, "three")
	if got := w.choose(a, s, "model", "openai/gpt-fake").of("thought_level"); got.CurrentValue != "high" || strings.Join(got.values(), " ") != "default low high" {
		t.Errorf("with the other model it is %+v", got)
	}
	if shown := w.command("sessions", "show", s); !strings.Contains(shown, "\nmodel      openai/gpt-fake\n") {
		t.Errorf("it is shown as\n%s", shown)
	}
	w.say(a, s, "four")
	if got := w.choose(a, s, "model", "openai/blind").of("thought_level"); got.ID != "" {
		t.Errorf("a model that cannot reason has the option %+v", got)
	}
	w.say(a, s, "five")
	w.choose(a, s, "model", "anthropic/claude-fake")
	w.say(a, s, "six")
	var sent []string
	for _, r := range w.since(0) {
		var b struct {
			Output struct{ Effort string } `json:"output_config"`
			Effort string                  `json:"reasoning_effort"`
		}
		if err := json.Unmarshal(r.Body, &b); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, b.Output.Effort+b.Effort)
	}
	if got := strings.Join(sent, ","); got != ",high,high,high,," {
		t.Errorf("the levels sent are %s", got)
	}
}

// Another window is told of what is set here, the mode included.
func TestOptions_OtherWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.configure(figures)
	w.both()
	a, b := w.launch(""), w.launch("")
	s := a.NewSession(w.work)
	w.load(b, s)
	told := func(id, value string) func() bool {
		return func() bool {
			for _, u := range b.Updates(s) {
				var v struct {
					SessionUpdate string
					optionList
				}
				if json.Unmarshal(u, &v) == nil && v.SessionUpdate == "config_option_update" && v.of(id).CurrentValue == value {
					return true
				}
			}
			return false
		}
	}
	w.choose(a, s, "model", "openai/gpt-fake")
	harness.Eventually(t, "the other window has the model", told("model", "openai/gpt-fake"))
	w.choose(a, s, "thought_level", "low")
	harness.Eventually(t, "the other window has the level", told("thought_level", "low"))
	w.choose(a, s, "mode", "plan")
	harness.Eventually(t, "the other window has the mode", told("mode", "plan"))
}
