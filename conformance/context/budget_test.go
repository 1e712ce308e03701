package context_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// spending is what a goal says of its budget.
type spending struct {
	Status, ReasonCode, Reason string
	CanResume, CanRetry        bool
	NextAction                 struct {
		Owner   string
		Allowed []string
	}
	Budget *struct {
		CostMicros, Tokens, ActiveSeconds int64
		Currency                          string
		Used                              struct{ CostMicros, Tokens, ActiveSeconds, UnpricedRequests int64 }
	}
	Usage struct{ UnknownRequests int64 }
}

func (w *world) spending(a *harness.Agent, session string) spending {
	w.t.Helper()
	var r struct{ Goal spending }
	a.Must("_holdfast/get_goal", map[string]any{"sessionId": session}, &r)
	return r.Goal
}

// exhausted waits until a goal's budget is used up.
func (w *world) exhausted(a *harness.Agent, session string) (s spending) {
	w.t.Helper()
	harness.Eventually(w.t, "the budget is used up", func() bool {
		s = w.spending(a, session)
		return s.Status == "budget_exhausted"
	})
	return s
}

// reader reads on and on, a little further each time. Each request takes 3000 tokens and each answer 100.
func reader(r fakemodel.Request) fakemodel.Reply {
	reply := fakemodel.Calls(fakemodel.Call{Name: "read", Args: fmt.Sprintf(`{"path":"long.txt","offset":%d,"limit":1}`, len(r.Results())+1)})
	reply.Usage = &fakemodel.Usage{Prompt: 3000, Completion: 100}
	return reply
}

const perRequest = 3100

// spender is a world with a model that reads on and on, and whose answers have at most 100 tokens.
func spender(t *testing.T, prices string) *world {
	t.Helper()
	w := newWorld(t)
	w.write("long.txt", strings.Repeat("a line\n", 1000))
	w.priced("output_tokens = 100\n" + prices)
	w.answer = reader
	return w
}

// read is what a goal demands; without it the model is asked first what its objective demands.
var read = []map[string]any{{"kind": "semantic", "text": "Every line was read."}}

// goal sets a goal with a budget in a session of its own.
func (w *world) goal(a *harness.Agent, budget map[string]any) string {
	w.t.Helper()
	s := a.NewSession(w.work)
	a.Must("create_goal", map[string]any{"sessionId": s, "objective": "Read it all.", "budget": budget, "requirements": read}, nil)
	return s
}

// rests fails when the model is asked again by a process that looks at the session.
func (w *world) rests(a *harness.Agent, session string) {
	w.t.Helper()
	n := len(w.model.Requests())
	w.load(a, session)
	for range 3 { // each is answered behind everything that the process found to do
		a.Must("session/list", map[string]any{}, nil)
		w.command(0, "goals", "list")
	}
	if got := len(w.model.Requests()); got != n {
		w.t.Errorf("the model was asked %d times more", got-n)
	}
}

// The request that reads an objective is within the budget as well.
func TestBudgetIncludesTheReading(t *testing.T) {
	w := spender(t, "")
	w.model.Extract()
	a := w.launch("", nil)
	s := a.NewSession(w.work)
	a.Must("create_goal", map[string]any{"sessionId": s, "objective": "Read it all.", "budget": map[string]any{"tokens": 200}}, nil)
	if got := w.exhausted(a, s); got.Budget.Used.Tokens != 0 || len(w.model.Requests()) != 0 {
		t.Errorf("%d requests: %+v", len(w.model.Requests()), got)
	}
	a.Must("update_goal", map[string]any{"sessionId": s, "action": "budget", "budget": map[string]any{"tokens": 2000}}, nil)
	harness.Eventually(t, "it is read", func() bool { return len(w.model.Requests()) > 0 })
	if tools := w.model.Requests()[0].Tools; len(tools) != 1 || tools[0].Name != "submit_requirements" {
		t.Errorf("the first request has the tools %+v", tools)
	}
}

// What an answer may have by the environment is what is reserved for it, whatever is known of the model.
func TestBudgetReservesTheLongestAnswer(t *testing.T) {
	w := spender(t, "")
	w.also = append(w.also, "HOLDFAST_MAX_TOKENS=90000")
	a := w.launch("", nil)
	if got := w.exhausted(a, w.goal(a, map[string]any{"tokens": 50000})); len(w.model.Requests()) != 0 {
		t.Errorf("%d requests: %+v", len(w.model.Requests()), got)
	}
}

