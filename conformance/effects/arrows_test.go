package effects_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// kind is one kind of tool: a call of it, the instants of its life, and how often it took effect.
type kind struct {
	tool, shown string // as the model and as the document name it
	call        fakemodel.Call
	points      []string
	happened    func(*world) int // -1 when that leaves no trace
}

// waits is the command of the shell's call: it leaves a line, and ends when nothing holds it.
const waits = "echo ran >> ../counter; while [ -e ../hold ]; do sleep 0.02; done; exit 7"

var asked = []string{"response.stored:after", "approval.raised:after", "approval.answered:after", "effect.dispatched:before", "effect.dispatched:after"}

var settled = []string{"effect.settled:before", "effect.settled:after"}

func between(points ...string) []string {
	return append(append(append([]string{}, asked...), points...), settled...)
}

var kinds = []kind{
	{"read", "read", tool("read", map[string]string{"path": "here"}), append([]string{"response.stored:after"}, settled...), func(*world) int { return -1 }},
	{"write", "write", tool("write", map[string]string{"path": "new", "content": "new\n"}), between("tools.temp_written", "tools.renamed"),
		func(w *world) int { return strings.Count(w.read("work/new"), "new\n") }},
	{"edit", "edit", tool("edit", map[string]any{"path": "here", "edits": []any{map[string]string{"old": "plain", "new": "new"}}}),
		between("tools.temp_written", "tools.renamed"), func(w *world) int { return strings.Count(w.read("work/here"), "new") }},
	{"shell", "shell", tool("shell", map[string]string{"command": waits}), between("proc.spec", "proc.claimed", "proc.launched"),
		func(w *world) int { return w.lines("counter") }},
	{"mcp__x__act", "MCP tool", tool("mcp__x__act", map[string]any{"do": "ok", "n": 0, "text": "acted"}),
		between("mcp.sending", "mcp.written", "mcp.answer_read"), func(w *world) int { return w.lines("x.calls") }},
	{"create_goal", "goal tools", tool("create_goal", map[string]string{"objective": "Say hello."}),
		append([]string{"response.stored:after", "approval.raised:after", "approval.answered:after"}, settled...), func(w *world) int {
			var all []any
			w.holdfast(&all, "goals", "list", "--json")
			return len(all)
		}},
}

// row is what was seen on an arrow.
type row struct{ tool, moment, recorded, happened, user, model string }

func (r row) String() string {
	return strings.Join([]string{"", r.tool, r.moment, r.recorded, r.happened, r.user, r.model, ""}, " | ")
}

// seen are the rows in the order of the document.
var seen struct {
	mu   sync.Mutex
	rows map[string]row
}

// versions and ids differ each time.
var versions = regexp.MustCompile(`(version|Goal) [0-9a-f-]{12,36}`)

// skipped is what may be recorded in between: the command may run still when the next process looks.
var skipped = map[string]string{"`proc.launched`": "running_external by recovery, then "}

// see looks at the end of an arrow.
func (w *world) see(k kind, moment string, session string, a *harness.Agent) row {
	w.t.Helper()
	r := row{tool: k.shown, moment: moment}
	journal := w.effects(k.tool)
	if len(journal) != 1 {
		w.t.Errorf("the journal has %d calls: %+v", len(journal), journal)
		return r
	}
	for i, s := range journal[0].Settlements {
		if i > 0 {
			r.recorded += ", then "
		}
		r.recorded += s.Fact + " by " + s.SettledBy
	}
	r.recorded = strings.TrimPrefix(r.recorded, skipped[moment])
	if e := journal[0]; e.Lookup != "" {
		r.recorded += " (" + e.Lookup + ")"
	}
	if moment == "`supervisor.started`" { // it has certainly begun, and nobody waits for it
		harness.Eventually(w.t, "the command takes effect", func() bool { return k.happened(w) > 0 })
	}
	switch n := k.happened(w); n {
	case -1:
		r.happened = "–"
	case 0:
		r.happened = "no"
	case 1:
		r.happened = "once"
	default:
		w.t.Errorf("it happened %d times", n)
	}
	if moment == "`mcp.written`" {
		r.happened = "once or not" // the server may die before it has read it
	}
	for _, c := range calls(a, session) {
		if r.user != "" {
			w.t.Errorf("the editor shows more than one call: %+v", calls(a, session))
		}
		r.user = c.Status
		if c.Status != "completed" {
			r.user += ": " + w.plain(c.Text)
		}
	}
	results := w.results()
	if len(results) != 1 {
		w.t.Errorf("the model was told %q", results)
		return r
	}
	r.model = w.plain(results[0])
	return r
}

