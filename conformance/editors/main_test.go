// Package editors_test plays the editors that launch the agent, with their habits, against the real binary.
//
// Words. A profile is an editor as data. A story is what its user does, the same for all: a session, a prompt with a tool, a stop, a Goal, an
// agent that is killed in the middle and launched again, a thread that is opened again the editor's way. A check has a name; a story ends
// with the checks that failed, so that a test can expect one.
package editors_test

import (
	"os"
	"testing"

	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// Every editor's user gets through the story and nothing that the editor cannot take is sent to it.
func TestEditors_Story(t *testing.T) {
	for _, p := range profiles {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, f := range tell(t, p, "") {
				t.Errorf("%s: %s", f.check, f.what)
			}
		})
	}
}
