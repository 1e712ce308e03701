package effects_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// The file itself says what became of a write: applied, not applied, or neither.
const (
	applied    = "completed by probe"
	notApplied = "not_started by probe"
	neither    = "unknown by probe nothing"
)

// change is one write or edit whose process dies with the new content beside the file, and once with it in its place.
type change struct {
	name   string
	make   func(*world)
	call   fakemodel.Call
	after  func(*world) // what somebody else does before the next launch
	beside string       // the fact when it died before the rename
	placed string       // and after it
	check  func(w *world, applied bool)
}

func editing(path string) fakemodel.Call {
	return tool("edit", map[string]any{"path": path, "edits": []any{map[string]string{"old": "old", "new": "new"}}})
}

func writing(path, content string) fakemodel.Call {
	return tool("write", map[string]string{"path": path, "content": content})
}

// is checks the bytes of a file.
func is(path, before, after string) func(*world, bool) {
	return func(w *world, applied bool) {
		want := before
		if applied {
			want = after
		}
		if got := w.read(path); got != want {
			w.t.Errorf("%s holds %q, want %q", path, got, want)
		}
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func with(text string) func(*world) { return func(w *world) { w.put("work/f", text) } }

var changes = []change{
	{"regular", with("old\nkeep\n"), editing("f"), nil, notApplied, applied, is("work/f", "old\nkeep\n", "new\nkeep\n")},
	{"new", func(*world) {}, writing("f", "new\n"), nil, notApplied, applied, is("work/f", "(f is not there)", "new\n")},
	{"new in a new directory", func(*world) {}, writing("a/b/f", "new\n"), nil, notApplied, applied, is("work/a/b/f", "(f is not there)", "new\n")},
	{"symlink", func(w *world) {
		w.put("work/real", "old\n")
		w.must(os.Symlink("real", w.path("work/f")))
	}, editing("f"), nil, notApplied, applied, func(w *world, applied bool) {
		if to, err := os.Readlink(w.path("work/f")); err != nil || to != "real" {
			w.t.Errorf("the link is no longer one: %q %v", to, err)
		}
		is("work/real", "old\n", "new\n")(w, applied)
	}},
	{"symlink to nothing", func(w *world) { w.must(os.Symlink("real", w.path("work/f"))) }, writing("f", "new\n"), nil, notApplied, applied,
		func(w *world, applied bool) {
			if to, err := os.Readlink(w.path("work/f")); err != nil || to != "real" {
				w.t.Errorf("the link is no longer one: %q %v", to, err)
			}
			is("work/real", "(real is not there)", "new\n")(w, applied)
		}},
	{"renamed", with("old\n"), editing("f"), func(w *world) { w.must(os.Rename(w.path("work/f"), w.path("work/g"))) }, neither, neither,
		is("work/g", "old\n", "new\n")},
	{"deleted directory", func(w *world) {
		w.must(os.Mkdir(w.path("work/d"), 0o755))
		w.put("work/d/f", "old\n")
	}, editing("d/f"), func(w *world) { w.must(os.RemoveAll(w.path("work/d"))) }, neither, neither, func(w *world, _ bool) { is("work/d/f", "(f is not there)", "")(w, false) }},
	{"permissions", func(w *world) {
		w.put("work/f", "old\n")
		w.must(os.Chmod(w.path("work/f"), 0o750|os.ModeSetgid))
	}, editing("f"), nil, notApplied, applied, func(w *world, applied bool) {
		info, err := os.Stat(w.path("work/f"))
		w.must(err)
		if info.Mode() != 0o750|os.ModeSetgid {
			w.t.Errorf("the mode is %v", info.Mode())
		}
		is("work/f", "old\n", "new\n")(w, applied)
	}},
	{"mode changed by somebody", with("old\n"), editing("f"), func(w *world) { w.must(os.Chmod(w.path("work/f"), 0o600)) }, notApplied, applied, is("work/f", "old\n", "new\n")},
	{"CRLF", with("old\r\nkeep\r\n"), editing("f"), nil, notApplied, applied, is("work/f", "old\r\nkeep\r\n", "new\r\nkeep\r\n")},
	{"byte-order mark", with("\ufeffold\nkeep"), editing("f"), nil, notApplied, applied, is("work/f", "\ufeffold\nkeep", "\ufeffnew\nkeep")},
	{"line ends changed by somebody", with("old\r\n"), editing("f"), with("old\n"), neither, neither, is("work/f", "old\n", "old\n")},
	{"replaced by another program", with("old\n"), editing("f"), func(w *world) {
		w.put("work/other", "theirs\n")
		w.must(os.Rename(w.path("work/other"), w.path("work/f")))
	}, neither, neither, is("work/f", "theirs\n", "theirs\n")},
	{"put back by somebody", with("old\n"), editing("f"), with("old\n"), notApplied, notApplied, is("work/f", "old\n", "old\n")},
	{"hard link", func(w *world) {
		w.put("work/f", "old\n")
		w.must(os.Link(w.path("work/f"), w.path("work/g")))
	}, editing("f"), nil, notApplied, applied, func(w *world, applied bool) {
		is("work/f", "old\n", "new\n")(w, applied)
		is("work/g", "old\n", "old\n")(w, applied)
	}},
	{"a directory in its place", with("old\n"), editing("f"), func(w *world) {
		w.must(os.Remove(w.path("work/f")))
		w.must(os.Mkdir(w.path("work/f"), 0o755))
	}, "unknown by probe file", "unknown by probe file", func(*world, bool) {}},
}

func TestFiles_TheFileSaysWhatHappened(t *testing.T) {
	for _, c := range changes {
		for point, want := range map[string]string{"tools.temp_written": c.beside, "tools.renamed": c.placed} {
			t.Run(c.name+"/"+point, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, map[string][]fakemodel.Call{"go": {c.call}})
				c.make(w)
				session := w.die(point, "go")
				if c.after != nil {
					c.after(w)
				}
				a := w.reopen(session)
				said(t, a, session, "done go")
				e := w.effects(c.call.Name)
				if len(e) != 1 || len(e[0].Settlements) != 1 {
					t.Fatalf("the journal has %+v", e)
				}
				s := e[0].Settlements[0]
				if got := strings.TrimSpace(s.Fact + " by " + s.SettledBy + " " + e[0].Lookup); got != want {
					t.Errorf("recorded %q, want %q", got, want)
				}
				if e[0].Lookup != "file" && s.Evidence == "" {
					t.Errorf("nothing proves it: %+v", s)
				}
				c.check(w, point == "tools.renamed")
				w.clean()
			})
		}
	}
}

