package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// Without a store the listings are empty, are documents, and make none.
func TestListing_WithoutAStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for line, want := range map[string]string{
		"goals": "[]", "goals list": "[]", "sessions": "[]", "sessions list": "[]", "sessions approvals": "[]", "effects": "[]", "effects list --unknown": "[]",
		"ps": `{"processes":[],"commands":[],"queue":[]}`, "stop --all": "[]",
	} {
		args := strings.Fields(line)
		var got, wanted any
		r := w.want(0, append(args, "--json")...)
		if got = one[any](t, r.out); r.errs != "" {
			t.Errorf("%s --json says %q", line, r.errs)
		}
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(wanted) {
			t.Errorf("%s: %v, want %v", line, got, wanted)
		}
		if r := w.want(0, args...); r.out != "" || !strings.HasPrefix(r.errs, "holdfast: no ") || !strings.HasSuffix(r.errs, " in "+w.home+"\n") {
			t.Errorf("%s says %q and %q", line, r.out, r.errs)
		}
	}
	v := document[struct {
		Version, Go, OS, Arch string
		Schema                int
	}](w, "version")
	if v.Version == "" || v.Schema == 0 || v.Go == "" || v.OS == "" || v.Arch == "" {
		t.Errorf("version %+v", v)
	}
	if _, err := os.Stat(w.home); !os.IsNotExist(err) {
		t.Errorf("a listing made a state directory: %v", err)
	}
}

// A command line that makes no sense ends with 2 and says what to do; an id that names nothing with 1.
func TestListing_Errors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(""))
	w.want(0, "goals", "create", "first")
	w.want(0, "goals", "create", "second") // its id begins as the first one's
	all := document[[]goal](w, "goals")
	if len(all) != 2 || all[0].Objective != "second" {
		t.Fatalf("goals, newest first: %+v", all)
	}
	id, older := all[0].GoalID, all[1].GoalID
	common := 0
	for common < len(id) && id[common] == older[common] {
		common++
	}
	for _, c := range []struct {
		code int
		args []string
		says string
	}{
		{2, []string{"goals", "--nope"}, "--nope"},
		{2, []string{"goals", "nope"}, "Run 'holdfast goals --help'"},
		{2, []string{"nope"}, "Run 'holdfast --help'"},
		{2, []string{"gaols"}, "did you mean goals?"},
		{2, []string{"gaols", "--help"}, "did you mean goals?"},
		{2, []string{"goals", "shwo", "--help"}, "did you mean show?"},
		{2, []string{"help", "nonsense"}, "nonsense"},
		{2, []string{"help", "goals", "nonsense"}, "nonsense"},
		{2, []string{"goals", "create", "-mode", "edit", "x"}, "write --mode"},
		{2, []string{"goals", "--limit", "-1"}, "from 0 on"},
		{2, []string{"goals", "show", id, id}, "2 arguments were"},
		{2, []string{"goals", "show"}, "the id of a goal"},
		{2, []string{"goals", "show", "1234567"}, "at least 8"},
		{2, []string{"goals", "create"}, "say what is to be achieved"},
		{2, []string{"goals", "create", "--mode", "yolo", "x"}, "ask, edit, auto, plan"},
		{2, []string{"goals", "create", "--require-file", "x:[", "y"}, "--require-file: error parsing"},
		{2, []string{"goals", "revise", id, "--objective", "x"}, "needs a reason"},
		{2, []string{"effects", "settle", id}, "--did-not-happen"},
		{2, []string{"sessions", "mode", all[0].SessionID, "yolo"}, "ask, edit, auto, plan"},
		{2, []string{"stop"}, "--all"},
		{2, []string{"stop", id, "--all"}, "--all"},
		{1, []string{"goals", "show", "12345678"}, "holdfast goals"},
		{1, []string{"sessions", "show", id}, "there is no session"}, // a goal is no session
		{1, []string{"effects", "show", "12345678"}, "holdfast effects"},
		{1, []string{"sessions", "answer", "12345678", "allow_once"}, "holdfast sessions approvals"},
		{1, []string{"stop", "12345678"}, "12345678"},
		{1, []string{"goals", "create", "--cwd", "/no/such/dir", "x"}, "does not exist"},
		{1, []string{"goals", "resume", id}, "holdfast: cannot resume"}, // nothing of what led to it inside
		{1, []string{"goals", "pause", id, "--expect", "7"}, "holdfast: the goal changed since"},
		{1, []string{"goals", "create", "--session", all[0].SessionID, "x"}, "holdfast: the session already has an unfinished goal"},
		{1, []string{"goals", "create", "--session", all[0].SessionID, "x"}, "pass --replace"},
		{1, []string{"goals", "show", id[:common]}, older[len(older)-8:] + ", " + id[len(id)-8:]}, // ambiguous: it names endings that are not
	} {
		r := w.run(c.args...)
		if r.code != c.code || !strings.Contains(r.errs, c.says) || r.out != "" {
			t.Errorf("%q: code %d, stdout %q, stderr %q; want %d with %q", c.args, r.code, r.out, r.errs, c.code, c.says)
		}
	}
	if g := w.goal(id[:common+1]); g.GoalID != id {
		t.Errorf("the beginning of an id found %+v", g)
	}
	if got := document[[]goal](w, "sessions", "--cwd", "/no/such/dir"); len(got) != 0 {
		t.Errorf("sessions of a directory that is gone: %+v", got)
	}
	for _, args := range [][]string{{"--version"}, {"-v"}} {
		if r := w.want(0, args...); r.out != w.want(0, "version").out {
			t.Errorf("%s says %q", args, r.out)
		}
	}
	for _, args := range [][]string{{"help"}, {"help", "goals", "show"}, {"--help"}, {"goals", "show", "x", "--help"}} {
		if r := w.want(0, args...); !strings.Contains(r.out, "Usage:") || r.errs != "" {
			t.Errorf("%s says %+v", args, r)
		}
	}
	at := w.command("goals", "create", "x")
	at.Dir = "/"
	if r := w.finish(at, nil); r.code != 2 || !strings.Contains(r.errs, "--cwd") {
		t.Errorf("in the whole disk: %+v", r)
	}
	if g := w.goal(strings.ToUpper(id[len(id)-8:])); g.GoalID != id {
		t.Errorf("the end of an id found %+v", g)
	}
	w.env = append(w.env, "HOLDFAST_MODEL=", "OPENAI_BASE_URL=")
	if r := w.want(1, "work"); !strings.Contains(r.errs, "HOLDFAST_MODEL") {
		t.Errorf("without a model: %+v", r)
	}
}

