package record_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// converse is a model that thinks, reads, runs a command, fails once, tells secrets and answers the same words differently.
func converse(work string) func(r fakemodel.Request) fakemodel.Reply {
	failed := false
	return func(r fakemodel.Request) fakemodel.Reply {
		results, users := 0, 0
		for _, m := range r.Messages {
			switch m.Role {
			case "tool":
				results++
			case "user":
				users++
			}
		}
		switch {
		case r.LastUser() == "Again":
			return fakemodel.Text("This is answer ", strings.Repeat("I", users), ".")
		case results == 0:
			reply := fakemodel.Calls(call("read", map[string]any{"path": filepath.Join(work, "notes.txt")}), call("list", map[string]any{"path": work}))
			reply.Steps = []fakemodel.Step{{Reasoning: "I must look into " + work + "/notes.txt first."}, {Text: "Let me "}, {Text: "look into ${HOME}."}}
			return reply
		case results == 2:
			return fakemodel.Calls(call("shell", map[string]any{"command": "cd " + work + " && ls && echo $MY_SERVICE_TOKEN '$${x:-y}'"}),
				call("write", map[string]any{"path": "copy.txt", "content": "token = " + envKey}), fakemodel.Call{Name: "read", Args: `{"path": `})
		case !failed:
			failed = true
			reply := fakemodel.Text("The half of")
			reply.End = fakemodel.EndCut
			return reply
		}
		return fakemodel.Text("In ", work, "-other there is nothing; the keys are ", envKey[:9], envKey[9:], " and ", shapedKey, ".")
	}
}

func TestRecording_PlaysTheSameAgain(t *testing.T) {
	for _, family := range fakemodel.Families {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			dir := folder(t)
			recorder := newPlace(t, dir, "a")
			model := fakemodel.New(converse(recorder.work)).Think()
			defer model.Close()
			recorder.env = append(append(recorder.env, model.Env(family)...), "OPENAI_API_KEY="+providerKey, "ANTHROPIC_API_KEY="+providerKey)
			file := filepath.Join(dir, "session.json")
			prompts := []string{"Look into notes.txt, its key is " + envKey, "Again", "Again"}

			a := recorder.launch("--record", file)
			want := recorder.talk(a, prompts...)
			text := recording(t, file)
			for _, part := range []string{"${cwd}/notes.txt", "$${HOME}", `"inputTokens"`, `"kind": "cut_off"`, "[secret hidden by holdfast]"} {
				if !strings.Contains(text, part) {
					t.Errorf("the recording does not hold %s:\n%s", part, text)
				}
			}
			if strings.Contains(text, recorder.work+"/") || strings.Contains(text, recorder.work+`"`) {
				t.Errorf("the recording names the directory it was made in:\n%s", text)
			}
			asked := len(model.Requests())

			player := newPlace(t, dir, "b", "HOLDFAST_MODEL=scripted/"+file)
			got := player.talk(player.launch(), prompts...)
			got = strings.ReplaceAll(got, "W-other", recorder.work+"-other") // no part of the session's directory, so it stays as it was
			if want = strings.ReplaceAll(want, "W-other", recorder.work+"-other"); got != want {
				t.Errorf("recorded:\n%s\n\nplayed:\n%s\n\nfrom:\n%s", want, got, text)
			}
			for _, part := range []string{"This is answer III.", "This is answer IIII.", "The half of", "-other there is nothing", "agent_thought_chunk: I must look"} {
				if !strings.Contains(got, part) {
					t.Errorf("%q was not shown:\n%s", part, got)
				}
			}
			if n := len(model.Requests()); n != asked {
				t.Errorf("playing asked the model %d times", n-asked)
			}
			leftOver(t, dir)
		})
	}
}

// A file of somebody's is not replaced unless that is said, and then whole.
func TestRecording_ReplacesNothingUntold(t *testing.T) {
	dir := folder(t)
	p := newPlace(t, dir, "a")
	model := fakemodel.New(func(fakemodel.Request) fakemodel.Reply { return fakemodel.Text("Hello.") })
	defer model.Close()
	p.env = append(p.env, model.Env(fakemodel.Family())...)
	file := filepath.Join(dir, "kept.json")
	if err := os.WriteFile(file, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"acp", "--record", file}, {"work", "--record", file}} {
		if out := p.refused(args...); !strings.Contains(out, file) || !strings.Contains(out, "--record-over") {
			t.Errorf("%v says:\n%s", args, out)
		}
	}
	if out := p.refused("acp", "--record-over"); !strings.Contains(out, "--record") {
		t.Errorf("it says:\n%s", out)
	}
	if b, _ := os.ReadFile(file); string(b) != "mine" {
		t.Fatalf("the file was changed: %s", b)
	}
	leftOver(t, dir)
	p.talk(p.launch("--record", file, "--record-over"), "Hi")
	if text := recording(t, file); !strings.Contains(text, "Hello.") {
		t.Errorf("the answer is not in the recording:\n%s", text)
	}
}

// What was complete before a kill can be played; the answer that was under way is not in it.
func TestRecording_KilledInTheMiddle(t *testing.T) {
	dir := folder(t)
	p := newPlace(t, dir, "a")
	gate := make(chan struct{})
	defer close(gate)
	model := fakemodel.New(func(r fakemodel.Request) fakemodel.Reply {
		if strings.Contains(r.LastUser(), "second") {
			return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "The second answer begins"}, fakemodel.Gate(gate)}}
		}
		return fakemodel.Text("The first answer.")
	})
	defer model.Close()
	p.env = append(p.env, model.Env(fakemodel.Family())...)
	file := filepath.Join(dir, "session.json")
	a := p.launch("--record", file)
	s := a.NewSession(p.work)
	if text := recording(t, file); !strings.Contains(text, `"rules": []`) {
		t.Errorf("before any answer there is:\n%s", text)
	}
	a.Await(a.Prompt(s, "first"))
	a.Prompt(s, "second")
	if _, ok := a.Find(func(m harness.Message) bool { return strings.Contains(string(m.Params), "The second answer begins") }); !ok {
		t.Fatal("the second answer did not begin")
	}
	a.Kill()
	text := recording(t, file)
	if strings.Contains(text, "second answer") {
		t.Errorf("half an answer is in the recording:\n%s", text)
	}
	var script struct{ Rules []json.RawMessage }
	if err := json.Unmarshal([]byte(text), &script); err != nil || len(script.Rules) != 1 {
		t.Errorf("%d rules (%v) in:\n%s", len(script.Rules), err, text)
	}
	player := newPlace(t, dir, "b", "HOLDFAST_MODEL=scripted/"+file)
	if got := player.talk(player.launch(), "first"); got != "agent_message_chunk: The first answer." {
		t.Errorf("played:\n%s", got)
	}
}
