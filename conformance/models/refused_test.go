package models_test

import (
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// notTaken is how each wire refuses reasoning that it gave out itself.
var notTaken = map[string]fakemodel.Reply{
	"anthropic": fakemodel.Error(400, "messages.1.content.0: Invalid `signature` in `thinking` block", ""),
	"responses": fakemodel.Error(400, "The encrypted content could not be verified.", "invalid_encrypted_content"),
}

const isAskedWithout = "no longer takes back the reasoning"

// Reasoning that the endpoint does not take back any more is left out from then on: the session asks once more, by a request with a record of
// its own, says so once, and remembers it over a crash and a restart. What is reasoned later goes back again.
func TestReasoning_NotTakenBack(t *testing.T) {
	for family, refusal := range notTaken {
		for _, point := range []string{"", "response.lost:before", "response.lost:after"} {
			t.Run(family+" "+point, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.model.Think()
				w.env = w.model.Env(family)
				w.write("a.txt", "a file\n")
				w.set(func() {
					w.answer = func(r fakemodel.Request) fakemodel.Reply {
						if len(r.Results()) == 0 {
							return fakemodel.Calls(fakemodel.Call{Name: "read", Args: `{"path":"a.txt"}`})
						}
						return said(r)
					}
				})
				a := w.launch(point)
				s := a.NewSession(w.work)
				w.say(a, s, "one")
				w.say(a, s, "two")
				before := w.model.Requests()
				old := thoughts(before[len(before)-1])
				if len(old) < 2 {
					t.Fatalf("only %d thoughts went back", len(old))
				}
				w.set(func() {
					w.answer = func(r fakemodel.Request) fakemodel.Reply {
						if slices.ContainsFunc(thoughts(r), func(s string) bool { return slices.Contains(old, s) }) {
							return refusal
						}
						if !r.Said("four") { // after a crash the last message is a note on it
							return fakemodel.Text("Three at last.")
						}
						return said(r)
					}
				})
				if point == "" {
					w.say(a, s, "three")
				} else {
					a.Prompt(s, "three")
					w.dies(a, point)
					a = w.launch("")
					w.load(a, s)
				}
				harness.Eventually(t, "it is answered", func() bool { return strings.Contains(a.Text(s), "Three at last.") })
				if n := strings.Count(a.Text(s), isAskedWithout); n != 1 {
					t.Errorf("it is said %d times that reasoning is left out: %s", n, a.Text(s))
				}
				refused := 1
				if point == "response.lost:before" { // nobody knew of the refusal
					refused = 2
				}
				after := w.model.Requests()[len(before):]
				if len(after) != refused+1 || len(thoughts(after[refused])) != 0 {
					t.Errorf("%d requests, the last with %v", len(after), thoughts(after[len(after)-1]))
				}
				states := w.states()
				if len(states) != len(before)+refused+1 || refused == 1 && states[len(states)-2] != "settled 0" {
					t.Errorf("the requests are %v", states)
				}
				a.Kill()
				a = w.launch("")
				w.load(a, s)
				if got := w.say(a, s, "four"); !strings.Contains(got, "You said: four") || strings.Contains(got, isAskedWithout) {
					t.Errorf("it says %q", got)
				}
				all := w.model.Requests()
				if last := all[len(all)-1]; len(all) != len(before)+refused+2 || len(thoughts(last)) != 1 {
					t.Errorf("%d requests, the last with %v", len(all), thoughts(last))
				}
			})
		}
	}
}

// An endpoint that says the same of a request without reasoning is not asked again and again.
func TestReasoning_NothingToLeaveOut(t *testing.T) {
	for family, refusal := range notTaken {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.Think()
			w.env = w.model.Env(family)
			a := w.launch("")
			s := a.NewSession(w.work)
			w.say(a, s, "one")
			w.set(func() { w.answer = func(fakemodel.Request) fakemodel.Reply { return refusal } })
			for i, want := range []int{3, 4} { // with reasoning and without; then without
				m := a.Await(a.Prompt(s, "more"))
				if m.Error == nil || !strings.Contains(m.Error.Error(), refusal.Problem.Message) {
					t.Errorf("prompt %d ended with %s, %v", i, m.Result, m.Error)
				}
				if n := len(w.model.Requests()); n != want {
					t.Errorf("after prompt %d there are %d requests", i, n)
				}
			}
		})
	}
}
