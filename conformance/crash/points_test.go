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
	return group == "proc" || group == "supervisor" || group == "mcp"
}

// unreachable are the points that no client can make the binary reach, and where they are tested instead.
var unreachable = map[string]string{
	"store.backup": "a store of an older schema is needed and there is only one schema; the tests of the store die here with two",

	"mcp.sending":      withServer,
	"mcp.written":      withServer,
	"mcp.answer_read":  withServer,
	"send.resolved":    withServer,
	"servers.listed":   withServer,
	"servers.supplied": withServer,
}

const withServer = "no play here has an external server; conformance/servers dies here"

// own are the points that need a play of their own. All others are met on the way of an ordinary Goal.
var own = map[string]trial{
	"approval.rejected":        {play: says("please shell", "That is all."), setup: rejecting, check: answered(0, "please shell")},
	"background.settled":       {play: backgroundPlay, check: served(1, "exit code 7")},
	"cancel.accepted":          {play: cancelPlay, check: stopped},
	"effect.lost":              {play: goalPlay, setup: losing, check: lost},
	"effect.refused":           {play: says("please nothing", "It is not there."), check: answered(0, "please nothing")},
	"effect.settled_by_person": {play: goalPlay, setup: losing, check: lost},
	"goal.controlled":          {play: controlPlay, check: achieved},
	"mode.set":                 {play: modePlay, check: unasked},
	"model.retry":              {play: says("please fault", "It works at last."), check: answered(0, "please fault")},
	"owner.claim":              {prelude: running(false), play: claimPlay, check: achieved},
	"owner.released":           {play: closePlay, check: achieved},
	"owner.takeover":           {prelude: running(true), play: goalPlay, check: achieved},
	"prompt.accepted":          {play: storyPlay, check: toldOnce},
	"recovery.decided":         {prelude: running(true), play: goalPlay, check: achieved},
	"remark.stored":            {play: statusPlay, check: saidSo},
	"response.lost":            {play: says("please fault", "It works at last."), check: answered(0, "please fault")},
	"run.closed":               {play: cancelPlay, check: stopped},
	"session.closed":           {play: closePlay, check: achieved},
	"session.opened":           {play: closePlay, check: achieved},
	"text.flushed":             {play: storyPlay, check: toldOnce},
	"turn.failed":              {play: denyPlay, check: answered(0, "please deny")},
	"turn.left":                {play: cancelPlay, check: stopped},
}

var storyPlay = says("please story", "happily ever after.", "please talk", "So it goes.")

var toldOnce = answered(1, "please story", "please talk")

// statusPlay asks where the goal stands, which the model never hears of; again, when the agent died before it had answered.
func statusPlay(u *user) error {
	if _, err := u.open(); err != nil {
		return err
	}
	return u.await(u.a.Prompt(u.session, "/status"), "session/prompt", nil)
}

// saidSo checks that the question and its answer are in the history, and that the model was not asked.
func saidSo(u *user) {
	said, person := u.transcript()
	if !strings.Contains(said, "No goal.") || !strings.Contains(person, "/status\n") || u.w.requests() != 0 {
		u.w.t.Errorf("the transcript holds %q and %q; %d requests", said, person, u.w.requests())
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
