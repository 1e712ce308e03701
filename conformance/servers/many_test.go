package servers_test

import (
	"fmt"
	"testing"

	"holdfast/conformance/harness"
)

// Twenty servers that do not answer yet do not hold session/new up; once they do, their tools are offered.
func TestMany_SessionNewDoesNotWait(t *testing.T) {
	t.Parallel()
	const many = 20
	w := newWorld(t, follow(turns{"go": {tool("mcp__s07__act", act("ok", 0, "the seventh"))}}))
	for i := range many {
		w.hostile(fmt.Sprintf("s%02d", i), plan{"start_when": w.path("awake"), "lives": w.path("all.lives")})
	}
	a := w.start("")
	session := w.open(a) // the file that they wait for is not there: none can be ready
	harness.Eventually(t, "the servers are started all the same", func() bool { return len(w.lives("all")) == many })
	w.touch("awake")
	w.prompt(a, session, "go")
	if got := w.result(); got != "the seventh" {
		t.Errorf("the answer is %q", got)
	}
	offered := 0
	for _, name := range w.offered() {
		for i := range many {
			if name == fmt.Sprintf("mcp__s%02d__act", i) {
				offered++
			}
		}
	}
	if offered != many {
		t.Errorf("the tools of %d servers are offered", offered)
	}
	if err := a.CloseInput(); err != nil {
		t.Error(err)
	}
	w.allGone("all")
}
