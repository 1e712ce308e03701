package sdk_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// wires are the ways to ask a model, and the type that the official TypeScript SDK has for the body of a streamed request.
var wires = map[string]struct {
	family, imports, typ string
	env                  []string
	reasoning            string // of the model, as the configuration says it
}{
	"chat":           {"openai", `import type OpenAI from "openai";`, "OpenAI.ChatCompletionCreateParamsStreaming", []string{"HOLDFAST_OPENAI_DIALECT=openai"}, "low, high"},
	"chat elsewhere": {"openai", `import type OpenAI from "openai";`, "OpenAI.ChatCompletionCreateParamsStreaming", nil, "low, high"},
	"responses": {"responses", `import type OpenAI from "openai";`, "OpenAI.Responses.ResponseCreateParamsStreaming",
		[]string{"HOLDFAST_OPENAI_DIALECT=openai"}, "low, high"},
	"messages": {"anthropic", `import type Anthropic from "@anthropic-ai/sdk";`, "Anthropic.MessageCreateParamsStreaming", nil, "low, high"},
	"messages, an older model": {"anthropic", `import type Anthropic from "@anthropic-ai/sdk";`, "Anthropic.MessageCreateParamsStreaming",
		[]string{"HOLDFAST_MODEL=anthropic/claude-older"}, "budget"},
}

// The TypeScript compiler takes every request of a session of many turns for what the official SDK's types say a request is: each body stands as a
// literal of that type, where a member that is misspelt, misplaced, missing or of another type is an error. Copies that are wrong in one place
// each show that it would be found.
func TestTypes_CompilerTakesWhatIsSent(t *testing.T) {
	for _, name := range []string{"openai", "@anthropic-ai/sdk", "typescript"} {
		harness.Peers(t, name)
	}
	for name, w := range wires {
		t.Run(name, func(t *testing.T) {
			bodies := manyTurns(t, w.family, w.reasoning, w.env)
			p := newProgram(t, w.imports, w.typ)
			for i, body := range bodies {
				p.add(fmt.Sprintf("request%03d.ts", i+1), body)
			}
			wrong := 0
			for what, at := range breaks[w.family] {
				for name, change := range map[string]func(map[string]any){"unknown": at.unknown, "type": at.wrong} {
					body, ok := changed(t, bodies, at.path, change)
					if !ok {
						t.Errorf("no request of the session has %s", what)
						continue
					}
					p.add(fmt.Sprintf("wrong-%s-%s.ts", strings.ReplaceAll(what, " ", "-"), name), body)
					wrong++
				}
			}
			found, out := p.compile()
			for file, problem := range found {
				if !strings.HasPrefix(file, "wrong-") {
					t.Errorf("%s is not what the types say: %s", file, problem)
				}
			}
			for file := range p.files {
				if strings.HasPrefix(file, "wrong-") && found[file] == "" {
					t.Errorf("%s is wrong, and nothing was found: the requests are not looked at", file)
				}
			}
			if t.Failed() || wrong == 0 {
				t.Errorf("of %d requests and %d copies that are wrong: %s", len(bodies), wrong, out)
			}
		})
	}
}

// program is a folder of literals that the compiler looks at as one program.
type program struct {
	t            *testing.T
	dir          string
	imports, typ string
	files        map[string]bool
}

func newProgram(t *testing.T, imports, typ string) *program {
	t.Helper()
	dir := t.TempDir()
	modules := filepath.Join(harness.Peers(t, "typescript"), "..")
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return &program{t, dir, imports, typ, map[string]bool{}}
}

