package cli_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// edit changes the store behind the back of a program that does not run.
func (w *world) edit(query string, args ...any) {
	w.t.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(w.home, "holdfast.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec(query, args...); err != nil {
		w.t.Fatal(err)
	}
}

// What has lain still for longer than it is kept goes by itself; what holds a question stays, however old it is.
func TestKeep_OnlyWhatLiesStill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if strings.Contains(r.LastUser(), "ask") {
			return shell("true")
		}
		return fakemodel.Text("done")
	})
	a := w.editor(nil)
	old, young, asking := a.NewSession(w.work), a.NewSession(w.work), a.NewSession(w.work)
	a.Await(a.Prompt(old, "say something old"))
	a.Await(a.Prompt(young, "say something young"))
	a.Prompt(asking, "ask me")
	harness.Eventually(t, "it asks", func() bool { return len(document[[]struct{ ApprovalID string }](w, "sessions", "approvals")) == 1 })
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	<-a.Ended()
	const days = int64(40 * 24 * 60 * 60 * 1000)
	w.edit("UPDATE sessions SET updated_at = updated_at - ? WHERE id <> ?", days, young)
	w.edit("UPDATE events SET at = at - ? WHERE session <> ?", days, young)
	if err := os.WriteFile(filepath.Join(w.home, "config.toml"), []byte("[sessions]\nkeep_days = 30\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	going := map[string]bool{}
	for _, s := range document[[]struct {
		SessionID    string
		DeletedAfter *string
	}](w, "sessions", "list") {
		going[s.SessionID] = s.DeletedAfter != nil
	}
	if !going[old] || !going[young] || going[asking] {
		t.Errorf("it says that these go: %v", going)
	}
	b := w.editor(nil)
	b.Must("session/list", map[string]any{}, nil)
	harness.Eventually(t, "the old one is gone", func() bool { return w.run("sessions", "show", old).code != 0 && len(w.traces(old)) == 0 })
	w.want(0, "sessions", "show", young)
	w.want(0, "sessions", "show", asking)
}

// A question of the model that a killed process left is answered by the command line, once, in the user's own words.
func TestAnswer_AQuestionOfTheModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if len(r.Results()) == 0 {
			return fakemodel.Calls(fakemodel.Call{Name: "ask_user", Args: `{"question":"Which colour?","choices":["red"]}`})
		}
		return fakemodel.Text("so: " + r.Results()[0].Content)
	})
	a := w.editor(nil)
	id := a.NewSession(w.work)
	a.Prompt(id, "paint")
	var asked []struct {
		ApprovalID, Question string
		Options, Choices     []string
	}
	harness.Eventually(t, "it asks", func() bool {
		asked = document[[]struct {
			ApprovalID, Question string
			Options, Choices     []string
		}](w, "sessions", "approvals")
		return len(asked) == 1
	})
	a.Kill()
	if q := asked[0]; q.Question != "Which colour?" || strings.Join(q.Options, " ") != "choice_1 answer decline" || strings.Join(q.Choices, "") != "red" {
		t.Errorf("asked %+v", q)
	}
	w.want(3, "work") // it is left to a person
	for _, args := range [][]string{{"answer"}, {"choice_2"}, {"allow_once"}, {"choice_1", "words"}} {
		if r := w.run(append([]string{"sessions", "answer", asked[0].ApprovalID}, args...)...); r.code != 2 {
			t.Errorf("%v ended with %d: %s", args, r.code, r.errs)
		}
	}
	w.want(0, "sessions", "answer", asked[0].ApprovalID, "answer", "green please")
	w.want(0, "work")
	if r := w.want(0, "sessions", "show", id); strings.Count(r.out, "so: The user answers: green please") != 1 {
		t.Errorf("the session is\n%s", r.out)
	}
	if r := w.run("sessions", "answer", asked[0].ApprovalID, "choice_1"); r.code == 0 {
		t.Error("it is answered a second time")
	}
}
