package ident

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"
)

func TestProcess_AliveComparesTheStart(t *testing.T) {
	self := Self()
	if !self.Alive() {
		t.Fatal("this process is not alive")
	}
	reused := self
	reused.Start++
	if reused.Alive() {
		t.Error("another start time passes for the same process")
	}
	rebooted := self
	rebooted.Boot = "another boot"
	if rebooted.Alive() {
		t.Error("another boot passes for the same process")
	}
}

func TestSignal_OnlyTheSameProcess(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := Start(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	other := p
	other.Start++
	if err := Signal(other, syscall.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("a reused PID was signalled: %v", err)
	}
	if !p.Alive() {
		t.Fatal("the process was hit although its identity differs")
	}
	if err := Signal(p, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process ended by itself")
	}
	if p.Alive() {
		t.Error("a dead process is alive")
	}
	if err := Signal(p, syscall.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("signalling a dead process: %v", err)
	}
}

func TestProcess_ZombieIsDead(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := Start(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	_, _ = out.Read(make([]byte, 1)) // returns when cat has closed its output
	for p.Alive() {                  // it has ended and is not waited for yet: bounded by the test's own limit
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestHost_IsNotTheRawID(t *testing.T) {
	if h := Host(); len(h) != 32 || h == machineID() {
		t.Errorf("host %q", h)
	}
}