// add writes a body as a literal. JSON is TypeScript as it stands.
func (p *program) add(file string, body []byte) {
	p.t.Helper()
	var indented bytes.Buffer
	if err := json.Indent(&indented, body, "", " "); err != nil {
		p.t.Fatal(err)
	}
	text := fmt.Sprintf("%s\nexport const r: %s = %s;\n", p.imports, p.typ, indented.String())
	if err := os.WriteFile(filepath.Join(p.dir, file), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	p.files[file] = true
}

var complaint = regexp.MustCompile(`(?m)^([^\s(]+)\(\d+,\d+\): error (TS\d+: .*)$`)

// compile returns the first problem of each file that has one. One that is not in a file fails the test: then nothing was looked at.
func (p *program) compile() (found map[string]string, out string) {
	p.t.Helper()
	args := []string{filepath.Join("node_modules", "typescript", "bin", "tsc"), "--noEmit", "--strict", "--pretty", "false", "--skipLibCheck", "--types", "",
		"--target", "es2022", "--lib", "es2022,dom,dom.iterable,dom.asynciterable", "--module", "nodenext", "--moduleResolution", "nodenext"}
	for file := range p.files {
		args = append(args, file)
	}
	cmd := exec.Command("node", args...)
	cmd.Dir = p.dir
	b, err := cmd.CombinedOutput()
	found = map[string]string{}
	for _, m := range complaint.FindAllStringSubmatch(string(b), -1) {
		if !p.files[m[1]] {
			p.t.Errorf("the compiler complains of %s", m[0])
		}
		if found[m[1]] == "" {
			found[m[1]] = m[2]
		}
	}
	if err != nil && len(found) == 0 {
		p.t.Fatalf("the compiler did not run: %v\n%s", err, b)
	}
	return found, string(b)
}

// place is where a copy is made wrong: the object at a path, to which a member is added, and one of whose members gets another type. A path goes by
// names; "*" is the first element of an array in which the rest of the path exists.
type place struct {
	path           []string
	unknown, wrong func(map[string]any)
}

func at(member string, value any, path ...string) place {
	return place{path, func(m map[string]any) { m["no_such_member"] = 1 }, func(m map[string]any) { m[member] = value }}
}

// breaks are the places of each wire.
var breaks = map[string]map[string]place{
	"openai": {
		"the request": at("model", 5),
		"the options": at("include_usage", "yes", "stream_options"),
		"a tool":      at("name", 7, "tools", "*", "function"),
		"a call":      at("arguments", map[string]any{}, "messages", "*", "tool_calls", "*", "function"),
		"a part":      at("url", 1, "messages", "*", "content", "*", "image_url"),
		"a message":   at("role", "nobody", "messages", "*"),
	},
	"responses": {
		"the request": at("store", "no"),
		"reasoning":   at("effort", 3, "reasoning"),
		"a tool":      at("strict", "no", "tools", "*"),
		"an item":     at("type", "no_such_item", "input", "*"),
	},
	"anthropic": {
		"the request":  at("max_tokens", "many"),
		"a tool":       at("name", 7, "tools", "*"),
		"instructions": at("text", 1, "system", "*"),
		"a cache mark": at("type", "for_ever", "system", "*", "cache_control"),
		"a source":     at("media_type", "image/x-none", "messages", "*", "content", "*", "source"),
		"a block":      at("type", "no_such_block", "messages", "*", "content", "*"),
	},
}

// changed is the first of the bodies that has the place, with the change made there.
func changed(t *testing.T, bodies [][]byte, path []string, change func(map[string]any)) ([]byte, bool) {
	t.Helper()
	for _, body := range bodies {
		var v map[string]any
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if m := follow(v, path); m != nil {
			change(m)
			out, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return out, true
		}
	}
	return nil, false
}

func follow(v any, path []string) map[string]any {
	if len(path) == 0 {
		m, _ := v.(map[string]any) // nil is none
		return m
	}
	switch x := v.(type) {
	case map[string]any:
		return follow(x[path[0]], path[1:])
	case []any:
		for _, e := range x {
			if m := follow(e, path[1:]); path[0] == "*" && m != nil {
				return m
			}
		}
	}
	return nil
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// plays is the model of the session: what it answers follows from the last word of the user.
func plays(r fakemodel.Request) fakemodel.Reply {
	last := r.Messages[len(r.Messages)-1]
	thinks := []fakemodel.Step{{Reasoning: "I should look."}, {Redacted: "what nobody sees"}, {Text: "I look. "}}
	switch {
	case len(r.Tools) == 0:
		return fakemodel.Text("All of it was looked at.")
	case last.Role == "user" && last.Content == "fail":
		return fakemodel.Calls(fakemodel.Call{Name: "no_such_tool", Args: "{}"}, fakemodel.Call{NoID: true, Name: "read", Args: `{"path":"none"}`},
			fakemodel.Call{Name: "read", Args: `{"path":`})
	case last.Role == "user":
		return fakemodel.Reply{Steps: thinks, Usage: &fakemodel.Usage{Prompt: 9, Completion: 9},
			Calls: []fakemodel.Call{{Name: "read", Args: `{"path":"a.txt"}`}, {Name: "read", Args: `{"path":"a.txt","offset":1}`}}}
	}
	return fakemodel.Text("You said: " + r.LastUser())
}

// manyTurns has a session with everything that goes into a request, and returns the bodies as they arrived: parallel calls, signed and hidden
// reasoning, images, calls that fail, levels of effort, and a conversation that was compacted.
func manyTurns(t *testing.T, family, reasoning string, env []string) (bodies [][]byte) {
	t.Helper()
	model := fakemodel.New(plays).Think()
	defer model.Close()
	dir := t.TempDir()
	home, work := filepath.Join(dir, "home"), filepath.Join(dir, "work")
	env = append(model.Env(family), env...)
	named := ""
	for _, v := range env {
		if rest, ok := strings.CutPrefix(v, "HOLDFAST_MODEL="); ok {
			named = rest
		}
	}
	for _, d := range []string{home, work} {
		must(t, os.Mkdir(d, 0o700))
	}
	must(t, os.WriteFile(filepath.Join(home, "config.toml"), fmt.Appendf(nil, "[[models]]\nname = %q\nreasoning = %q\n", named, reasoning), 0o600))
	must(t, os.WriteFile(filepath.Join(work, "a.txt"), []byte("a file\n"), 0o644))
	plain, _, err := harness.Binaries()
	must(t, err)
	a := harness.Start(t, harness.Options{Binary: plain, Env: append(env, "HOLDFAST_HOME="+home, "HOLDFAST_MAX_TOKENS=8192")})
	a.Initialize()
	s := a.NewSession(work)
	say := func(blocks ...any) {
		t.Helper()
		m := a.Await(a.Begin("session/prompt", map[string]any{"sessionId": s, "prompt": blocks}))
		if m.Error != nil {
			t.Fatalf("%v: %v", blocks, m.Error)
		}
	}
	text := func(text string) any { return map[string]any{"type": "text", "text": text} }
	picture := map[string]any{"type": "image", "mimeType": "image/png", "data": pixel}
	for _, level := range []string{"high", "low", "default", "high"} {
		say(text("turn before " + level))
		a.Must("session/set_config_option", map[string]any{"sessionId": s, "configId": "thought_level", "value": level}, nil)
	}
	say(text("look"), picture)
	say(text("fail"))
	say(text("/compact the file"))
	say(text("once more"), picture)
	say(text("fail"))
	compacted := false
	for _, r := range model.Requests() {
		if r.Refused != "" {
			t.Errorf("request %d was refused: %s", r.N, r.Refused)
		}
		compacted = compacted || bytes.Contains(r.Body, []byte("All of it was looked at.")) && len(r.Tools) > 0
		bodies = append(bodies, r.Body)
	}
	if len(bodies) < 17 || !compacted {
		t.Errorf("only %d requests were made, compacted %v", len(bodies), compacted)
	}
	return bodies
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
