package upgrade_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"holdfast/conformance/harness"
)

// A newer release that finds an older one at work names it and changes nothing; the older one is not disturbed. When it has ended, the
// newer one goes on at the next request, in place, and keeps a copy.
func TestUpgrade_WaitsForTheOlder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, once(held))
	old := w.editor(w.old)
	s := old.NewSession(w.work)
	p := old.Prompt(s, "work")
	w.begun()
	next := w.editor(w.next)
	pid := fmt.Sprint(old.PID())
	w.refused(next, s, "store_in_use", pid, "an editor's agent", "holdfast upgrade")
	w.want(w.next, 1, []string{"sessions"}, "store_in_use", pid, "holdfast upgrade")
	w.want(w.next, 1, []string{"doctor"}, "store_in_use", pid, "holdfast upgrade")
	if len(w.backups()) > 0 {
		t.Errorf("copied all the same: %v", w.backups())
	}
	w.letGo()
	if m := old.Await(p); m.Error != nil {
		t.Fatalf("the older one was disturbed: %v", m.Error)
	}
	w.says(old, s, "more")
	w.end(old)
	next.Must("session/load", w.params(s), nil)
	harness.Eventually(t, "the history is whole", func() bool { return strings.Count(next.Text(s), "finished well") == 2 })
	w.says(next, s, "and more")
	if got := w.query("SELECT count(*) FROM next_marks"); got != 1 {
		t.Errorf("%d rows came through", got)
	}
	w.copyOpens(w.backups(), s)
	w.end(next)
}

// copyOpens wants one private copy that is a store of its own for the older release.
func (w *world) copyOpens(copies []string, session string) {
	w.t.Helper()
	if len(copies) != 1 {
		w.t.Fatalf("copies: %v", copies)
	}
	if info, err := os.Stat(copies[0]); err != nil || info.Mode().Perm() != 0o600 {
		w.t.Errorf("the copy has mode %v (%v)", info.Mode(), err)
	}
	b, err := os.ReadFile(copies[0])
	if err != nil {
		w.t.Fatal(err)
	}
	other := *w
	other.home = filepath.Join(w.dir, "other")
	other.env = append([]string{}, w.env...)
	other.env[0] = "HOLDFAST_HOME=" + other.home
	if err := os.Mkdir(other.home, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other.home, "holdfast.db"), b, 0o600); err != nil {
		w.t.Fatal(err)
	}
	other.want(w.old, 0, []string{"sessions", "--json"}, session)
}

// A newer editor that waits takes the work of a killed older one over without a request.
func TestUpgrade_GoesOnByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, once(held))
	old := w.editor(w.old)
	s := old.NewSession(w.work)
	old.Prompt(s, "work")
	w.begun()
	next := w.editor(w.next)
	w.refused(next, s, "store_in_use")
	old.Kill()
	w.letGo()
	harness.Eventually(t, "the work is finished", func() bool { return len(w.model.Requests()) == 2 })
	next.Must("session/load", w.params(s), nil)
	harness.Eventually(t, "it is told", func() bool { return strings.Contains(next.Text(s), "finished well") })
	if w.runs() != 1 {
		t.Errorf("the command ran %d times", w.runs())
	}
}

// Every kind of process counts and is named, also one that is idle.
func TestUpgrade_NamesEveryKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	s := w.used()
	mcp := w.mcp(w.old)
	if got := w.listing(mcp); !strings.Contains(got, s) {
		t.Fatalf("listed %s", got)
	}
	work := harness.Start(t, harness.Options{Binary: w.old, Args: []string{"work", "--watch"}, Env: w.env, Invalid: true})
	harness.Eventually(t, "it works", func() bool { return strings.Contains(w.run(w.old, "doctor").out, fmt.Sprintf("%d (work)", work.PID())) })
	w.want(w.next, 1, []string{"sessions"}, fmt.Sprintf("%d (an MCP server)", mcp.PID()), fmt.Sprintf("%d (holdfast work)", work.PID()))
	w.want(w.next, 1, []string{"work"}, "store_in_use")
	if got := w.listing(w.mcp(w.next)); !strings.Contains(got, "store_in_use") || !strings.Contains(got, fmt.Sprint(work.PID())) {
		t.Errorf("the newer MCP server says %s", got)
	}
	work.Kill()
	w.want(w.next, 1, []string{"sessions"}, fmt.Sprintf("%d (an MCP server)", mcp.PID()))
	w.end(mcp)
	w.want(w.next, 0, []string{"sessions", "--json"}, s)
}