// An edit through one of several names says that the others keep what was there.
func TestFiles_HardLinkIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string][]fakemodel.Call{"go": {editing("f")}})
	w.put("work/f", "old\n")
	w.must(os.Link(w.path("work/f"), w.path("work/g")))
	a := w.launch("")
	w.prompt(a, w.open(a), "go")
	if r := w.results(); len(r) != 1 || !strings.Contains(r[0], "2 names") {
		t.Errorf("the model was told %q", r)
	}
}

// A death in the middle of a large write leaves the old or the new content, and nothing beside it.
func TestFiles_LargeWriteIsNeverTorn(t *testing.T) {
	before, after := strings.Repeat("old line of text\n", 60_000), strings.Repeat("new line of text\n", 60_000)
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			read := tool("read", map[string]any{"path": "f", "limit": 1})
			w := newWorld(t, map[string][]fakemodel.Call{"look": {read}})
			w.put("work/f", before)
			a := w.launch("")
			session := w.open(a)
			w.prompt(a, session, "look")
			_, version, _ := strings.Cut(w.results()[0], "version ")
			w.mu.Lock()
			w.turns["go"] = []fakemodel.Call{tool("write", map[string]string{"path": "f", "content": after, "version": version[:12]})}
			w.mu.Unlock()
			a.Prompt(session, "go")
			harness.Eventually(t, "the write begins", func() bool {
				some, _ := filepath.Glob(w.path("work/.holdfast-tmp-*")) // the pattern is a good one
				return len(some) > 0 || w.read("work/f") == after
			})
			a.Kill()
			b := w.reopen(session)
			said(t, b, session, "done go")
			got, e := w.read("work/f"), w.effects("write")
			if len(e) != 1 || e[0].State != "settled" || got != before && got != after || (got == after) != (e[0].Fact == "completed") {
				t.Errorf("%d bytes, old %v, new %v, recorded %+v", len(got), got == before, got == after, e)
			}
			w.clean()
		})
	}
}

// needsMounts skips where no file system can be mounted.
func needsMounts(t *testing.T) {
	t.Helper()
	args := []string{"-m", "true"}
	if os.Getuid() != 0 {
		args[0] = "-rm"
	}
	if err := exec.Command("unshare", args...).Run(); err != nil {
		t.Skip("needs a mount namespace; run as root or allow user namespaces: go test ./conformance/effects -run NoPlaceToWrite")
	}
}

// mounted launches the agent where the directory work/m is a file system of its own.
func (w *world) mounted(t *testing.T, mount string) *harness.Agent {
	t.Helper()
	plain, _, err := harness.Binaries()
	w.must(err)
	w.must(os.MkdirAll(w.path("work/m"), 0o755))
	args := []string{"-m"}
	if os.Getuid() != 0 {
		args = []string{"-rm"}
	}
	env := append([]string{"HOLDFAST_HOME=" + w.home}, w.model.Env(fakemodel.Family())...)
	a := harness.Start(t, harness.Options{Binary: "unshare", Args: append(args, "sh", "-c", mount+" && exec "+plain+" acp"), Env: env, Dir: w.work, Permission: w.permit})
	a.Must("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}}, nil)
	return a
}

// A disk that is full, and a directory that cannot be written: the call fails, nothing is changed and nothing is left beside the file.
func TestFiles_NoPlaceToWrite(t *testing.T) {
	look := tool("shell", map[string]string{"command": "ls -A m; wc -c < m/f"})
	for name, c := range map[string]struct{ mount, says string }{
		"full disk":           {"mount -t tmpfs -o size=64k tmpfs m && printf old > m/f", "no space left on device"},
		"read-only directory": {"mount -t tmpfs -o size=1m tmpfs m && printf old > m/f && mount -o remount,ro m", "read-only file system"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needsMounts(t)
			write := tool("edit", map[string]any{"path": "m/f", "edits": []any{map[string]string{"old": "old", "new": strings.Repeat("new ", 50_000)}}})
			w := newWorld(t, map[string][]fakemodel.Call{"go": {write, look}})
			a := w.mounted(t, c.mount)
			w.prompt(a, w.open(a), "go")
			r := w.results()
			if len(r) != 2 || !strings.Contains(r[0], c.says) || !strings.Contains(r[0], "Nothing was changed") || !strings.HasPrefix(r[1], "f\n3\n") {
				t.Errorf("the model was told %q", r)
			}
			if e := w.effects("edit"); len(e) != 1 || e[0].State != "settled" || e[0].SettledBy != "result" {
				t.Errorf("recorded %+v", e)
			}
		})
	}
}
