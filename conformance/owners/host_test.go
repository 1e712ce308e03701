package owners_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// elsewhere makes a session whose command runs look as if a process of another machine had it: the folder was copied from there.
func elsewhere(t *testing.T) (w *world, session string) {
	t.Helper()
	w = newWorld(t, once(held))
	a := w.launch()
	session = a.NewSession(w.work)
	a.Prompt(session, "run it")
	harness.Eventually(t, "the command runs", func() bool { return w.lines("counter") == 1 })
	a.Kill()
	w.edit(`UPDATE instances SET host = 'ffeeddccbbaa99887766554433221100', boot = 'another boot'`)
	w.put("go") // the command ends, and nobody of this machine may say so
	harness.Eventually(t, "the command has ended", func() bool { return w.lines("counter") == 2 })
	return w, session
}

// Work of a process on another machine is shown and not touched, however free its locks are here. A person moves it, and then nothing of what
// was under way is taken for done or for not done.
func TestOtherHost_IsMovedByAPerson(t *testing.T) {
	t.Parallel()
	w, session := elsewhere(t)
	b := w.launch()
	w.load(b, session)
	move := "holdfast sessions takeover " + session + " --from-other-host"
	told(t, b, "at the opening", "another machine (ffeeddcc)", "recorded there at", move)
	b.Must("session/list", map[string]any{}, nil)
	for _, c := range [][]string{{"ps"}, {"sessions", "show", session}, {"doctor"}} {
		out, code := w.holdfast(nil, c...)
		if !holds(out, "another machine (ffeeddcc)", move) {
			t.Errorf("%v: %s", c, out)
		}
		if c[0] == "doctor" && (code != 3 || !strings.Contains(out, "other_host")) {
			t.Errorf("doctor: exit code %d\n%s", code, out)
		}
	}
	var list []struct{ State, ReasonCode, NextOwner string }
	w.holdfast(&list, "sessions", "list", "--json")
	if len(list) != 1 || list[0].State != "waiting" || list[0].ReasonCode != "other_host" {
		t.Errorf("sessions list: %+v", list)
	}
	id := b.Prompt(session, "anybody there?")
	told(t, b, "the prompt", "another machine (ffeeddcc)")
	if out, code := w.holdfast(nil, "sessions", "takeover", session); code != 1 || !holds(out, "another machine", "--from-other-host") {
		t.Errorf("without the word: %d %s", code, out)
	}
	reply(t, b, b.Prompt(session, "/takeover"))
	told(t, b, "in the window", "another machine", "--from-other-host")
	if n := len(w.model.Requests()); n != 1 {
		t.Fatalf("something was executed: %d requests", n)
	}
	if n := w.number(`SELECT count(*) FROM effects WHERE state = 'dispatched' AND fact = ''`); n != 1 {
		t.Fatal("somebody has said what became of the call")
	}

	if out, code := w.holdfast(nil, "sessions", "takeover", session, "--from-other-host"); code != 0 || !holds(out, "moved 1 session", "unknown outcome") {
		t.Errorf("with the word: %d %s", code, out)
	}
	if got := reply(t, b, id); got != "end_turn" {
		t.Errorf("the prompt ended with %s", got)
	}
	out, _ := w.holdfast(nil, "effects")
	if !holds(out, "unknown", "shell") || w.lines("counter") != 2 {
		t.Errorf("the call: %s, %d lines", out, w.lines("counter"))
	}
	if n := w.number(`SELECT count(*) FROM effects WHERE fact = 'unknown' AND note LIKE '%another machine%'`); n != 1 {
		t.Errorf("%d calls say that their outcome is unknown", n)
	}
}

// Without a restart of the word nothing happens, however often and by whom the store is opened.
func TestOtherHost_NobodyTakesItOver(t *testing.T) {
	t.Parallel()
	w, session := elsewhere(t)
	for range 3 {
		a := w.launch()
		a.Must("session/list", map[string]any{}, nil)
		w.load(a, session)
		w.must(a.CloseInput())
	}
	out, code := w.holdfast(nil, "work")
	if code != 3 || !holds(out, "other_host", "--from-other-host") {
		t.Errorf("holdfast work: %d %s", code, out)
	}
	if n := len(w.model.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// After a restart of the machine every recorded process is dead, whatever its lock file, its number and the number's new process say.
func TestReboot_ProvesAllDead(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]func(w *world){
		"with lock files":    func(*world) {},
		"without lock files": func(w *world) { w.must(os.RemoveAll(filepath.Join(w.home, "run"))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, talk)
			a := w.start("HOLDFAST_CRASH=request.started:after/kill")
			a.Initialize()
			session := a.NewSession(w.work)
			a.Prompt(session, "hello")
			if err := a.Wait(); err == nil {
				t.Fatal("it did not die")
			}
			w.edit(`UPDATE instances SET boot = 'before the restart', pid = ?`, os.Getpid())
			files(w)
			b := w.launch()
			w.load(b, session)
			harness.Eventually(t, "the work goes on", func() bool { return strings.Contains(b.Text(session), "finished well") })
		})
	}
}

