package acp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// fetching plays a model that fetches the address which the user names, and says what came of it.
func fetching(r fakemodel.Request) fakemodel.Reply {
	last := r.Messages[len(r.Messages)-1]
	if addr, ok := strings.CutPrefix(r.LastUser(), "get "); ok && last.Role != "tool" {
		return calls("fetch", map[string]string{"url": addr})
	}
	return fakemodel.Text("said: " + last.Content)
}

// counted is a site that counts its visits.
func counted(t *testing.T, to string) (addr string, visits *atomic.Int32) {
	visits = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visits.Add(1)
		if r.URL.Path == "/away" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		_, _ = w.Write([]byte("a page at " + r.Host))
	}))
	t.Cleanup(s.Close)
	return s.URL, visits
}

// configure writes the user's configuration, in which the loopback is named for fetch.
func (w *world) configure(more string) {
	w.t.Helper()
	text := "[fetch]\nprivate_hosts = [\"127.0.0.1\"]\n" + more
	if err := os.WriteFile(filepath.Join(w.home, "config.toml"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// An answer with always lets later fetches from that host and port through, in the next process as well, and no other: a redirect to another
// site is a question of its own, a refusal by rule is none, and a revoked rule asks again.
func TestFetch_RulesByHost(t *testing.T) {
	t.Parallel()
	other, elsewhere := counted(t, "")
	site, visits := counted(t, other+"/landed")
	w := newWorld(t, fetching)
	w.cli("rules", "add", "deny", "--host", "*.example.org", "--cwd", "") // also makes the folder of the store
	w.configure("")
	q := &asks{answer: "allow_always"}
	a := w.asking(q.permission)
	s := a.NewSession(w.work)
	// get fetches and tells how many questions there were.
	get := func(addr, answer string) (asked int, said string) {
		t.Helper()
		before, seen := q.next(answer), len(a.Text(s))
		if got := stop(t, a, a.Prompt(s, "get "+addr)); got != "end_turn" {
			t.Fatalf("it ended with %s", got)
		}
		return q.next(answer) - before, a.Text(s)[seen:]
	}
	host := strings.TrimPrefix(site, "http://")
	if n, said := get(site+"/one", "allow_always"); n != 1 || !strings.Contains(said, "a page at "+host) || !strings.Contains(q.last(), "[always: fetches from "+host+", in sessions of ") {
		t.Fatalf("asked %d times (%s): %s", n, q.last(), said)
	}
	if n, said := get(site+"/two", "reject_once"); n != 0 || !strings.Contains(said, "a page at "+host) {
		t.Errorf("a host that is allowed asked %d times: %s", n, said)
	}
	if n, said := get(site+"/away", "reject_once"); n != 0 || !strings.Contains(said, "redirects to another site, which was not allowed: "+other+"/landed") {
		t.Errorf("a redirect asked %d times: %s", n, said)
	}
	if n, said := get(other+"/landed", "reject_once"); n != 1 || !strings.Contains(said, "refused this call") || elsewhere.Load() != 0 {
		t.Errorf("where it leads asked %d times, was reached %d times: %s", n, elsewhere.Load(), said)
	}
	if n, said := get("http://docs.example.org/", "allow_once"); n != 0 || !strings.Contains(said, "a rule of the user rejects it") {
		t.Errorf("a refused host asked %d times: %s", n, said)
	}
	a.Kill()
	a = w.asking(q.permission)
	s = a.NewSession(w.work)
	if n, _ := get(site+"/three", "reject_once"); n != 0 {
		t.Errorf("after a restart it asked %d times", n)
	}
	for _, r := range w.rules() {
		if r.Kind == "host" && r.Verdict == "allow" {
			w.cli("rules", "revoke", r.RuleID)
		}
	}
	if n, _ := get(site+"/four", "reject_once"); n != 1 || visits.Load() != 4 {
		t.Errorf("after the rule was revoked it asked %d times, the site was visited %d times", n, visits.Load())
	}
}

// A rule of the configuration lets a host through; a mode that only reads lets none.
func TestFetch_RuleOfTheConfiguration(t *testing.T) {
	t.Parallel()
	site, visits := counted(t, "")
	u, err := url.Parse(site)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, fetching)
	w.cli("rules", "add", "deny", "--host", "example.org", "--cwd", "")
	w.configure(fmt.Sprintf("[[permissions.rules]]\nverdict = \"allow\"\nhost = %q\n", u.Host))
	a := w.asking(func(raw json.RawMessage) string { t.Errorf("it asked: %s", raw); return "reject_once" })
	s := a.NewSession(w.work)
	stop(t, a, a.Prompt(s, "get "+site+"/one"))
	if got := a.Text(s); visits.Load() != 1 || !strings.Contains(got, "a page at") {
		t.Fatalf("visited %d times; it said %s", visits.Load(), got)
	}
	a.Must("session/set_mode", map[string]any{"sessionId": s, "modeId": "plan"}, nil)
	stop(t, a, a.Prompt(s, "get "+site+"/two"))
	if got := a.Text(s); visits.Load() != 1 || !strings.Contains(got, "plan mode only reads") {
		t.Errorf("in plan mode visited %d times; it said %s", visits.Load(), got)
	}
}

// formed starts an agent whose client offers forms, and answers none by itself.
func (w *world) formed() *harness.Agent {
	w.t.Helper()
	a := w.raw(unanswered)
	a.Must("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{"elicitation": map[string]any{"form": map[string]any{}}}}, nil)
	return a
}

// form waits for a form and answers it.
func form(t *testing.T, a *harness.Agent, answer map[string]any) {
	t.Helper()
	m := message(t, a, "elicitation/create", "Which colour?")
	var call struct{ ID json.RawMessage }
	if err := json.Unmarshal(m.Raw, &call); err != nil {
		t.Fatal(err)
	}
	a.Answer(call.ID, answer)
}

// A form that nobody answered comes again after a kill, and its answer goes on with the call; the model is not asked twice.
func TestAskUser_FormSurvives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, colour)
	a := w.formed()
	s := a.NewSession(w.work)
	a.Prompt(s, "paint")
	message(t, a, "elicitation/create", "Which colour?")
	a.Kill()
	b := w.formed()
	w.load(b, s)
	form(t, b, map[string]any{"action": "accept", "content": map[string]any{"choice": "blue"}})
	harness.Eventually(t, "it goes on with the answer", func() bool { return strings.Contains(b.Text(s), "so: The user chose: blue") })
	if n := len(w.requests(2)); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
	if open := w.approvals(); len(open) != 0 {
		t.Errorf("still open: %+v", open)
	}
}

// A form that is put away leaves the question parked: the prompt ends and says so, the question survives a kill, and an answer that is given
// on the command line while no process lives goes on with the call.
func TestAskUser_ParkedAndAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, colour)
	a := w.formed()
	s := a.NewSession(w.work)
	id := a.Prompt(s, "paint")
	form(t, a, map[string]any{"action": "cancel"})
	if got := stop(t, a, id); got != "end_turn" {
		t.Errorf("it ended with %s", got)
	}
	if got := a.Text(s); !strings.Contains(got, "Waiting for your answer: write it as a message") || !strings.Contains(got, "Which colour?") {
		t.Errorf("it said %q", got)
	}
	a.Kill()
	open := w.approvals()
	if len(open) != 1 {
		t.Fatalf("after the kill these are open: %+v", open)
	}
	w.cli("sessions", "answer", open[0].ApprovalID, "answer", "neither, rather green")
	b := w.asking(unanswered)
	w.load(b, s)
	harness.Eventually(t, "it goes on with the answer", func() bool { return strings.Contains(b.Text(s), "so: The user answers: neither, rather green") })
	if n := len(w.requests(2)); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
}

// A form that is declined is an answer: the model is told, and nothing stays open.
func TestAskUser_FormDeclined(t *testing.T) {
	t.Parallel()
	w := newWorld(t, colour)
	a := w.formed()
	s := a.NewSession(w.work)
	id := a.Prompt(s, "paint")
	form(t, a, map[string]any{"action": "decline"})
	stop(t, a, id)
	if got := a.Text(s); !strings.Contains(got, "does not want to answer") {
		t.Errorf("it said %q", got)
	}
	if open := w.approvals(); len(open) != 0 {
		t.Errorf("still open: %+v", open)
	}
}
