package servers_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// edit is a change that shows when it was made twice.
func edit(path string) map[string]any {
	return map[string]any{"path": path, "edits": []any{map[string]any{"oldText": "hi", "newText": "hi hi"}}}
}

func TestPeers_FilesystemEditsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.peer("files", "server-filesystem", w.work)
	path := w.write("greeting", "hi\n")
	w.answer = follow(turns{"edit it": {tool("mcp__files__edit_file", edit(path))}})
	a := w.start("")
	session := w.open(a)
	w.prompt(a, session, "edit it")
	if got := w.read("greeting"); got != "hi hi\n" {
		t.Errorf("the file says %q", got)
	}
	if got := shown(a, session, "files: edit_file"); got != "completed" {
		t.Errorf("the call is shown as %q", got)
	}
}

// step is a call and what the model has to be told of its outcome.
type step struct {
	name   string
	args   any
	want   string
	status string // "" is completed
}

// walk lets the model make calls one after the other, and compares.
func (w *world) walk(a *harness.Agent, session string, steps []step) {
	w.t.Helper()
	var calls []fakemodel.Call
	for _, s := range steps {
		calls = append(calls, tool(s.name, s.args))
	}
	w.answer = follow(turns{"walk": calls})
	w.prompt(a, session, "walk")
	got := w.results()
	if len(got) != len(steps) {
		w.t.Fatalf("%d results of %d calls", len(got), len(steps))
	}
	var statuses []string
	for _, c := range callsOf(a, session) {
		statuses = append(statuses, c.status)
	}
	for i, s := range steps {
		if !strings.Contains(got[i], s.want) {
			w.t.Errorf("%s answered %.400q, want %q", s.name, got[i], s.want)
		}
		want := s.status
		if want == "" {
			want = "completed"
		}
		if len(statuses) != len(steps) || statuses[i] != want {
			w.t.Errorf("%s is shown as %v", s.name, statuses)
		}
	}
}

func TestPeers_Everything(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.capabilities = noticing
	w.env = []string{"SOME_SECRET=not-for-servers"}
	w.peer("all", "server-everything")
	w.servers[0]["env"] = []any{map[string]string{"name": "FOR_THIS_ONE", "value": "handed over"}}
	a := w.start("")
	session := w.open(a)
	w.walk(a, session, []step{
		{name: "mcp__all__echo", args: map[string]any{"message": "héllo 漢字 🎉"}, want: "Echo: héllo 漢字 🎉"},
		{name: "mcp__all__get-sum", args: map[string]any{"a": 2, "b": 40}, want: "42"},
		{name: "mcp__all__get-sum", args: map[string]any{"a": "two", "b": 40}, want: "arguments", status: "failed"},        // refused before it is sent
		{name: "mcp__all__get-tiny-image", args: map[string]any{}, want: "[image 1 cannot be shown: the image is damaged"}, // it is
		{name: "mcp__all__get-annotated-message", args: map[string]any{"messageType": "error", "includeImage": true}, want: "Error: Operation failed"},
		{name: "mcp__all__get-structured-content", args: map[string]any{"location": "Chicago"}, want: `"temperature"`},
		{name: "mcp__all__get-resource-reference", args: map[string]any{"resourceType": "Text", "resourceId": 1}, want: "[the resource demo://resource/"},
		{name: "mcp__all__get-resource-reference", args: map[string]any{"resourceType": "Blob", "resourceId": 2}, want: "bytes in base64, was left out"},
		{name: "mcp__all__get-resource-links", args: map[string]any{"count": 2}, want: "[a link to the resource "},
		{name: "mcp__all__trigger-long-running-operation", args: map[string]any{"duration": 0.2, "steps": 2}, want: "completed"},
		{name: "mcp__all__no-such-tool", args: map[string]any{}, want: "There is no tool named", status: "failed"},
		{name: "mcp__all__get-env", args: map[string]any{}, want: `"FOR_THIS_ONE": "handed over"`},
	})
	w.noticed(a, session, `"simulate-research-query" of the MCP server "all" is left out: it can only be called as a task`)
	for _, secret := range []string{modelKey, "OPENAI", "HOLDFAST_HOME", "HOLDFAST_MODEL", "not-for-servers", "HOLDFAST_LOG"} {
		if strings.Contains(w.result(), secret) {
			t.Errorf("the server sees %s", secret)
		}
	}
}

