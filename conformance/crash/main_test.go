// Package crash_test kills the real binary with SIGKILL at every named crash point and at the moments a user may meet, launches it again
// on the same state, and checks from outside that the work goes on to its end: nothing is done twice and nothing accepted is lost.
//
// Words. A world is one state directory, one work tree and one scripted model; it outlives the processes. A user is one client with its
// memory: after each launch it goes on with what was not acknowledged. A play is what the user does; it may be started again after any
// death. A trial is a play in which the process dies at one point.
package crash_test

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"holdfast/conformance/harness"
)

// abreast is how many worlds run at once.
const abreast = 4

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", strconv.Itoa(abreast))
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// long skips what takes many minutes.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("HOLDFAST_CRASH_LONG") == "" {
		t.Skip("the wide matrix takes many minutes; make crash runs it")
	}
}