// Two newer ones at once: one migrates, both work.
func TestUpgrade_TwoAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	s := w.used()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { w.want(w.next, 0, []string{"sessions", "--json"}, s) })
	}
	wg.Wait()
	if len(w.backups()) != 1 || w.query("SELECT count(*) FROM next_marks") != 1 {
		t.Errorf("copies %v", w.backups())
	}
}

// A death at any instant of the copy or of the step leaves a store that the next start brings to its end.
func TestUpgrade_SurvivesDeath(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"store.backup:before", "store.backup:after", "store.migrate:before", "store.migrate:after"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			s := w.used()
			for range 2 { // twice in a row
				a := harness.Start(t, harness.Options{Binary: w.next, Env: append([]string{"HOLDFAST_CRASH=" + point}, w.env...)})
				a.Begin("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}})
				if point == "store.migrate:after" && w.migrated() {
					a.Kill()
					break
				}
				if err := a.Wait(); err == nil {
					t.Fatal("it did not die")
				}
				if point != "store.migrate:after" { // nothing was changed: the older one still works
					w.want(w.old, 0, []string{"sessions", "--json"}, s)
				}
			}
			next := w.editor(w.next)
			w.whole(next, s)
			w.says(next, s, "second")
			w.end(next)
			for _, path := range w.backups() {
				if strings.Contains(path, ".new") {
					t.Errorf("left behind: %s", path)
				}
			}
			if n := len(w.backups()); n < 1 || n > 3 {
				t.Errorf("%d copies", n)
			}
		})
	}
}

func (w *world) migrated() bool {
	return w.query("SELECT count(*) FROM sqlite_schema WHERE name = 'next_marks'") == 1
}

// A store that a newer release has changed is refused by the older one at every door, with what it has and what it needs, and stays as
// it is to the byte.
func TestDowngrade_IsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	s := w.used()
	next := w.editor(w.next)
	w.whole(next, s)
	w.end(next)
	before := w.tree()
	schema := fmt.Sprintf("schema %d", w.query("PRAGMA user_version"))
	old := w.editor(w.old)
	w.refused(old, s, "store_newer", schema, nextVersion, "restart the editor")
	w.end(old)
	mcp := w.mcp(w.old)
	if got := w.listing(mcp); !strings.Contains(got, "store_newer") || !strings.Contains(got, schema) {
		t.Errorf("the MCP server says %s", got)
	}
	w.end(mcp)
	for _, args := range [][]string{{"sessions"}, {"doctor"}, {"work"}, {"stop", "--all"}, {"upgrade"}, {"goals"}} {
		w.want(w.old, 1, args, "store_newer", schema, nextVersion)
	}
	after := w.tree()
	for path, b := range before {
		if now, ok := after[path]; !ok || now != b {
			t.Errorf("%s was changed", path)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files, then %d", len(before), len(after))
	}
	w.want(w.next, 0, []string{"sessions", "--json"}, s)
}

// A disk without room for the copy: refused with the reason, nothing changed, and it goes on when there is room.
func TestUpgrade_FullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	s := w.used()
	disk := filepath.Join(w.dir, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	script := `set -e
mount -t tmpfs -o size=24m none ` + disk + `
cp -a ` + w.home + ` ` + disk + `/home
export HOLDFAST_HOME=` + disk + `/home
sum() { cksum < $HOLDFAST_HOME/holdfast.db; ls $HOLDFAST_HOME/backups 2>/dev/null || true; }
refused() { code=0; ` + w.next + ` sessions 2>&1 || code=$?; echo "code $code"; sum; }
cat /dev/zero > ` + disk + `/ballast 2>/dev/null || true
sum; refused
truncate -s -160K ` + disk + `/ballast # room to begin the copy
refused; ls -d $HOLDFAST_HOME/backups
rm ` + disk + `/ballast
` + w.next + ` sessions --json
ls $HOLDFAST_HOME/backups`
	path := filepath.Join(w.dir, "script")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := w.run("unshare", "-rm", "true"); r.code != 0 {
		t.Skip("needs a mount namespace; run as root or allow user namespaces: go test ./conformance/upgrade -run FullDisk")
	}
	r := w.want("unshare", 0, []string{"-rm", "sh", path}, "store_full", "code 1", s, "holdfast-schema")
	full, room, found := strings.Cut(r.out, disk+"/home/backups\n")
	sum, _, _ := strings.Cut(r.out, "\n")
	if !found || strings.Contains(full, "holdfast-schema") || strings.Count(full, sum) != 3 || strings.Count(full, "code 1") != 2 ||
		strings.Count(room, "holdfast-schema") != 1 {
		t.Errorf("something was changed, or left:\n%s", r.out)
	}
}
