package crash_test

import (
	"bytes"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

func contains(b []byte, parts ...string) bool {
	for _, p := range parts {
		if !bytes.Contains(b, []byte(p)) {
			return false
		}
	}
	return true
}

// second is another window on the session of the first.
func (u *user) second(point string) *user {
	u.w.t.Helper()
	v := newUser(u.w)
	v.launches, v.session, v.created = 50, u.session, true
	v.launch(point)
	return v
}

// Two windows have the session open, and the one that works dies. The other goes on, without a restart.
func TestWindows_OwnerDies(t *testing.T) {
	for _, point := range []string{"approval.answered:after", "effect.dispatched:before", "effect.dispatched:after", "proc.launched", "effect.settled:after",
		"request.started:after/2", "turn.ended:after", "response.stored:after/4"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			u := newUser(newWorld(t))
			u.launch(point)
			u.must(u.hello())
			_, err := u.open()
			u.must(err)
			v := u.second("")
			u.must(v.hello())
			_, err = v.open()
			u.must(err)
			u.a.Begin("create_goal", map[string]any{"sessionId": u.session, "objective": "Produce out.txt with the command's help.", "idempotencyKey": "one",
				"requirements": []any{map[string]any{"kind": "file", "path": written}, map[string]any{"kind": "command", "command": evidence}}})
			_ = u.a.Wait() // killed; the log says so
			u.w.mustHaveFired(1, point)
			u.w.look()
			u.must(v.end())
			u.must(v.leave())
			u.launches = 10
			achieved(u)
		})
	}
}

// A window dies at what it asks of the one that works: what was stored is done, what was not is not.
func TestWindows_OtherDies(t *testing.T) {
	for _, point := range []string{"prompt.accepted:before", "prompt.accepted:after", "approval.answered:before", "approval.answered:after",
		"session.opened:before", "session.opened:after", "instance.joined:before", "instance.joined:after"} {
		t.Run(point, func(t *testing.T) {
			u := begin(t, func(u *user) { u.choose = func(string) string { return "" } }) // this window never answers
			u.find("a question", func(m harness.Message) bool { return m.Method == "session/request_permission" })
			v := u.second(point)
			err := v.hello()
			if err == nil {
				_, err = v.open()
			}
			if err == nil {
				v.a.Prompt(v.session, "please talk")
				_ = v.a.Wait() // killed; the log says so
			}
			v.a.Kill()
			u.w.mustHaveFired(v.launches, point)
			third := u.second("")
			third.launches = 60
			u.must(third.hello())
			_, err = third.open()
			u.must(err)
			u.must(third.end())
			u.must(third.leave())
			u.must(u.leave())
			u.launches = 70
			achieved(u)
			_, person := u.transcript()
			switch {
			case person == "please talk\n":
				if early := point != "prompt.accepted:after" && !strings.HasPrefix(point, "approval."); early {
					t.Errorf("a prompt is in the transcript that was never accepted")
				}
			case person != "" || point == "prompt.accepted:after":
				t.Errorf("the user's part of the transcript is %q", person)
			}
		})
	}
}

// Two windows with different keys: the owner dies as it hands the session over to the one whose user has just said something. What was said is
// done once, with that window's key; what the owner's user said before is not lost.
func TestWindows_HandedOver(t *testing.T) {
	for _, point := range []string{"owner.handed_over:before", "owner.handed_over:after"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			u := newUser(newWorld(t))
			u.launch(point, keys("ann")...)
			u.must(u.hello())
			_, err := u.open()
			u.must(err)
			u.must(u.say("please talk", "So it goes."))
			v := newUser(u.w)
			v.launches, v.session, v.created = 50, u.session, true
			v.launch("", keys("bob")...)
			u.must(v.hello())
			_, err = v.open()
			u.must(err)
			u.must(v.await(v.a.Prompt(v.session, "please story"), "session/prompt", nil))
			_ = u.a.Wait() // killed; the log says so
			u.w.mustHaveFired(1, point)
			by := map[string]int{}
			for _, r := range u.w.model.Requests() {
				key := "none"
				for _, name := range []string{"ann", "bob"} {
					if strings.Contains(r.Header.Get("Authorization")+r.Header.Get("X-Api-Key"), "key-of-"+name) {
						key = name
					}
				}
				by[key+" "+r.LastUser()]++
			}
			if len(by) != 2 || by["ann please talk"] != 1 || by["bob please story"] != 2 {
				t.Errorf("the model was asked %v", by)
			}
			u.must(v.leave())
		})
	}
}

func keys(name string) []string {
	return []string{"OPENAI_API_KEY=key-of-" + name, "ANTHROPIC_API_KEY=key-of-" + name}
}
