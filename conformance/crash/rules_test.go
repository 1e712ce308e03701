package crash_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

var ruleLine = regexp.MustCompile(`- ([0-9a-f-]{36}): allow exactly the command`)

// rules asks for the rules of the session and returns the ids that the newest answer names.
func (u *user) rules() (ids []string, err error) {
	before := len(u.a.Text(u.session))
	if err := u.await(u.a.Prompt(u.session, "/rules"), "session/prompt", nil); err != nil {
		return nil, err
	}
	err = u.until("the rules are told", func() (bool, error) {
		text := u.a.Text(u.session)[before:]
		ids = nil
		for _, m := range ruleLine.FindAllStringSubmatch(text, -1) {
			ids = append(ids, m[1])
		}
		return len(ids) > 0 || strings.Contains(text, "No rules"), u.alive()
	})
	return ids, err
}

// always is a user who answers every question for good.
func always(u *user) { u.choose = func(string) string { return "allow_always" } }

// revokePlay makes a rule by an answer and takes it back.
func revokePlay(u *user) error {
	if _, err := u.open(); err != nil {
		return err
	}
	if err := u.say("please shell", "That is all."); err != nil {
		return err
	}
	ids, err := u.rules()
	switch {
	case err != nil:
		return err
	case u.died == "rule.revoked:after" && len(ids) != 0, u.died == "rule.revoked:before" && len(ids) != 1:
		return fmt.Errorf("after %s there are %d rules", u.died, len(ids))
	case len(ids) == 0:
		return nil
	}
	if err := u.await(u.a.Prompt(u.session, "/rules revoke "+ids[0]), "session/prompt", nil); err != nil {
		return err
	}
	if ids, err = u.rules(); err == nil && len(ids) != 0 {
		err = fmt.Errorf("after the revocation there are %d rules", len(ids))
	}
	return err
}

// A standing answer is stored with its rule: after any death there is one rule or the question, the command runs once, and what the rule
// covers is not asked about again.
func TestStanding_OneRuleAfterAnyDeath(t *testing.T) {
	for _, point := range []string{"approval.raised:before", "approval.raised:after", "approval.answered:before", "approval.answered:after",
		"effect.dispatched:before", "effect.dispatched:after", "effect.settled:before", "effect.settled:after"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			trial{play: says("please shell", "That is all."), setup: always, check: oneRule}.dying(point).run(t)
		})
	}
}

func oneRule(u *user) {
	t := u.w.t
	t.Helper()
	u.honest()
	if n := u.w.lines("counter"); n > 1 || n == 0 && u.died != "effect.dispatched:after" {
		t.Errorf("the command ran %d times", n)
	}
	u.again()
	_, err := u.open()
	u.must(err)
	ids, err := u.rules()
	u.must(err)
	if len(ids) != 1 {
		t.Errorf("there are %d rules", len(ids))
	}
	u.must(u.leave())
}

// A rule that a person writes is there after the commit and not before.
func TestRuleAdded(t *testing.T) {
	_, faulty, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	for point, want := range map[string]int{"rule.added:before": 0, "rule.added:after": 1} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			run := func(point string, args ...string) []byte {
				cmd := exec.Command(faulty, args...)
				cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH"), "HOLDFAST_HOME=" + w.home}, w.work
				if point != "" {
					cmd.Env = append(cmd.Env, w.arm(1, point)...)
				}
				out, err := cmd.Output()
				if (err != nil) != (point != "") {
					t.Fatalf("%v ended with %v", args, err)
				}
				return out
			}
			run(point, "rules", "add", "deny", "--prefix", "git push")
			w.mustHaveFired(1, point)
			var rules []struct{ Verdict string }
			if err := json.Unmarshal(run("", "rules", "--json"), &rules); err != nil {
				t.Fatal(err)
			}
			if len(rules) != want {
				t.Errorf("there are %d rules", len(rules))
			}
		})
	}
}