// Goals are steered from the command line: the requirements, the controls, the same key.
func TestGoals_Controls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(""))
	args := []string{"goals", "create", "--mode", "edit", "--idempotency-key", "k", "--require-command", "test -s out.txt", "--require-file", "out.txt:^result",
		"--require", "it reads well", "--objective", "-"}
	create := func() goal {
		cmd := w.command(append(args, "--json")...)
		cmd.Stdin = strings.NewReader("Produce out.txt.\nNothing else.\n")
		r := w.finish(cmd, args)
		if r.code != 0 {
			t.Fatalf("%+v", r)
		}
		return one[goal](t, r.out)
	}
	g := create()
	if g.Objective != "Produce out.txt.\nNothing else." || len(g.Requirements) != 4 {
		t.Errorf("made %+v", g)
	}
	for i, kind := range []string{"semantic", "command", "file", "semantic"} {
		if g.Requirements[i].Kind != kind {
			t.Errorf("requirement %d is %+v", i, g.Requirements[i])
		}
	}
	if again := create(); again.GoalID != g.GoalID || len(document[[]goal](w, "goals")) != 1 {
		t.Errorf("the same key made %+v", again)
	}
	control := func(want string, args ...string) {
		t.Helper()
		if got := document[goal](w, append([]string{"goals"}, args...)...); got.Status != want {
			t.Errorf("%q: %+v", args, got)
		}
	}
	control("paused", "pause", g.GoalID)
	control("paused", "revise", g.GoalID, "--reason", "shorter", "--no-requirements")
	control("active", "resume", g.GoalID)
	control("active", "revise", g.GoalID, "--reason", "longer", "--require", "it rhymes")
	control("active", "waive", g.GoalID, "r1", "--reason", "it need not")
	if got := w.goal(g.GoalID); len(got.Requirements) != 2 || got.Requirements[1].Result != "waived" {
		t.Errorf("after the waiver: %+v", got)
	}
	if r := w.want(0, "work"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	control("achieved", "show", g.GoalID)
	if r := w.want(0, "goals", "show", g.GoalID, "--history"); !strings.Contains(r.out, "attempt") || !strings.Contains(r.out, "out.txt") {
		t.Errorf("the timeline: %s", r.out)
	}
	if got := document[[]goal](w, "goals", "--status", "active"); len(got) != 0 {
		t.Errorf("active: %+v", got)
	}
}