// A budget of tokens is never gone beyond: what the next request may take is counted before it is sent. A restart changes nothing of it. Raised, in
// another process, the goal goes on, and what was used stays counted.
func TestBudgetIsReachedAndRaised(t *testing.T) {
	w := spender(t, "")
	a := w.launch("", nil)
	s := w.goal(a, map[string]any{"tokens": 20000})
	got := w.exhausted(a, s)
	n := int64(len(w.model.Requests()))
	if u := got.Budget.Used.Tokens; u != n*perRequest || u > 20000 || u+2*perRequest < 20000 {
		t.Errorf("%d tokens are used by %d requests", u, n)
	}
	if got.ReasonCode != "budget_used_up" || !strings.Contains(got.Reason, "Of 20000 tokens") || got.CanResume || got.CanRetry || got.NextAction.Owner != "user" ||
		!slices.Equal(got.NextAction.Allowed, []string{"budget", "end"}) {
		t.Errorf("the goal is %+v", got)
	}
	for _, action := range []string{"resume", "retry", "verify", "pause"} {
		if _, err := a.Call("update_goal", map[string]any{"sessionId": s, "action": action}); err == nil {
			t.Errorf("%s is not refused", action)
		}
	}
	a.Must("update_goal", map[string]any{"sessionId": s, "action": "revise", "objective": "Read half of it.", "requirements": read, "reason": "less"}, nil)
	if got := w.spending(a, s); got.Status != "budget_exhausted" {
		t.Errorf("a revision made it %s", got.Status)
	}
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	a = w.launch("", nil)
	w.rests(a, s)
	goal := w.goalID(a, s)
	out := w.command(0, "goals", "budget", goal, "40000", "tokens")
	w.holds("the command", out, "40000 tokens; counted against it: "+fmt.Sprint(n*perRequest)+" tokens")
	harness.Eventually(t, "it goes on", func() bool { return int64(len(w.model.Requests())) > n })
	again := w.exhausted(a, s)
	if u := again.Budget.Used.Tokens; u != int64(len(w.model.Requests()))*perRequest || u <= 20000 || u > 40000 {
		t.Errorf("raised, %d tokens are used by %d requests", u, len(w.model.Requests()))
	}
	prompt := a.Prompt(s, "/goal budget none") // stays open while the goal works, as behind /goal resume
	harness.Eventually(t, "it goes on without limits", func() bool { return w.spending(a, s).Status == "active" && w.spending(a, s).Budget == nil })
	a.Must("update_goal", map[string]any{"sessionId": s, "action": "end"}, nil)
	a.Await(prompt)
}

// goalID is the id of a session's goal.
func (w *world) goalID(a *harness.Agent, session string) string {
	w.t.Helper()
	var r struct{ Goal struct{ GoalID string } }
	a.Must("_holdfast/get_goal", map[string]any{"sessionId": session}, &r)
	return r.Goal.GoalID
}

// A process that is killed between the sending of a request and its answer leaves a request of which nobody knows what it took. It counts with the
// most that it was expected to take, for good, and the next process does not go beyond the budget with it.
func TestBudgetCountsWhatIsUnknown(t *testing.T) {
	w := spender(t, "")
	hang, asked := make(chan struct{}), 0
	defer close(hang)
	w.answer = func(r fakemodel.Request) fakemodel.Reply {
		if asked++; asked == 3 {
			return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "I"}, {Gate: hang}}}
		}
		return reader(r)
	}
	a := w.launch("", nil)
	s := w.goal(a, map[string]any{"tokens": 12000})
	harness.Eventually(t, "the third request is on its way", func() bool { return len(w.model.Requests()) == 3 })
	a.Kill()
	a = w.launch("", nil)
	w.load(a, s)
	got := w.exhausted(a, s)
	if u := got.Budget.Used.Tokens; u < 3*perRequest-500 || u > 12000 || got.Usage.UnknownRequests != 1 {
		t.Errorf("%d tokens are counted, %d requests are unknown", u, got.Usage.UnknownRequests)
	}
	w.rests(a, s)
	if n := len(w.model.Requests()); n != 3 {
		t.Errorf("the model was asked %d times", n)
	}
}

// Money: without a price nothing is sent at all, and the goal says why. With one it goes on by retry, by the prices of the day.
func TestBudgetOfMoney(t *testing.T) {
	w := spender(t, "")
	a := w.launch("", nil)
	s := w.goal(a, map[string]any{"costMicros": 60000})
	got := w.exhausted(a, s)
	if got.ReasonCode != "budget_unpriced" || !got.CanRetry || got.CanResume || !strings.Contains(got.Reason, "[[models]]") || len(w.model.Requests()) != 0 {
		t.Errorf("without a price: %+v; the model was asked %d times", got, len(w.model.Requests()))
	}
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	w.priced("output_tokens = 100\nprice_input = 3\nprice_output = 15\n")
	a = w.launch("", nil)
	w.load(a, s)
	a.Must("update_goal", map[string]any{"sessionId": s, "action": "retry"}, nil)
	harness.Eventually(t, "it goes on", func() bool { return len(w.model.Requests()) > 0 })
	got = w.exhausted(a, s)
	n := int64(len(w.model.Requests()))
	if u := got.Budget.Used.CostMicros; got.ReasonCode != "budget_used_up" || u != n*10500 || u > 60000 || n < 3 {
		t.Errorf("%+v after %d requests", got, n)
	}
	// what has no price cannot be limited afterwards
	w.priced("output_tokens = 100")
	other := w.launch("", nil)
	free := w.goal(other, map[string]any{"tokens": 8000})
	w.exhausted(other, free)
	if _, err := other.Call("update_goal", map[string]any{"sessionId": free, "action": "budget", "budget": map[string]any{"costMicros": 1}}); err == nil ||
		!strings.Contains(err.Message, "not known") {
		t.Errorf("a limit of money on unpriced requests: %v", err)
	}
}

