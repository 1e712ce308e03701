package goals_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// offering plays a worker that offers its result at once, and a reviewer that looks around and accepts. Its first look waits for the gate.
func offering(gate <-chan struct{}) func(fakemodel.Request) fakemodel.Reply {
	var held atomic.Bool
	return func(r fakemodel.Request) fakemodel.Reply {
		called := map[string]string{}
		for _, m := range r.Messages {
			for _, c := range m.ToolCalls {
				called[c.Name] = c.ID
			}
		}
		for _, tool := range r.Tools {
			switch {
			case tool.Name != "submit_review":
				continue
			case called["list"] != "":
				return fakemodel.Calls(fakemodel.Call{Name: "submit_review",
					Args: `{"requirements":[{"id":"objective","result":"met","evidence":["` + called["list"] + `"],"reason":"it is there"}]}`})
			}
			look := fakemodel.Calls(fakemodel.Call{Name: "list", Args: `{"path":"."}`})
			if held.CompareAndSwap(false, true) {
				look.Steps = []fakemodel.Step{{Text: "looking"}, fakemodel.Gate(gate)}
			}
			return look
		}
		if called["update_goal"] == "" {
			return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"candidate","text":"done"}`})
		}
		return fakemodel.Text("offered")
	}
}

// A waiver in the middle of a review makes that review out of date. Another one follows; the goal does not wait for a judgement that
// nobody will give.
func TestWaive_DuringAReview(t *testing.T) {
	gate := make(chan struct{})
	model := fakemodel.New(offering(gate)).Think()
	defer model.Close()
	plain, _, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	a := harness.Start(t, harness.Options{Binary: plain, Env: append(model.Env(fakemodel.Family()), "HOLDFAST_HOME="+filepath.Join(dir, "home"))})
	a.Initialize()
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	session := a.NewSession(work)
	var r struct {
		Goal struct {
			Status       string
			Requirements []struct{ ID, Result, JudgedBy string }
		}
	}
	a.Must("create_goal", map[string]any{"sessionId": session, "objective": "Be done.",
		"requirements": []any{map[string]any{"id": "note", "kind": "file", "path": "never.txt"}}}, nil)
	get := func() string { a.Must("get_goal", map[string]any{"sessionId": session}, &r); return r.Goal.Status }
	harness.Eventually(t, "the review asks the model", func() bool {
		reqs := model.Requests()
		return len(reqs) > 0 && strings.Contains(string(reqs[len(reqs)-1].Body), "submit_review")
	})
	a.Must("update_goal", map[string]any{"sessionId": session, "action": "waive", "requirementId": "note", "reason": "not needed"}, &r)
	close(gate)
	harness.Eventually(t, "the goal is achieved", func() bool { return get() == "achieved" })
	for _, q := range r.Goal.Requirements {
		if want := map[string]string{"objective": "met", "note": "waived"}[q.ID]; q.Result != want {
			t.Errorf("%s is %s, judged by %s", q.ID, q.Result, q.JudgedBy)
		}
	}
}
