package storage_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// A disk that is really full: a small file system of the test's own, in a mount namespace of its own.
func TestFullDisk(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		t.Run("prompt", fullPrompt)
		t.Run("answer", fullAnswer)
		t.Run("call", fullCall)
		t.Run("command", fullCommand)
		t.Run("every commit", fullEveryCommit)
		return
	}
	plain, faults, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), inNamespace+"="+plain, inNamespaceFaults+"="+faults)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) {
		t.Skip("needs a mount namespace; as root, or where user namespaces are allowed: go test -run FullDisk ./conformance/storage")
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestFullDisk/every_commit") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// small is a world whose state directory has a small disk to itself.
type small struct {
	*world
	full atomic.Bool
}

func newSmall(t *testing.T, answer func(s *small, r fakemodel.Request) fakemodel.Reply) *small {
	t.Helper()
	s := &small{}
	s.world = newWorld(t, func(r fakemodel.Request) fakemodel.Reply { return answer(s, r) })
	s.must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")) // nothing of this is seen outside
	s.must(os.Mkdir(s.home, 0o700))
	s.must(unix.Mount("tmpfs", s.home, "tmpfs", 0, "size=24m,mode=0700"))
	t.Cleanup(func() { _ = unix.Unmount(s.home, unix.MNT_DETACH) })
	return s
}

func (s *small) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// fill leaves no room, and no reserve.
func (s *small) fill() {
	if s.full.Swap(true) {
		return
	}
	_ = os.Remove(filepath.Join(s.home, "reserve"))
	f, err := os.Create(filepath.Join(s.home, "ballast"))
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		s.t.Errorf("fill the disk: %v", err)
	}
	_ = f.Close()
}

func (s *small) free() {
	s.must(os.Remove(filepath.Join(s.home, "ballast")))
}

// waits wants the user to be told that nothing can be stored.
func (s *small) waits(a *harness.Agent, session string) {
	s.t.Helper()
	harness.Eventually(s.t, "the user is told that the disk is full", func() bool {
		return strings.Contains(a.Text(session), "store_full: The disk that holds the store is full. The work waits and goes on by itself.")
	})
}

// A prompt that cannot be stored is refused by name, everything stored can be read, and the next one works when there is room.
func fullPrompt(t *testing.T) {
	s := newSmall(t, func(*small, fakemodel.Request) fakemodel.Reply { return fakemodel.Text("I see.") })
	a := s.editor()
	id := s.talk(a, "first")
	s.fill()
	long := strings.Repeat("long ", 200_000)
	m := a.Await(a.Prompt(id, long))
	if code, action := codeOf(m.Error); code != "store_full" || action == "" {
		t.Fatalf("the prompt: %+v", m.Error)
	}
	if asked := len(s.model.Requests()); asked != 1 {
		t.Errorf("the model was asked %d times", asked)
	}
	b := s.want(0, "sessions", "show", id)
	if !strings.Contains(b, "first") || strings.Contains(b, "long long") {
		t.Errorf("the history: %s", b)
	}
	if f, code := s.doctor(); code == 0 {
		t.Errorf("doctor is content: %+v", f)
	} else {
		s.found(f, "space", "person", "MiB are free")
	}
	s.free()
	s.say(a, id, "second")
	if err := a.CloseInput(); err != nil {
		t.Error(err)
	}
}

// An answer that cannot be stored waits in memory and is whole afterwards.
func fullAnswer(t *testing.T) {
	text := strings.Repeat("word ", 400_000)
	s := newSmall(t, func(s *small, _ fakemodel.Request) fakemodel.Reply {
		s.fill()
		return fakemodel.Text(text)
	})
	a := s.editor()
	id := a.NewSession(s.work)
	p := a.Prompt(id, "talk")
	s.waits(a, id)
	s.free()
	if m := a.Await(p); m.Error != nil {
		t.Fatal(m.Error)
	}
	if got := s.value(`SELECT body ->> 'text' FROM items WHERE kind = 'agent' AND session = ?1`, id); got != text {
		t.Errorf("%d of %d bytes of the answer are stored", len(got), len(text))
	}
	if n := len(s.model.Requests()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

// A call that cannot be recorded is not made; it is made once when there is room.
func fullCall(t *testing.T) {
	args, err := json.Marshal(map[string]string{"path": "big.txt", "content": strings.Repeat("line\n", 200_000)})
	if err != nil {
		t.Fatal(err)
	}
	s := newSmall(t, func(s *small, r fakemodel.Request) fakemodel.Reply {
		if len(r.Results()) > 0 {
			return fakemodel.Text("Written.")
		}
		s.fill()
		return fakemodel.Calls(fakemodel.Call{Name: "write", Args: string(args)})
	})
	a := s.editor()
	id := a.NewSession(s.work)
	p := a.Prompt(id, "write")
	s.waits(a, id)
	if s.has("big.txt") {
		t.Error("a call was made that is not on record")
	}
	s.free()
	if m := a.Await(p); m.Error != nil {
		t.Fatal(m.Error)
	}
	if s.lines("big.txt") != 200_000 {
		t.Error("the call was not made")
	}
	if got := s.value(`SELECT group_concat(state || ' ' || fact || ' ' || settled_by) FROM effects WHERE session = ?1`, id); got != "settled completed result" {
		t.Errorf("the journal says %q", got)
	}
}

// The result of a command that ended on a full disk is not lost: it is stored before the model goes on from it, and the command ran once.
func fullCommand(t *testing.T) {
	s := newSmall(t, func(_ *small, r fakemodel.Request) fakemodel.Reply {
		if len(r.Results()) > 0 {
			return fakemodel.Text("Done.")
		}
		return shell("echo run >> counter; head -c 1000000 /dev/zero | tr '\\0' x; touch begun; while [ ! -e go ]; do sleep 0.02; done")
	})
	a := s.editor()
	id := a.NewSession(s.work)
	p := a.Prompt(id, "work")
	harness.Eventually(t, "the command runs", func() bool { return s.has("begun") })
	s.fill()
	s.put("go")
	s.waits(a, id)
	s.free()
	if m := a.Await(p); m.Error != nil {
		t.Fatal(m.Error)
	}
	if got := s.value(`SELECT group_concat(state || ' ' || fact) FROM effects WHERE session = ?1`, id); got != "settled completed" || s.lines("counter") != 1 {
		t.Errorf("the journal says %q; the command ran %d times", got, s.lines("counter"))
	}
}