func TestPeers_Memory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.peer("notes", "server-memory")
	w.servers[0]["env"] = []any{map[string]string{"name": "MEMORY_FILE_PATH", "value": w.path("memory.jsonl")}}
	a := w.start("")
	session := w.open(a)
	entity := map[string]any{"name": "Zoë 漢", "entityType": "person", "observations": []string{"likes 🍵"}}
	w.walk(a, session, []step{
		{name: "mcp__notes__create_entities", args: map[string]any{"entities": []any{entity}}, want: "Zoë 漢"},
		{name: "mcp__notes__add_observations", args: map[string]any{"observations": []any{map[string]any{"entityName": "Zoë 漢", "contents": []string{"tall"}}}}, want: "tall"},
		{name: "mcp__notes__add_observations", args: map[string]any{"observations": []any{map[string]any{"entityName": "nobody", "contents": []string{"x"}}}},
			want: "nobody", status: "failed"},
		{name: "mcp__notes__search_nodes", args: map[string]any{"query": "likes"}, want: "🍵"},
		{name: "mcp__notes__create_entities", args: map[string]any{"entities": "many"}, want: "entities", status: "failed"},
		{name: "mcp__notes__read_graph", want: "tall"},
	})
	if b, err := os.ReadFile(w.path("memory.jsonl")); err != nil || strings.Count(string(b), "Zoë 漢") != 1 {
		t.Errorf("the server's file says %s, %v", b, err)
	}
}

func TestPeers_Filesystem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.peer("files", "server-filesystem", w.work)
	path := w.write("greeting", "hi\n")
	pixel, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	image, fake := w.write("pixel.png", string(pixel)), w.write("fake.png", "no picture at all")
	a := w.start("")
	session := w.open(a)
	w.walk(a, session, []step{
		{name: "mcp__files__read_text_file", args: map[string]any{"path": path}, want: "hi\n"},
		{name: "mcp__files__edit_file", args: edit(path), want: "+hi hi"},
		{name: "mcp__files__edit_file", args: map[string]any{"path": path, "edits": []any{map[string]any{"oldText": "absent", "newText": "x"}}}, want: "exact match", status: "failed"},
		{name: "mcp__files__read_text_file", args: map[string]any{"path": "/etc/hostname"}, want: "outside allowed directories", status: "failed"},
		{name: "mcp__files__read_media_file", args: map[string]any{"path": image}, want: "[image 1 of the answer, image/png, 70 bytes"},
		{name: "mcp__files__read_media_file", args: map[string]any{"path": fake}, want: "is text/plain"},
		{name: "mcp__files__list_directory", args: map[string]any{"path": w.work}, want: "[FILE] greeting"},
		{name: "mcp__files__write_file", args: map[string]any{"path": filepath.Join(w.work, "new"), "content": "néw\n"}, want: "Successfully wrote"},
	})
	if w.read("greeting") != "hi hi\n" || w.read("new") != "néw\n" {
		t.Errorf("the files say %q and %q", w.read("greeting"), w.read("new"))
	}
	if !slices.ContainsFunc(w.model.Requests(), func(r fakemodel.Request) bool { return len(r.Images()) > 0 }) {
		t.Error("the model was not shown the image")
	}
}