// Time in which it works: an attempt that runs counts up to now.
func TestBudgetOfTime(t *testing.T) {
	w := spender(t, "")
	w.answer = func(r fakemodel.Request) fakemodel.Reply {
		reply := reader(r)
		reply.Steps = []fakemodel.Step{{Text: "slowly ", Delay: 1100 * time.Millisecond}}
		return reply
	}
	a := w.launch("", nil)
	s := w.goal(a, map[string]any{"activeSeconds": 1})
	got := w.exhausted(a, s)
	if n := len(w.model.Requests()); n != 1 || got.ReasonCode != "budget_used_up" {
		t.Errorf("%+v after %d requests", got, n)
	}
	harness.Eventually(t, "the time is counted", func() bool { return w.spending(a, s).Budget.Used.ActiveSeconds >= 1 })
}

// A review is paid from the same budget: when it is not allowed, none is asked for, and raised it takes place.
func TestBudgetIncludesReviews(t *testing.T) {
	w := spender(t, "")
	isReview := func(r fakemodel.Request) bool {
		return slices.ContainsFunc(r.Tools, func(t fakemodel.Tool) bool { return t.Name == "submit_review" })
	}
	w.answer = func(r fakemodel.Request) fakemodel.Reply {
		reply := fakemodel.Text("So it is.")
		if len(r.Results()) == 0 && !isReview(r) {
			reply = fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"candidate","text":"done"}`})
		}
		reply.Usage = &fakemodel.Usage{Prompt: 3000, Completion: 100}
		return reply
	}
	reviews := func() int {
		return len(slices.DeleteFunc(w.model.Requests(), func(r fakemodel.Request) bool { return !isReview(r) }))
	}
	a := w.launch("", nil)
	s := w.goal(a, map[string]any{"tokens": 6500}) // enough for the work alone
	w.exhausted(a, s)
	if n, all := reviews(), len(w.model.Requests()); n != 0 || all == 0 {
		t.Fatalf("%d reviews among %d requests", n, all)
	}
	a.Must("update_goal", map[string]any{"sessionId": s, "action": "budget", "budget": map[string]any{"tokens": 60000}}, nil)
	harness.Eventually(t, "a review is asked for", func() bool { return reviews() > 0 })
	a.Must("update_goal", map[string]any{"sessionId": s, "action": "end"}, nil)
}

// What is no budget is refused and names the member.
func TestBudgetThatIsNone(t *testing.T) {
	w := spender(t, "")
	a := w.launch("", nil)
	s := a.NewSession(w.work)
	for name, budget := range map[string]any{"tokens": map[string]any{"tokens": 0}, "budget": map[string]any{"hours": 1}, "currency": map[string]any{"costMicros": 1, "currency": "dollars"},
		"costMicros": map[string]any{"costMicros": -5}, "activeSeconds": map[string]any{"activeSeconds": -1}} {
		if _, err := a.Call("create_goal", map[string]any{"sessionId": s, "objective": "x", "budget": budget}); err == nil || !strings.Contains(string(err.Data), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

// A summary that the goal needs is paid from the same budget: when it is not allowed, none is asked for, and raised it is.
func TestBudgetIncludesSummaries(t *testing.T) {
	w := spender(t, "context_tokens = 8000\n") // the second request would not fit
	w.write("long.txt", strings.Repeat("a line\n", 20000))
	w.answer = func(r fakemodel.Request) fakemodel.Reply {
		reply := fakemodel.Calls(fakemodel.Call{Name: "read", Args: fmt.Sprintf(`{"path":"long.txt","offset":%d,"limit":3000}`, len(r.Results())+1)})
		reply.Usage = &fakemodel.Usage{Prompt: 3000, Completion: 100}
		return reply
	}
	a := w.launch("", nil)
	s := w.goal(a, map[string]any{"tokens": 4700}) // enough for the first request
	got := w.exhausted(a, s)
	if n := len(w.model.Requests()); n != 1 || w.summaries() != 0 {
		t.Errorf("the model was asked %d times, %d of them for summaries: %+v", n, w.summaries(), got)
	}
	a.Must("update_goal", map[string]any{"sessionId": s, "action": "budget", "budget": map[string]any{"tokens": 100000}}, nil)
	harness.Eventually(t, "a summary is asked for", func() bool { return w.summaries() > 0 })
	a.Must("update_goal", map[string]any{"sessionId": s, "action": "end"}, nil)
}