// A session is read, asked and answered from the command line, page by page.
func TestSessions_Conversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if len(r.Results()) == 0 {
			return shell("echo ran >> counter")
		}
		return fakemodel.Text("you said: " + r.LastUser())
	})
	a := w.editor(nil)
	id := a.NewSession(w.work)
	a.Kill()
	if r := w.want(0, "sessions", "send", id, "hello \x1b[31mred"); !strings.Contains(r.errs, "holdfast work") {
		t.Errorf("nobody executes, and it says %q", r.errs)
	}
	r := w.want(3, "work", "--json")
	var waits struct{ Event, SessionID, ReasonCode, Command, ApprovalID string }
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &waits); err != nil || waits.Event != "waits" || waits.ReasonCode != "approval_pending" ||
		!strings.Contains(waits.Command, "holdfast sessions answer "+waits.ApprovalID) {
		t.Fatalf("the last line is %s (%v)", lines[len(lines)-1], err)
	}
	asked := document[[]struct {
		ApprovalID, SessionID, State string
		Effect                       struct{ Title string }
		Options                      []string
	}](w, "sessions", "approvals", id)
	if len(asked) != 1 || asked[0].ApprovalID != waits.ApprovalID || asked[0].Effect.Title != "echo ran >> counter" || len(asked[0].Options) != 4 {
		t.Fatalf("asked %+v", asked)
	}
	if got := document[[]session](w, "sessions", "--cwd", w.work); len(got) != 1 || got[0].State != "waiting" || got[0].PendingApprovals != 1 {
		t.Errorf("sessions %+v", got)
	}
	if got := document[[]session](w, "sessions", "--cwd", w.home); len(got) != 0 {
		t.Errorf("of another directory: %+v", got)
	}
	if r := w.want(2, "sessions", "answer", waits.ApprovalID, "yes"); !strings.Contains(r.errs, "allow_once") {
		t.Errorf("%+v", r)
	}
	w.want(0, "sessions", "answer", waits.ApprovalID, "allow_once")
	if r := w.want(1, "sessions", "answer", waits.ApprovalID, "reject_once"); !strings.HasPrefix(r.errs, "holdfast: the question was already answered") {
		t.Errorf("answered again: %q", r.errs)
	}
	w.want(0, "work")
	if n := w.lines("counter"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	type page struct {
		Session session
		Goal    *goal
		Items   []struct {
			Seq        int64
			Kind, Text string
			Tool       *struct{ Name, Output, EffectID string }
		}
		Next int64
	}
	var kinds []string
	for after := int64(0); ; {
		p := document[page](w, "sessions", "show", id, "--limit", "1", "--after", fmt.Sprint(after))
		for _, it := range p.Items {
			kinds = append(kinds, it.Kind)
		}
		if after = p.Next; after == 0 {
			break
		}
	}
	if got := strings.Join(kinds, " "); !strings.HasPrefix(got, "user") || !strings.HasSuffix(got, "agent") || !strings.Contains(got, "tool") {
		t.Errorf("the history holds %s", got)
	}
	shown := w.want(0, "sessions", "show", id)
	if !strings.Contains(shown.out, "you said: hello") || strings.Contains(shown.out, "\x1b") {
		t.Errorf("shown as %q", shown.out)
	}
	if got := document[session](w, "sessions", "mode", id, "edit"); got.Mode != "edit" {
		t.Errorf("the mode is %+v", got)
	}
	effects := document[[]struct {
		EffectID, State, Fact string
		ExitCode              *int
	}](w, "effects", "--session", id)
	if len(effects) != 1 || effects[0].State != "settled" || effects[0].ExitCode == nil || *effects[0].ExitCode != 0 {
		t.Errorf("effects %+v", effects)
	}
	if got := document[struct{ EffectID string }](w, "effects", "show", effects[0].EffectID); got.EffectID != effects[0].EffectID {
		t.Errorf("shown as %+v", got)
	}
	if got := document[[]any](w, "effects", "--open"); len(got) != 0 {
		t.Errorf("open: %v", got)
	}
}

// What an editor's process holds is seen from outside, and a goal that the command line sets is executed and listed by it.
func TestGoals_ExecutedByAnEditor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(held))
	a := w.editor(allow)
	a.Must("session/list", map[string]any{}, nil) // from here on it executes
	r := w.want(0, "goals", "create", "--mode", "edit", "Produce out.txt.", "--json")
	g := one[goal](t, r.out)
	if r.errs != "" {
		t.Errorf("an editor executes, and it says %q", r.errs)
	}
	harness.Eventually(t, "it asks", func() bool { return len(document[[]any](w, "sessions", "approvals")) == 1 })
	if !strings.Contains(sessionList(t, a), g.SessionID) {
		t.Error("the editor does not list the session")
	}
	a.Must("session/load", map[string]any{"sessionId": g.SessionID, "cwd": w.work, "mcpServers": []any{}}, nil) // its client allows
	w.begun()
	ps := document[struct {
		Processes []struct {
			Kind     string
			PID      int
			Executes bool
			Owns     []string
		}
		Commands []struct {
			SessionID, Command string
			PID                int
		}
	}](w, "ps")
	if len(ps.Processes) != 1 || ps.Processes[0].PID != a.PID() || ps.Processes[0].Kind != "acp" || !ps.Processes[0].Executes ||
		len(ps.Processes[0].Owns) != 1 || ps.Processes[0].Owns[0] != g.SessionID {
		t.Errorf("processes %+v", ps.Processes)
	}
	if len(ps.Commands) != 1 || ps.Commands[0].SessionID != g.SessionID || ps.Commands[0].Command != held || ps.Commands[0].PID == 0 {
		t.Errorf("commands %+v", ps.Commands)
	}
	if r := w.want(0, "work"); strings.Contains(r.out, "state") {
		t.Errorf("another process has it, and work says %q", r.out)
	}
	w.put("go")
	harness.Eventually(t, "the goal is achieved", func() bool { return w.goal(g.GoalID).Status == "achieved" })
	if n := w.lines("counter"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
}

func sessionList(t *testing.T, a *harness.Agent) string {
	t.Helper()
	raw, e := a.Call("session/list", map[string]any{})
	if e != nil {
		t.Fatal(e)
	}
	return string(raw)
}
