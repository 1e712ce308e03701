package crash_test

import (
	"strings"

	"holdfast/conformance/harness"
)

// losing makes the supervisor of the first life's command die while the command runs. Whatever asks about that, the user knows better.
func losing(u *user) {
	u.env = []string{"HOLDFAST_SUPERVISOR_CRASH=supervisor.running"}
	u.unknown = func() string { return "it_happened" }
}

// lost checks the end of a Goal one of whose calls nobody saw ending: it is not repeated, and the question named it.
func lost(u *user) {
	u.achieved(0)
	named := 0
	for _, q := range u.asks {
		if q.unknown {
			named++
			if !strings.Contains(q.title, "echo run") {
				u.w.t.Errorf("the question does not name the operation: %s", q.title)
			}
		}
	}
	if named == 0 {
		u.w.t.Error("nobody was asked about the unknown outcome")
	}
}

// supervised is the trial of a supervisor that dies at its point. The agent dies once that has happened: its next supervisors must live.
func supervised(point string) trial {
	began := point != "claimed" && point != "starting"
	tr := trial{check: achieved}
	if began && point != "receipt" { // nothing tells how it ended
		tr.check = lost
	}
	tr.setup = func(u *user) {
		u.unknown = func() string { // the user has looked, and knows
			if began {
				return "it_happened"
			}
			return "it_did_not"
		}
	}
	tr.play = func(u *user) error {
		if u.died != "" {
			return goalPlay(u)
		}
		if _, err := u.open(); err != nil {
			return err
		}
		if err := u.create(); err != nil {
			return err
		}
		harness.Eventually(u.w.t, "the supervisor dies", func() bool { return u.w.lines("fired-1") == 1 })
		if began {
			u.commandRuns()
		}
		return nil
	}
	return tr
}