// hanging never answers the first request.
func hanging(t *testing.T) func(fakemodel.Request) fakemodel.Reply {
	var asked atomic.Int32
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	return func(r fakemodel.Request) fakemodel.Reply {
		if asked.Add(1) == 1 {
			return fakemodel.Reply{Steps: []fakemodel.Step{fakemodel.Gate(never)}}
		}
		return talk(r)
	}
}

// Lock files that were removed prove nothing; that the process is gone does.
func TestLock_Removed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hanging(t))
	a := w.launch()
	session := a.NewSession(w.work)
	a.Prompt(session, "hello")
	w.wait(1)
	suspend(t, a)
	lock, err := filepath.Glob(filepath.Join(w.home, "run", "*-*.lock"))
	if err != nil || len(lock) != 1 {
		t.Fatalf("%v %v", lock, err)
	}
	w.must(os.Remove(lock[0]))
	b := w.launch()
	w.load(b, session)
	if out, code := w.holdfast(nil, "sessions", "takeover", session); code != 1 || !strings.Contains(out, "cannot be told") {
		t.Errorf("takeover: %d %s", code, out)
	}
	if n := len(w.model.Requests()); n != 1 {
		t.Errorf("%d requests while it lives", n)
	}
	a.Kill()
	harness.Eventually(t, "the work goes on", func() bool { return strings.Contains(b.Text(session), "finished well") })
}

// A folder that is copied while its owner lives holds that owner's lock file, and its lock is free. Nobody goes on twice with one work: not
// while the process lives. When it is gone, the copy goes on.
func TestCopiedHome_WhileItsOwnerLives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hanging(t))
	a := w.launch()
	session := a.NewSession(w.work)
	a.Prompt(session, "hello")
	w.wait(1)
	suspend(t, a)
	copied := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-R", w.home, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	original := w.home
	w.home = copied
	b := w.launch()
	w.load(b, session)
	var ps psView
	w.holdfast(&ps, "ps", "--json")
	seen := false
	for _, p := range ps.Processes {
		seen = seen || p.PID == a.PID() && p.State == "" && len(p.Owns) == 1
	}
	if !seen {
		t.Errorf("holdfast ps: %+v", ps)
	}
	if out, code := w.holdfast(nil, "sessions", "takeover", session); code != 1 || !strings.Contains(out, "copied here") {
		t.Errorf("takeover: %d %s", code, out)
	}
	if n := len(w.model.Requests()); n != 1 {
		t.Errorf("%d requests while it lives", n)
	}
	a.Kill()
	harness.Eventually(t, "the copy goes on", func() bool { return strings.Contains(b.Text(session), "finished well") })
	w.must(b.CloseInput())
	w.home = original
}

// A network file system is refused with its name and what to do, in every door.
func TestNetworkFileSystem_IsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, talk)
	pretend := []string{"HOLDFAST_PRETEND=fs=nfs"}
	a := w.launch(pretend...)
	_, e := a.Call("session/new", map[string]any{"cwd": w.work, "mcpServers": []any{}})
	if e == nil || !holds(string(e.Data), `"store_network_fs"`, "HOLDFAST_HOME") || !strings.Contains(e.Message, "nfs") {
		t.Errorf("session/new: %v", e)
	}
	w.must(a.CloseInput())
	out, code := w.holdfastWith(pretend, nil, "work")
	if code != 1 || !holds(out, "store_network_fs", "nfs", "HOLDFAST_HOME") {
		t.Errorf("work: %d %s", code, out)
	}
	b := w.launch() // on a local disk, so that there is something to look at
	b.NewSession(w.work)
	w.must(b.CloseInput())
	for _, c := range [][]string{{"doctor"}, {"sessions", "list"}, {"ps"}} {
		out, code := w.holdfastWith(pretend, nil, c...)
		if code != 1 || !holds(out, "store_network_fs", "nfs", "HOLDFAST_HOME") {
			t.Errorf("%v: %d %s", c, code, out)
		}
	}
}
