package crash_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// names reads the list of crash points from the text of its source.
func names(t *testing.T) (commits, actions []string) {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	b, err := os.ReadFile(filepath.Join(filepath.Dir(file), "..", "..", "internal", "fault", "points.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t"([a-z_.]+)",$`).FindAllStringSubmatch(string(b), -1) {
		if outside(m[1]) {
			actions = append(actions, m[1])
		} else {
			commits = append(commits, m[1])
		}
	}
	if len(commits) < 30 || len(actions) < 8 {
		t.Fatalf("the list of points was not understood: %d commits, %d actions", len(commits), len(actions))
	}
	return commits, actions
}

// outside tells whether a point belongs to an action outside the store.
func outside(name string) bool {
	group, _, _ := strings.Cut(name, ".")
	return group == "proc" || group == "supervisor" || group == "mcp" || group == "tools" || group == "tree"
}

// unreachable are the points that no client can make the binary reach, and where they are tested instead.
var unreachable = map[string]string{
	"store.backup": withOlder,
	"store.raised": withOlder,

	"effect.looked_up": "no play here has a file that cannot be looked at; conformance/effects dies here",

	"question.answered": "no play here sets a goal without requirements; conformance/goals dies here",

	"owner.handed_over": "two windows are needed; TestWindows_HandedOver dies here",
	"owner.disowned":    "only a takeover on the command line frees sessions; conformance/owners dies here",
	"owner.moved":       "only a folder from another machine has something to move; conformance/owners dies here",
	"trust.given":       "only the command line and a line of the user lead there; conformance/servers dies here",
	"trust.revoked":     "only the command line and a line of the user lead there; conformance/servers dies here",

	"rule.added": "only the command line adds a rule without a question; TestRuleAdded dies here",

	"queue.joined": withQueue,
	"recovery.set": withQueue,

	"mcp.sending":      withServer,
	"mcp.written":      withServer,
	"mcp.answer_read":  withServer,
	"send.resolved":    withServer,
	"servers.listed":   withServer,
	"servers.supplied": withServer,

	"redo.accepted":  withFiles,
	"tree.restoring": withFiles,
	"turn.stalled":   withFiles,
	"undo.accepted":  withFiles,
	"undo.settled":   withFiles,

	"erasure.files_removed": withDelete,
	"session.deleted":       withDelete,
	"session.erased":        withDelete,
}

const withDelete = "no play here deletes a session; conformance/cli dies here"

const withOlder = "a store of an older schema is needed, and no binary here makes one; conformance/upgrade dies here"

const withFiles = "no play here takes files back or stalls; conformance/undo dies here"

const withQueue = "no play here has unattended work that is inherited, or settings of it; conformance/quota dies here"

const withServer = "no play here has an external server; conformance/servers dies here"

// own are the points that need a play of their own. All others are met on the way of an ordinary Goal.
var own = map[string]trial{
	"approval.rejected":        {play: says("please shell", "That is all."), setup: rejecting, check: answered(0, "please shell")},
	"background.settled":       {play: backgroundPlay, check: served(1, "exit code 7")},
	"cancel.accepted":          {play: cancelPlay, check: stopped},
	"compaction.committed":     {play: says("please talk", "So it goes.", "/compact", "became a summary", "please shell", "That is all."), check: compactedOnce},
	"effect.lost":              {play: goalPlay, setup: losing, check: lost},
	"effect.refused":           {play: says("please nothing", "It is not there."), check: answered(0, "please nothing")},
	"effect.settled_by_person": {play: goalPlay, setup: losing, check: lost},
	"goal.controlled":          {play: controlPlay, check: achieved},
	"goal.exhausted":           {play: budgetPlay, check: achieved},
	"mode.set":                 {play: modePlay, check: unasked},
	"model.retry":              {play: says("please fault", "It works at last."), check: answered(0, "please fault")},
	"owner.claim":              {prelude: running(false), play: claimPlay, check: achieved},
	"owner.released":           {play: closePlay, check: achieved},
	"owner.takeover":           {prelude: running(true), play: goalPlay, check: achieved},
	"prompt.accepted":          {play: storyPlay, check: toldOnce},
	"recovery.decided":         {prelude: running(true), play: goalPlay, check: achieved},
	"response.lost":            {play: says("please fault", "It works at last."), check: answered(0, "please fault")},
	"remark.stored":            {play: remarkPlay, check: remarked},
	"rule.revoked":             {play: revokePlay, setup: always, check: answered(1, "please shell")},
	"run.closed":               {play: cancelPlay, check: stopped},
	"session.closed":           {play: closePlay, check: achieved},
	"session.opened":           {play: closePlay, check: achieved},
	"text.flushed":             {play: storyPlay, check: toldOnce},
	"turn.failed":              {play: denyPlay, check: answered(0, "please deny")},
	"turn.left":                {play: cancelPlay, check: stopped},
}

var storyPlay = says("please story", "happily ever after.", "please talk", "So it goes.")

var toldOnce = answered(1, "please story", "please talk")

// remarked checks that a question to Holdfast itself is in the transcript as far as it was stored, and was never put to the model.
func remarked(u *user) {
	answered(0, "please talk")(u)
	_, person := u.transcript()
	want := 1
	if u.died == "remark.stored:before" {
		want = 0
	}
	if n := strings.Count(person, "/goal status\n"); n != want {
		u.w.t.Errorf("the question is in the transcript %d times, want %d: %q", n, want, person)
	}
	for _, r := range u.w.model.Requests() {
		for _, m := range r.Messages {
			if strings.Contains(m.Content, "/goal status") {
				u.w.t.Error("the question was put to the model")
			}
		}
	}
}

// compactedOnce checks that the conversation has one summary, for which the model was asked once more only when it had not been stored.
func compactedOnce(u *user) {
	answered(1, "please talk", "/compact", "please shell")(u)
	agent, _ := u.transcript()
	if n := strings.Count(agent, "became a summary"); n != 1 {
		u.w.t.Errorf("the conversation was compacted %d times", n)
	}
	want := 1
	if u.died == "compaction.committed:before" {
		want = 2
	}
	if n := u.w.seen("summary"); n != want {
		u.w.t.Errorf("a summary was asked for %d times, want %d", n, want)
	}
	for _, r := range u.w.model.Requests() {
		if topicOf(r) == "shell" && !strings.Contains(r.Messages[0].Content+r.Messages[1].Content, "SUMMARY of the talk.") {
			u.w.t.Error("what came after was asked without the summary")
		}
	}
}

// rejecting is a user who lets nothing run.
func rejecting(u *user) { u.choose = func(string) string { return "reject_once" } }

// denyPlay prompts a model that refuses for good, and prompts again once it does not.
func denyPlay(u *user) error {
	if _, err := u.open(); err != nil {
		return err
	}
	if u.sent == "" {
		u.sent = "please deny"
		if err := u.await(u.a.Prompt(u.session, u.sent), "session/prompt", nil); errors.Is(err, errDied) {
			return err
		}
	}
	if strings.HasPrefix(u.died, "turn.failed") && u.sent == "please talk" {
		u.sent = "please deny" // the refusal was answered right before the death, and the prompt behind it met nobody
	}
	return u.say("please talk", "So it goes.")
}

// unasked checks that nothing was asked in a mode that does not ask.
func unasked(u *user) {
	answered(0, "please write")(u)
	if len(u.asks) > 0 {
		u.w.t.Errorf("questions were asked: %v", u.asks)
	}
	if u.w.inode == 0 {
		u.w.t.Error("the file was not written")
	}
}

// TestPoints dies before and after each commit, and at each outside action, and goes on.
func TestPoints(t *testing.T) {
	commits, actions := names(t)
	for _, name := range append(commits, actions...) {
		instants := []string{name + ":before", name + ":after"}
		if outside(name) {
			instants = []string{name}
		}
		if why := unreachable[name]; why != "" {
			t.Logf("%s: %s", name, why)
			continue
		}
		tr, ok := own[name]
		if s, is := strings.CutPrefix(name, "supervisor."); is {
			tr = supervised(s)
		} else if !ok {
			tr = trial{play: goalPlay, check: achieved}
		}
		for _, instant := range instants {
			t.Run(instant, func(t *testing.T) {
				t.Parallel()
				tr.dying(instant).run(t)
			})
		}
	}
	for name := range own {
		if !strings.Contains(strings.Join(commits, " ")+" ", name+" ") {
			t.Errorf("%s has a play and is no point", name)
		}
	}
	for name := range unreachable {
		if !slices.Contains(slices.Concat(commits, actions), name) {
			t.Errorf("%s is listed as unreachable and is no point", name)
		}
	}
}
