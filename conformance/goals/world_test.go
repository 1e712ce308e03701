// Package goals_test holds the real binary to what it promises about goals: they are pursued over many turns, achieved by an independent review
// alone, and neither a model that claims too much, nor one that goes in circles, nor a death at any moment changes that. Only the language model is
// played.
package goals_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// world is one store, one work tree and one model that plays the worker and the reviewer.
type world struct {
	t               *testing.T
	dir, home, work string
	model           *fakemodel.Server

	mu      sync.Mutex
	worker  player
	review  player
	extract player // requests for requirements; set by extracting
	chat    player // anything else
}

// player answers one request of a conversation.
type player func(fakemodel.Request) fakemodel.Reply

func newWorld(t *testing.T, worker, review player) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-") // short: the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), worker: worker, review: review}
	w.chat = func(r fakemodel.Request) fakemodel.Reply { return fakemodel.Text("You said: " + r.LastUser()) }
	w.model = fakemodel.New(w.answer).Think()
	t.Cleanup(func() {
		w.explain()
		w.put("go") // whatever command is held may end
		w.model.Close()
		harness.Eventually(t, "nothing writes there any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) answer(r fakemodel.Request) fakemodel.Reply {
	w.mu.Lock()
	p := w.chat
	switch {
	case offers(r, "submit_requirements"):
		p = w.extract
	case offers(r, "submit_review"):
		p = w.review
	case offers(r, "update_goal"):
		p = w.worker
	}
	w.mu.Unlock()
	return p(r)
}

// extracting lets the model be asked what objectives demand.
func (w *world) extracting(p player) *world {
	w.set(func() { w.extract = p })
	w.model.Extract()
	return w
}

// holding puts a file there that a reviewer can read and cite.
func (w *world) holding(name string) *world {
	w.write(name, "result\n")
	return w
}

// set changes what the model does.
func (w *world) set(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn()
}

func offers(r fakemodel.Request, tool string) bool {
	return slices.ContainsFunc(r.Tools, func(t fakemodel.Tool) bool { return t.Name == tool })
}

// explain shows what happened in a failed test.
func (w *world) explain() {
	if !w.t.Failed() {
		return
	}
	if b, err := os.ReadFile(filepath.Join(w.home, "log.jsonl")); err == nil {
		w.t.Logf("log:\n%s", b)
	}
	for _, r := range w.model.Requests() {
		w.t.Logf("request %d %s: %d messages, the last: %+v", r.N, r.Refused, len(r.Messages), r.Messages[max(0, len(r.Messages)-2):])
	}
}

// requests counts the requests that offer a tool.
func (w *world) requests(tool string) (n int) {
	for _, r := range w.model.Requests() {
		if offers(r, tool) {
			n++
		}
	}
	return n
}

// launch starts the agent, which dies at the point unless that is "".
func (w *world) launch(point string, permission func(json.RawMessage) string) *harness.Agent {
	w.t.Helper()
	plain, faulty, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	env := append([]string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_LOG=info"}, w.model.Env(fakemodel.Family())...)
	if point != "" {
		plain = faulty
		env = append(env, "HOLDFAST_CRASH="+point, "HOLDFAST_CRASH_LOG="+filepath.Join(w.dir, "fired"))
	}
	if permission == nil {
		permission = func(json.RawMessage) string { return "allow_once" }
	}
	a := harness.Start(w.t, harness.Options{Binary: plain, Env: env, Permission: permission})
	a.Initialize()
	return a
}

// start launches an agent with a session in which edits need no question.
func (w *world) start() (*harness.Agent, string) {
	w.t.Helper()
	a := w.launch("", nil)
	return a, w.session(a)
}

func (w *world) session(a *harness.Agent) string {
	w.t.Helper()
	s := a.NewSession(w.work)
	a.Must("session/set_mode", map[string]any{"sessionId": s, "modeId": "edit"}, nil)
	return s
}

func (w *world) load(a *harness.Agent, s string) {
	w.t.Helper()
	a.Must("session/load", map[string]any{"sessionId": s, "cwd": w.work, "mcpServers": []any{}}, nil)
}

func (w *world) put(name string) {
	_ = os.WriteFile(filepath.Join(w.work, name), nil, 0o600) // the folder may be gone at the end
}

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.work, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) lines(name string) int {
	b, _ := os.ReadFile(filepath.Join(w.work, name)) // it may not be there yet
	return strings.Count(string(b), "\n")
}

// view is what is looked at of a goal.
type view struct {
	GoalID, SessionID, Objective, Status, Phase, ReasonCode, Reason, Feedback string
	Revision, ControlVersion                                                  int64
	Requirements                                                              []requirement
	Todo                                                                      []item
	Extraction                                                                struct{ State, Note string }
	NextAction                                                                struct {
		Owner   string
		Allowed []string
	}
	Usage   struct{ InputTokens, OutputTokens, UnknownRequests int64 }
	History []struct{ What, Run, Kind, State, Title, Effect, Fact, Digest string }
}

type requirement struct {
	ID, Kind, Text, Command, Path, Result, Reason, JudgedBy, Origin string
	Confirmed                                                       bool
	Evidence                                                        []string
}

type item struct {
	ID, Content, Status string
	Optional, Blocked   bool
	Evidence            []string
}

// create sets a goal.
func create(a *harness.Agent, s, objective string, more map[string]any) view {
	params := map[string]any{"sessionId": s, "objective": objective}
	for k, v := range more {
		params[k] = v
	}
	var r struct{ Goal view }
	a.Must("create_goal", params, &r)
	return r.Goal
}

func get(a *harness.Agent, s string) view {
	var r struct{ Goal view }
	a.Must("get_goal", map[string]any{"sessionId": s, "history": true}, &r)
	return r.Goal
}

func update(a *harness.Agent, s, action string, more map[string]any) view {
	params := map[string]any{"sessionId": s, "action": action}
	for k, v := range more {
		params[k] = v
	}
	var r struct{ Goal view }
	a.Must("update_goal", params, &r)
	return r.Goal
}

// until waits for a status and returns the goal.
func (w *world) until(a *harness.Agent, s, status string) (v view) {
	w.t.Helper()
	harness.Eventually(w.t, "the goal is "+status, func() bool { v = get(a, s); return v.Status == status })
	return v
}

// plans are the plans that a client was shown, as they came.
func plans(t *testing.T, a *harness.Agent, s string) (out [][]string) {
	t.Helper()
	for _, raw := range a.Updates(s) {
		var u struct {
			SessionUpdate string
			Entries       []struct {
				Content, Status string
				Meta            struct{ Holdfast struct{ ID string } } `json:"_meta"`
			}
		}
		if err := json.Unmarshal(raw, &u); err != nil {
			t.Fatal(err)
		}
		if u.SessionUpdate != "plan" {
			continue
		}
		rows := []string{}
		for _, e := range u.Entries {
			rows = append(rows, e.Meta.Holdfast.ID+" "+e.Content+" "+e.Status)
		}
		out = append(out, rows)
	}
	return out
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// at says where a worker's request stands: in which turn of the goal, and after how many answers in it.
func at(r fakemodel.Request) (turn, step int) {
	for _, m := range r.Messages {
		switch {
		case m.Role == "user" && strings.HasPrefix(m.Content, "[Goal] "):
			turn, step = turn+1, 0
		case m.Role == "assistant":
			step++
		}
	}
	return turn, step
}

// script plays turns: in each the replies in order, and then a word. The last turn comes again and again.
func script(turns ...[]fakemodel.Reply) player {
	return func(r fakemodel.Request) fakemodel.Reply {
		turn, step := at(r)
		t := turns[min(max(turn, 1), len(turns))-1]
		if step < len(t) {
			return t[step]
		}
		return fakemodel.Text(fmt.Sprint("turn ", turn, " ends"))
	}
}

func turn(replies ...fakemodel.Reply) []fakemodel.Reply { return replies }

func call(name string, args any) fakemodel.Reply {
	return fakemodel.Calls(fakemodel.Call{Name: name, Args: encode(args)})
}

func writes(path, text string) fakemodel.Reply {
	return fakemodel.Calls(fakemodel.Call{ID: "w-" + path, Name: "write", Args: encode(map[string]string{"path": path, "content": text})})
}

func shell(command string) fakemodel.Reply {
	return call("shell", map[string]string{"command": command})
}

func candidate() fakemodel.Reply {
	return call("update_goal", map[string]string{"action": "candidate", "text": "all of it is done, trust me"})
}

// todo is update_todo with entries of the form "content status", or "content status more" where more are members.
func todo(entries ...map[string]any) fakemodel.Reply {
	return call("update_todo", map[string]any{"entries": append([]map[string]any{}, entries...)})
}

func entry(content, status string, more ...any) map[string]any {
	m := map[string]any{"content": content, "status": status}
	for i := 0; i+1 < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	return m
}

// made is the id of the last call of a tool in a request; "" when there was none.
func made(r fakemodel.Request, tool string) (id string) {
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			if c.Name == tool {
				id = c.ID
			}
		}
	}
	return id
}

// judge plays a reviewer that reads a file and gives these results, each with that read as evidence.
func judge(path string, results map[string]string) player {
	return func(r fakemodel.Request) fakemodel.Reply {
		read := made(r, "read")
		if read == "" {
			return call("read", map[string]string{"path": path})
		}
		return verdict(results, read)
	}
}

func verdict(results map[string]string, evidence string) fakemodel.Reply {
	var list []any
	for id, result := range results {
		list = append(list, map[string]any{"id": id, "result": result, "evidence": []string{evidence}, "reason": "SECRET-ASSESSMENT of " + id})
	}
	return call("submit_review", map[string]any{"requirements": list})
}

// accepts is a reviewer that reads out.txt and finds the objective met.
var accepts = judge("out.txt", map[string]string{"objective": "met"})
