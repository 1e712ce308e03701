package editors_test

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"
)

type miss struct {
	workaround, editor string
	check              check
}

// missed says which editor would miss a workaround, and by which check.
var missed = []miss{
	{"answer_first", "zed", answerFirst},
	{"answer_first", "jetbrains", commandsLater},
	{"ask_again", "codecompanion", askedAgain},
	{"ask_again", "agentic.nvim", askedAgain},
	{"authenticate", "codecompanion", signsIn},
	{"bare_env", "avante", hasHome},
	{"cancelled_goal", "zed", cancelEnds},
	{"empty_arrays", "agentic.nvim", lenient},
	{"load_gap", "acpx by load", quietGap},
	{"refusal_line", "codecompanion", noErrors},
	{"steering", "zed", goalGivenBack},
}

// An agent that lacks a workaround fails in the editor that needs it: none is there for nothing, and no check is blind.
func TestEditors_WorkaroundsAreMissed(t *testing.T) {
	for _, c := range missed {
		t.Run(c.workaround+"/"+c.editor, func(t *testing.T) {
			t.Parallel()
			p := profileOf(c.editor)
			if p.patience > 0 { // a busy machine makes pauses of its own: here the first moment has to be the quiet one
				p.quiet, p.patience = 400*time.Millisecond, 400*time.Millisecond
			}
			failures := tell(t, p, c.workaround)
			if !slices.ContainsFunc(failures, func(f failure) bool { return f.check == c.check }) {
				t.Errorf("without %s, %q does not fail; what does: %v", c.workaround, c.check, failures)
			}
		})
	}
}

// Each workaround that the product lists has a row above and one in the document.
func TestEditors_EveryWorkaroundIsMissed(t *testing.T) {
	src, err := os.ReadFile("../../internal/fault/workarounds.go")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := regexp.MustCompile(`(?m)^\t"(\w+)"`).FindAllSubmatch(src, -1)
	if len(listed) < 5 {
		t.Fatalf("only %d workarounds were found", len(listed))
	}
	for _, m := range listed {
		if !slices.ContainsFunc(missed, func(c miss) bool { return c.workaround == string(m[1]) }) {
			t.Errorf("no editor misses %s", m[1])
		}
		if !bytes.Contains(doc, []byte("\n| `"+string(m[1])+"` |")) {
			t.Errorf("docs/protocol.md has no row for %s", m[1])
		}
	}
}
