package ident

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

var bootID = sync.OnceValues(func() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return string(bytes.TrimSpace(b)), nil
})

// BootID names the running boot of the kernel.
func BootID() (string, error) { return bootID() }

// space names our PID namespace, empty where the system does not show it.
var space = sync.OnceValue(func() string {
	link, _ := os.Readlink("/proc/self/ns/pid")
	return link
})

func machineID() string {
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if b, err := os.ReadFile(path); err == nil && len(bytes.TrimSpace(b)) > 0 {
			return string(b)
		}
	}
	return ""
}

// status is what the kernel says about one process.
type status struct {
	state   byte
	parent  int
	threads int
	start   uint64
}

// dead: a zombie only waits to be collected, unless just its first thread has ended and others work on.
func (s status) dead() bool { return s.state == 'X' || s.state == 'Z' && s.threads <= 1 }

func read(pid int) (status, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return status{}, errors.Join(ErrGone, err)
	}
	if err != nil { // for example no descriptor left: not a proof of anything
		return status{}, fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	s, err := parse(b)
	if err != nil {
		return status{}, fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	return s, nil
}

// parse reads a line of stat. The name in parentheses may hold anything, so fields are counted after the last one.
func parse(b []byte) (status, error) {
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 {
		return status{}, fmt.Errorf("only %d fields", len(fields))
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return status{}, fmt.Errorf("parent: %w", err)
	}
	threads, err := strconv.Atoi(string(fields[17]))
	if err != nil {
		return status{}, fmt.Errorf("threads: %w", err)
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return status{}, fmt.Errorf("start: %w", err)
	}
	return status{state: fields[0][0], parent: parent, threads: threads, start: start}, nil
}

// Start identifies a running process.
func Start(pid int) (Process, error) {
	boot, err := BootID()
	if err != nil {
		return Process{}, err
	}
	s, err := read(pid)
	if err != nil {
		return Process{}, err
	}
	if s.dead() {
		return Process{}, ErrGone
	}
	return Process{PID: pid, Start: s.start, Boot: boot, Space: space()}, nil
}

// Descendants lists the running processes below one, itself left out. What forks meanwhile may be missed: ask again.
func Descendants(pid int) ([]Process, error) {
	boot, err := BootID()
	if err != nil {
		return nil, err
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	byParent := map[int][]Process{}
	for _, name := range names {
		n, err := strconv.Atoi(name)
		if err != nil {
			continue // not a process
		}
		s, err := read(n)
		if errors.Is(err, ErrGone) || errors.Is(err, fs.ErrPermission) { // hidden ones are other users'
			continue
		}
		if err != nil {
			return nil, err
		}
		if !s.dead() { // its children are its parent's by now
			byParent[s.parent] = append(byParent[s.parent], Process{PID: n, Start: s.start, Boot: boot, Space: space()})
		}
	}
	return below(pid, byParent), nil
}

// Signal sends a signal to exactly this process: the identity is checked again once a handle holds the PID (I2).
func Signal(p Process, sig unix.Signal) error {
	if p.PID <= 0 {
		return ErrGone
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return ErrGone
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // no handles in this kernel or sandbox: a small window remains
		return p.signal(func() error { return unix.Kill(p.PID, sig) })
	case err != nil:
		return fmt.Errorf("open a handle of process %d: %w", p.PID, err)
	}
	defer func() { _ = unix.Close(fd) }()
	return p.signal(func() error { return unix.PidfdSendSignal(fd, sig, nil, 0) })
}

// Suspended tells whether the system has stopped this process. Not knowing is no.
func (p Process) Suspended() bool {
	s, err := read(p.PID)
	return err == nil && s.start == p.Start && (s.state == 'T' || s.state == 't')
}
