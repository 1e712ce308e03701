package security_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// What the user always allows carries nothing else with it, however it is joined, hidden or wrapped.
func TestAttack_Chained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mark := filepath.Join(w.dir, "mark")
	w.put(w.work, "a.txt", "a\n")
	w.run(w.work, "rules", "add", "allow", "--prefix", "echo fine", "--cwd", w.work)
	evil := "touch " + mark
	attacks := []string{
		"echo fine && " + evil, "echo fine || " + evil, "echo fine; " + evil, "echo fine | " + evil, "echo fine & " + evil, "echo fine\n" + evil, "echo fine |& " + evil,
		"echo fine $(" + evil + ")", "echo fine `" + evil + "`", "echo fine <(" + evil + ")", "echo fine \"$(" + evil + ")\"", "echo fine ${X:-$(" + evil + ")}", "echo fine $((a[$(" + evil + ")]))",
		"echo fine > " + mark, "echo fine >> " + mark, "echo fine >| " + mark, "echo fine &> " + mark, "echo fine 2> " + mark, "echo fine <> " + mark,
		"echo() { " + evil + "; }; echo fine", "alias echo='" + evil + " #'\necho fine", "{ echo fine; " + evil + "; }", "(echo fine; " + evil + ")", "if echo fine; then " + evil + "; fi",
		"echo fine <<EOF\n$(" + evil + ")\nEOF", "cat <<EOF | sh\n" + evil + "\nEOF", "bash -c '" + evil + "'", "env " + evil, "eval '" + evil + "'", "xargs -n1 touch <<< " + mark,
		"PATH=.:$PATH echo fine; " + evil, "echo fine \\\n; " + evil, "echo fine #\n" + evil, "! echo fine || " + evil, "time " + evil, "exec " + evil, "command " + evil,
		"find . -maxdepth 0 -exec " + evil + " ;", "find . -maxdepth 0 -exec " + evil + " \\;", "e\"ch\"o fine; " + evil, "$'touch' " + mark, "echo fine\r\n" + evil, "trap '" + evil + "' EXIT; echo fine",
		"echo fine && cd .. && " + evil, "coproc " + evil, "echo fine;;" + evil, "echo fine 'unfinished", "case x in x) " + evil + ";; esac",
	}
	for _, c := range attacks {
		w.will(tool("shell", m{"command": c}))
	}
	w.will(tool("shell", m{"command": "echo fine and well"})) // the rule is there
	w.attack("ask")
	w.absent(mark, "what was joined to an allowed command")
	asked := w.asked()
	if len(asked) != len(attacks) {
		seen := map[string]bool{}
		for _, q := range asked {
			title, _, _ := strings.Cut(q.Title, " [")
			seen[title] = true
		}
		for _, c := range attacks {
			if !seen[strings.ReplaceAll(strings.TrimSpace(c), "\n", " ⏎ ")] {
				t.Logf("perhaps not asked: %q", c)
			}
		}
		t.Errorf("%d of %d were asked", len(asked), len(attacks))
	}
	if r := w.results(); !strings.HasPrefix(r[len(r)-1], "fine and well") {
		t.Errorf("what is allowed says %q", r[len(r)-1])
	}
}