// plain is a text as the document has it.
func (w *world) plain(s string) string {
	s = strings.ReplaceAll(versions.ReplaceAllString(s, "$1 …"), w.work, "…")
	s = strings.Join(strings.Fields(s), " ")
	s, _, _ = strings.Cut(s, " It may have happened wholly") // the same words each time
	s = strings.NewReplacer("|", "\\|", "<", "\\<").Replace(s)
	s = strings.TrimSuffix(strings.TrimSpace(s), " It is not repeated by itself.")
	if r := []rune(s); len(r) > 150 {
		s = string(r[:150]) + "…"
	}
	return strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
}

func (w *world) keep(r row) {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if seen.rows == nil {
		seen.rows = map[string]row{}
	}
	seen.rows[r.tool+"/"+r.moment] = r
	if !w.t.Failed() && !*update {
		if !strings.Contains(document(w.t), strings.TrimSpace(r.String())+"\n") {
			w.t.Errorf("docs/effects.md says something else; run go test ./conformance/effects -update and read the diff. Seen:\n%s", strings.TrimSpace(r.String()))
		}
	}
}

func (w *world) clean() {
	w.t.Helper()
	err := filepath.WalkDir(w.work, func(path string, _ os.DirEntry, err error) error {
		if strings.Contains(path, ".holdfast-tmp-") {
			w.t.Errorf("a temporary file was left: %s", path)
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
}

// TestArrows dies at every instant of a call of every kind of tool, and once while a command runs.
func TestArrows(t *testing.T) {
	t.Run("each", func(t *testing.T) {
		for _, k := range kinds {
			for _, point := range k.points {
				t.Run(strings.ReplaceAll(k.shown, " ", "_")+"/"+point, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, map[string][]fakemodel.Call{"go": {k.call}})
					w.put("work/here", "plain to see\n")
					session := w.die(point, "go")
					a := w.reopen(session)
					said(t, a, session, "done go")
					w.keep(w.see(k, "`"+point+"`", session, a))
					w.clean()
				})
			}
		}
		for _, point := range supervised {
			t.Run("shell/"+point, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, map[string][]fakemodel.Call{"go": {kinds[3].call}})
				a := w.launch(point)
				session := w.open(a)
				w.prompt(a, session, "go")
				w.fired(point)
				w.keep(w.see(kinds[3], "`"+point+"`", session, a))
			})
		}
		t.Run("shell/running", func(t *testing.T) { t.Parallel(); running(t) })
	})
	if *update {
		rewrite(t)
	}
	if strings.Count(document(t), "\n| ") != len(order())+2 {
		t.Errorf("the table has %d lines, %d were looked at", strings.Count(document(t), "\n| ")-2, len(order()))
	}
}

// supervised are the instants at which not Holdfast dies but the supervisor of a command.
var supervised = []string{"supervisor.claimed", "supervisor.starting", "supervisor.started", "supervisor.running", "supervisor.exited", "supervisor.receipt"}

const whileRunning = "while it runs"