// Five million bytes go each way. What is too long for the model is cut between characters.
func TestPeers_LargeTexts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.peer("all", "server-everything")
	a := w.start("")
	session := w.open(a)
	long := strings.Repeat("é漢🎉x", 5_000_000/len("é漢🎉x"))
	w.walk(a, session, []step{{name: "mcp__all__echo", args: map[string]any{"message": long}, want: "Echo: é漢🎉"}})
	got := w.result()
	if len(got) > 110_000 || len(got) < 90_000 || !utf8.ValidString(got) || strings.ContainsRune(got, utf8.RuneError) {
		t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
	}
	begin, rest, _ := strings.Cut(strings.TrimPrefix(got, "Echo: "), "\n[... ")
	_, end, _ := strings.Cut(rest, "left out here ...]\n")
	end, hint, _ := strings.Cut(end, "\n[")
	if !strings.Contains(hint, "The whole: holdfast effects output ") {
		t.Errorf("nothing says where the whole is: %q", hint)
	}
	if begin == "" || end == "" || !strings.HasPrefix(long, begin) || !strings.HasSuffix(long, end) {
		t.Errorf("the text is not the beginning and the end of what was sent: %.40q ... %.40q", begin, end)
	}
	for _, m := range a.Log() {
		if strings.ContainsRune(string(m.Raw), utf8.RuneError) {
			t.Errorf("a replacement mark in %.200q", m.Raw)
		}
	}
	// The whole answer is kept.
	kept, err := filepath.Glob(filepath.Join(w.home, "answers", "*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	b, err := os.ReadFile(kept[0])
	if err != nil || !strings.Contains(string(b), long) {
		t.Errorf("the kept answer has %d bytes and is not whole: %v", len(b), err)
	}
}

var legal = regexp.MustCompile(`^mcp__[A-Za-z0-9_-]{1,59}$`)

// Whatever servers call their tools, the model gets names that every provider takes, sorted; the server gets its own.
func TestNames_AreLegalAndSorted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	odd := []string{"dots.and/slashes", "día", strings.Repeat("long", 25), "a__b", "plain", "UPPER", "dots_and_slashes"}
	var tools []any
	for _, name := range odd {
		tools = append(tools, map[string]any{"name": name, "description": "Acts.", "inputSchema": map[string]any{"type": "object"}})
	}
	w.hostile("z", nil)
	w.hostile("ünïcode server", plan{"tools": tools})
	w.hostile("a", nil)
	w.answer = follow(turns{"look": nil})
	a := w.start("")
	session := w.open(a)
	w.prompt(a, session, "look")
	var names, all []string
	for _, name := range w.offered() {
		if strings.HasPrefix(name, "mcp__") {
			all = append(all, name)
			if !legal.MatchString(name) {
				t.Errorf("%q is not legal", name)
			}
			if name != "mcp__a__act" && name != "mcp__z__act" {
				names = append(names, name)
			}
		}
	}
	if len(names) != len(odd) || len(all) != len(odd)+2 || !slices.IsSorted(all) {
		t.Fatalf("offered %v", all)
	}
	var calls []fakemodel.Call
	for _, name := range names {
		calls = append(calls, tool(name, map[string]any{"do": "ok", "text": "x"}))
	}
	w.mu.Lock()
	w.answer = follow(turns{"look": nil, "call": calls})
	w.mu.Unlock()
	w.prompt(a, session, "call")
	called := map[string]int{}
	for _, l := range w.lines("ünïcode server.calls") {
		var c struct{ Name string }
		if err := json.Unmarshal([]byte(l), &c); err != nil {
			t.Fatal(err)
		}
		called[c.Name]++
	}
	for _, name := range odd {
		if called[name] != 1 {
			t.Errorf("the server received %q %d times", name, called[name])
		}
	}
	// The names stay the same in another process, whatever other servers there are.
	a.Kill()
	w.servers = w.servers[1:2]
	b := w.replay(session)
	w.prompt(b, session, "look")
	for _, name := range names {
		if !slices.Contains(w.offered(), name) {
			t.Errorf("%s is not offered again", name)
		}
	}
}
