package context_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// A compaction in the middle of a goal keeps, word for word: the objective, the requirements with where they stand and what a person said of
// them, the evidence by its ids, and the call whose outcome is unknown.
func TestGoal_CompactionKeepsTheFacts(t *testing.T) {
	const (
		words = "Paint “the door”\n  green; never the keep/ folder.\n\t- not even once"
		sure  = "echo sure >> sure.txt"
		lost  = "echo $PPID > supervisor; echo $$ > command; echo lost >> lost.txt; while [ ! -e go ]; do sleep 0.02; done"
	)
	encode := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	w := newWorld(t)
	w.set(func() {
		w.answer = func(r fakemodel.Request) fakemodel.Reply {
			said := everything(r)
			called := map[string]string{}
			for _, m := range r.Messages {
				for _, c := range m.ToolCalls {
					called[c.Name+c.Args] = c.ID
				}
			}
			shell := func(command string) string { return encode(map[string]string{"command": command}) }
			id := called["shell"+shell(sure)]
			evidence := encode(map[string]string{"action": "evidence", "requirementId": "seen", "callId": id})
			switch {
			case strings.Contains(said, "talk to me") || called["shell"+shell(lost)] != "":
				return fakemodel.Text("I look.")
			case id == "":
				return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: shell(sure)})
			case called["update_goal"+evidence] == "":
				return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: evidence})
			}
			return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: shell(lost)})
		}
	})
	a := w.launch("", nil)
	s := a.NewSession(w.work)
	var made struct{ Goal struct{ GoalID string } }
	a.Must("create_goal", map[string]any{"sessionId": s, "objective": words, "requirements": []any{
		map[string]any{"id": "seen", "kind": "semantic", "text": "somebody saw “it”\nwith their own eyes"},
		map[string]any{"id": "runs", "kind": "command", "command": "test -s sure.txt && ! false"},
		map[string]any{"id": "there", "kind": "file", "path": "door.txt", "pattern": `^gr[e]{2}n\b`},
		map[string]any{"id": "gone", "kind": "semantic", "text": "it is gone"}}}, &made)
	a.Must("update_goal", map[string]any{"goalId": made.Goal.GoalID, "action": "waive", "requirementId": "gone", "reason": "it may stay “here”"}, nil)
	harness.Eventually(t, "the command runs", func() bool { b, _ := os.ReadFile(filepath.Join(w.work, "lost.txt")); return len(b) > 0 })
	a.Kill()
	for _, name := range []string{"supervisor", "command"} {
		b, err := os.ReadFile(filepath.Join(w.work, name))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended with the other
	}
	b := w.launch("", nil)
	w.load(b, s)
	var effects []struct{ EffectID, Fact, State string }
	harness.Eventually(t, "its outcome is unknown", func() bool {
		return json.Unmarshal([]byte(w.command(0, "effects", "--unknown", "--json")), &effects) == nil && len(effects) == 1
	})
	b.Must("update_goal", map[string]any{"goalId": made.Goal.GoalID, "action": "pause"}, nil)
	b.Await(b.Prompt(s, "/compact"))
	w.say(b, s, "talk to me")
	var goal struct {
		Goal struct {
			Requirements []struct {
				ID       string
				Evidence []string
			}
		}
	}
	b.Must("get_goal", map[string]any{"goalId": made.Goal.GoalID}, &goal)
	evidence := goal.Goal.Requirements[1].Evidence
	if len(evidence) != 1 {
		t.Fatalf("the evidence is %+v", goal)
	}
	got := everything(w.last())
	w.holds("what follows", got, summary, "The objective, verbatim:\n"+words+"\n",
		"- seen (semantic): somebody saw “it”\nwith their own eyes\n", "- runs (command): this command exits with 0: test -s sure.txt && ! false\n",
		`- there (file): the file door.txt matches /^gr[e]{2}n\b/`, "- gone (semantic): it is gone [waived by the user]", "- gone is waived: it may stay “here”",
		"- seen is unknown; evidence: "+evidence[0]+"\n", "- "+evidence[0]+": "+sure+", exit code 0",
		"Outcome unknown; never repeat these blindly:\n- shell: "+lost+" (call "+effects[0].EffectID+")\n")
}
