//go:build linux

package instance

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// ringer is this test's binary as another user: it sends one datagram, which says nothing, to a socket.
const ringer = "HOLDFAST_TEST_RING"

func init() {
	path := os.Getenv(ringer)
	if path == "" {
		return
	}
	conn, err := net.Dial("unixgram", path)
	if err == nil {
		_, err = conn.Write([]byte{1})
	}
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// A ring of another user is not heard, and the next of our own is.
func TestBell_HearsOnlyItsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can send as another user: sudo go test -run TestBell ./internal/instance")
	}
	dir, err := os.MkdirTemp("/tmp", "hf")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "s")
	conn, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := os.Chmod(dir, 0o777); err != nil { // somebody has opened the folder
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(dir, "ringer") // where another user may start it
	bin, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(self, bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[uint32]bool{4711: false, 0: true} {
		cmd := exec.Command(self)
		cmd.Env = []string{ringer + "=" + path}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("ring as %d: %v %s", uid, err, out)
		}
		who := make([]byte, 128)
		_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 16), who)
		if err != nil {
			t.Fatal(err)
		}
		if got := fromUs(who[:n]); got != want {
			t.Errorf("a ring of user %d passes for ours: %v", uid, got)
		}
	}
}

// A socket of another user is neither rung nor replaced.
func TestBell_LeavesOthersAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to another user: sudo go test -run TestBell ./internal/instance")
	}
	path := filepath.Join(t.TempDir(), "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if !ours(path) {
		t.Error("our own socket is not ours")
	}
	if err := os.Lchown(path, 4711, 4711); err != nil {
		t.Fatal(err)
	}
	if ours(path) {
		t.Error("a socket of another user passes for ours")
	}
	if _, err := listen(path); err == nil {
		t.Error("a socket of another user was replaced")
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}