// running kills Holdfast while a command runs: it is still running outside, is found again, and ends once.
func running(t *testing.T) {
	w := newWorld(t, map[string][]fakemodel.Call{"go": {kinds[3].call}})
	w.put("hold", "")
	a := w.launch("")
	session := w.open(a)
	a.Prompt(session, "go")
	harness.Eventually(t, "the command runs", func() bool { return w.lines("counter") == 1 })
	a.Kill()
	before := len(w.model.Requests())
	b := w.reopen(session)
	harness.Eventually(t, "it is recorded as running outside", func() bool {
		e := w.effects("shell")
		return len(e) == 1 && e[0].Fact == "running_external" && e[0].State == "dispatched" && !e[0].CanSettle
	})
	if n := len(w.model.Requests()); n != before {
		t.Errorf("%d model requests were made while the command ran", n-before)
	}
	if err := os.Remove(w.path("hold")); err != nil {
		t.Fatal(err)
	}
	said(t, b, session, "done go")
	w.keep(w.see(kinds[3], whileRunning, session, b))
}

// order lists the rows of the document.
func order() (keys []string) {
	for _, k := range kinds {
		for _, point := range k.points {
			keys = append(keys, k.shown+"/`"+point+"`")
		}
		if k.tool == "shell" {
			keys = append(keys, "shell/"+whileRunning)
			for _, point := range supervised {
				keys = append(keys, "shell/`"+point+"`")
			}
		}
	}
	return keys
}

func documentPath() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "docs", "effects.md")
}

const begins, ends = "<!-- seen by conformance/effects -->\n", "<!-- end -->\n"

// document is the table of docs/effects.md.
func document(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(documentPath())
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), begins)
	table, _, found := strings.Cut(after, ends)
	if !found {
		t.Fatal("docs/effects.md has no table")
	}
	return "\n" + table
}

func rewrite(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile(documentPath())
	if err != nil {
		t.Fatal(err)
	}
	var s strings.Builder
	s.WriteString("| tool | moment of death | recorded | it happened | the user sees | the model is told |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, key := range order() {
		r, ok := seen.rows[key]
		if !ok {
			t.Fatalf("nothing was seen of %s; run all of TestArrows", key)
		}
		fmt.Fprintln(&s, strings.TrimSpace(r.String()))
	}
	before, rest, _ := strings.Cut(string(b), begins)
	_, after, _ := strings.Cut(rest, ends)
	if err := os.WriteFile(documentPath(), []byte(before+begins+s.String()+ends+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Readers of one answer share a commit. Whatever is not stored when the process dies is read again, and what comes after them is done once.
func TestReads_ShareACommit(t *testing.T) {
	look := func(name string) fakemodel.Call { return tool("read", map[string]string{"path": name}) }
	for _, crash := range []string{"", "effect.settled:before", "effect.settled:after", "effect.dispatched:after"} {
		t.Run(crash, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, map[string][]fakemodel.Call{"go": {look("a"), look("none"), look("b"), tool("no_such_tool", map[string]any{}), writing("out", "out\n"), look("out")}})
			w.together = true
			w.put("work/a", "first\n")
			w.put("work/b", "second\n")
			var session string
			if crash != "" {
				session = w.die(crash, "go")
			}
			a := w.launch("")
			if crash == "" {
				session = w.open(a)
				w.prompt(a, session, "go")
			} else {
				a.Must("session/load", w.params(session), nil)
			}
			said(t, a, session, "done go")
			r := w.results()
			if len(r) != 6 || !strings.Contains(r[0], "first") || !strings.Contains(r[2], "second") || !strings.Contains(r[3], "no tool named") {
				t.Fatalf("the model was told %q", r)
			}
			if wrote := strings.Contains(r[4], "version") && strings.Contains(r[5], "out"); wrote != (crash != "effect.dispatched:after") || (w.read("work/out") == "out\n") != wrote {
				t.Errorf("the model was told %q, the file says %q", r[4:], w.read("work/out"))
			}
			for _, e := range w.effects("read") {
				if e.State != "settled" || e.Fact != "completed" || len(e.Settlements) != 1 {
					t.Errorf("recorded %+v", e)
				}
			}
		})
	}
}
