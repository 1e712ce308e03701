package cli_test

import (
	"strings"
	"testing"
)

type rule struct {
	RuleID, Verdict, Kind, SessionID, Cwd, Tool, Value, Covers string
	RevokedAt                                                  *string
}

// Rules that a person writes are listed and revoked; what makes no sense is a usage error and stores nothing.
func TestRules_AddListRevoke(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(""))
	if all := document[[]rule](w, "rules"); len(all) != 0 {
		t.Errorf("without a store there are %+v", all)
	}
	g := one[goal](t, w.want(0, "goals", "create", "first", "--json").out)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"rules", "add"}, "allow, ask or deny"},
		{[]string{"rules", "add", "permit", "--command", "x"}, "allow, ask, deny"},
		{[]string{"rules", "add", "allow"}, "one of --command"},
		{[]string{"rules", "add", "allow", "--command", "x", "--tool", "y"}, "one of --command"},
		{[]string{"rules", "add", "allow", "--prefix", "a; b"}, "use --command"},
		{[]string{"rules", "add", "allow", "--prefix", "A=b c"}, "use --command"},
		{[]string{"rules", "add", "allow", "--prefix", "sudo c"}, "use --command"},
		{[]string{"rules", "add", "allow", "--command", "x", "--cwd", ""}, "not everywhere"},
		{[]string{"rules", "add", "allow", "--host", "https://example.org/"}, "is no host"},
		{[]string{"rules", "add", "allow", "--host", "*.example.org", "--cwd", ""}, "not everywhere"},
		{[]string{"rules", "add", "deny", "--command", "x", "--cwd", ".", "--session", g.SessionID}, "not both"},
		{[]string{"rules", "revoke"}, "the id of a rule"},
		{[]string{"rules", "nope"}, "rules --help"},
	} {
		if r := w.run(c.args...); r.code != 2 || !strings.Contains(r.errs, c.says) || r.out != "" {
			t.Errorf("%q: code %d, stdout %q, stderr %q; want 2 with %q", c.args, r.code, r.out, r.errs, c.says)
		}
	}
	if r := w.run("rules", "revoke", "12345678"); r.code != 1 || !strings.Contains(r.errs, "'holdfast rules' lists them") {
		t.Errorf("an id that names nothing: %+v", r)
	}
	if all := document[[]rule](w, "rules"); len(all) != 0 {
		t.Fatalf("a refused rule is stored: %+v", all)
	}
	w.want(0, "rules", "add", "deny", "--prefix", "git push", "--cwd", "")
	w.want(0, "rules", "add", "ask", "--tool", "write", "--session", g.SessionID)
	w.want(0, "rules", "add", "allow", "--edit", ".")
	w.want(0, "rules", "add", "allow", "--command", "make all | tee log")
	all := document[[]rule](w, "rules", "list")
	if len(all) != 4 || all[0].Covers != "commands that begin with git push, everywhere" || all[0].Value != "git push" || all[1].SessionID != g.SessionID ||
		all[2].Kind != "edit" || all[2].Cwd == "" || all[3].Value != "make all | tee log" {
		t.Fatalf("the rules are %+v", all)
	}
	if text := w.want(0, "rules").out; strings.Count(text, "\n") != 5 || !strings.Contains(text, all[3].RuleID) {
		t.Errorf("as a table:\n%s", text)
	}
	other := one[goal](t, w.want(0, "goals", "create", "--cwd", "..", "second", "--json").out)
	if mine := document[[]rule](w, "rules", "list", "--session", other.SessionID); len(mine) != 1 || mine[0].RuleID != all[0].RuleID {
		t.Errorf("for a session elsewhere count %+v", mine)
	}
	for range 2 { // once more is the same
		if r := one[rule](t, w.want(0, "rules", "revoke", all[2].RuleID, "--json").out); r.RevokedAt == nil || r.RuleID != all[2].RuleID {
			t.Errorf("revoked: %+v", r)
		}
	}
	if left := document[[]rule](w, "rules"); len(left) != 3 {
		t.Errorf("left are %+v", left)
	}
}

// With grants a goal goes on through the night: nobody is there to be asked, and nothing has to be.
func TestGrants_WorkAsksNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(""))
	if r := w.run("goals", "create", "--grant-edit", "/etc", "x"); r.code != 2 || !strings.Contains(r.errs, "--grant-edit") {
		t.Errorf("a grant outside: %+v", r)
	}
	made := w.want(0, "goals", "create", "--grant-edit", ".", "--grant-command", "test -s", "--require-command", "test -s out.txt", "Produce out.txt.", "--json")
	g := one[goal](t, made.out)
	if text := w.want(0, "goals", "show", g.GoalID).out; !strings.Contains(text, "granted  commands that begin with test -s\n") {
		t.Errorf("it shows\n%s", text)
	}
	w.want(0, "work")
	if g = w.goal(g.GoalID); g.Status != "achieved" {
		t.Errorf("it is %+v", g)
	}
	effects := document[[]struct{ Title, Permission, Tool string }](w, "effects")
	granted := 0
	for _, e := range effects {
		if strings.HasPrefix(e.Permission, "P10 ") {
			granted++
		}
	}
	if granted != 2 {
		t.Errorf("%d calls say that they were granted: %+v", granted, effects)
	}
}
