package security_test

import (
	"bytes"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

// The credential of the model's endpoint goes to the endpoint and nowhere else.
func TestAttack_KeyOfTheModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "HOLDFAST_LOG=trace")
	w.serve("x", m{"log": filepath.Join(w.dir, "calls")})
	w.choose = func(ask) string { return "allow_once" }
	w.will(tool("shell", m{"command": "env; cat /proc/$$/environ | tr '\\0' '\\n'"}), tool("mcp__x__act", m{"do": "env"}))
	w.will(tool("shell", m{"command": "env", "background": true}), tool("shell", m{"command": "env", "pty": true}))
	a, _ := w.attack("ask")
	if r := w.results(); len(r) != 4 || !strings.Contains(r[0], "PATH=") || !strings.Contains(r[1], "PATH=") {
		t.Fatalf("the environments are %.2000q", r)
	}
	key := []byte(modelKey)
	for _, out := range w.outputs(a) {
		if bytes.Contains([]byte(out), key) {
			t.Errorf("the key is in %.300s", out)
		}
	}
	_ = a.CloseInput()
	files := 0
	err := filepath.WalkDir(w.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // what is gone holds nothing
		}
		files++
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, key) {
			t.Errorf("the key is in %s", path)
		}
		if info, err := d.Info(); err == nil && info.Mode().Perm()&0o077 != 0 && filepath.Base(path) != "config.toml" {
			t.Logf("%s has the mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil || files == 0 {
		t.Errorf("%d files were searched, %v", files, err)
	}
	if info, err := os.Stat(w.home); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the state directory is open to others: %v, %v", info.Mode(), err)
	}
}

// What is sent to the socket of a process wakes it at most.
func TestAttack_NoiseAtTheDoorbell(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.choose = func(ask) string { return "" } // nobody answers
	mark := filepath.Join(w.dir, "mark")
	w.will(tool("shell", m{"command": "touch " + mark}))
	a := w.start()
	id := w.open(a, w.work)
	prompt := a.Prompt(id, "go")
	harness.Eventually(t, "the question", func() bool { return len(w.asked()) == 1 })
	var socket string
	_ = filepath.WalkDir(w.home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSocket != 0 {
			socket = path
			if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the socket has the mode %v, %v", info.Mode(), err)
			}
		}
		return nil
	})
	if socket == "" {
		t.Fatal("there is no socket")
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	sent := 0
	for i := range 3000 {
		noise := []string{"", "x", `{"method":"session/prompt"}`, strings.Repeat("allow_once ", 5000), "\x00\xff"}[i%5]
		if _, err := conn.Write([]byte(noise)); err == nil { // a full queue refuses, which harms nobody
			sent++
		}
	}
	if sent < 100 {
		t.Fatalf("only %d datagrams were taken", sent)
	}
	if n := len(w.asked()); n != 1 {
		t.Errorf("noise has asked %d questions", n-1)
	}
	a.Notify("session/cancel", m{"sessionId": id})
	if msg := a.Await(prompt); !bytes.Contains(msg.Result, []byte("cancelled")) {
		t.Errorf("the turn ended with %s %v", msg.Result, msg.Error)
	}
	w.absent(mark, "a command that nobody answered for")
	w.usable(a)
}
