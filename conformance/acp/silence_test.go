package acp_test

import (
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
)

// A turn never ends without a word: an empty answer and a refusal are said.
func TestPrompt_EmptyAnswerIsSaid(t *testing.T) {
	for words, reply := range map[string]fakemodel.Reply{
		"answer is empty":   fakemodel.Text(""),
		"refused to answer": {Finish: "content_filter"},
	} {
		w := newWorld(t, func(fakemodel.Request) fakemodel.Reply { return reply })
		a := w.start()
		session := a.NewSession(w.work)
		a.Await(a.Prompt(session, "hello"))
		if text := a.Text(session); !strings.Contains(text, words) {
			t.Errorf("shown is %q, want %q", text, words)
		}
	}
}
