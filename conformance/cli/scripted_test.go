package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The script of a goal that the document shows is played as the document says, to its acceptance.
func TestScripted_TheDocumentsGoal(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/scripted.md")
	if err != nil {
		t.Fatal(err)
	}
	_, doc, found := strings.Cut(string(b), "\n## A goal, with its review\n")
	doc, _, _ = strings.Cut(doc, "\n## ")
	script := regexp.MustCompile("(?s)```json\n(.*?)```").FindStringSubmatch(doc)
	lines := regexp.MustCompile(`(?m)^    holdfast (.*)$`).FindAllStringSubmatch(doc, -1)
	if !found || script == nil || len(lines) != 3 {
		t.Fatalf("the document has no such goal, or %d commands", len(lines))
	}
	w := newWorld(t, nil)
	w.env = append(w.env, "HOLDFAST_MODEL=")
	if err := os.WriteFile(filepath.Join(w.work, "goal.json"), []byte(script[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	var last string
	for _, l := range lines {
		last = w.want(0, regexp.MustCompile(`'[^']*'|\S+`).FindAllString(l[1], -1)...).out
	}
	if !strings.Contains(last, "achieved") || !w.has("hello.txt") {
		t.Errorf("it ends with\n%s", last)
	}
}
