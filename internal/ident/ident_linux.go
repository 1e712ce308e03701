package ident

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// BootID names the running boot of the kernel.
var BootID = sync.OnceValues(func() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return string(bytes.TrimSpace(b)), nil
})

func machineID() string {
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if b, err := os.ReadFile(path); err == nil && len(bytes.TrimSpace(b)) > 0 {
			return string(b)
		}
	}
	return ""
}

// Start identifies a running process.
func Start(pid int) (Process, error) {
	boot, err := BootID()
	if err != nil {
		return Process{}, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, errors.Join(ErrGone, err)
	}
	// The name in parentheses may hold anything, so fields are counted after the last one.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return Process{}, fmt.Errorf("read the state of process %d: only %d fields", pid, len(fields))
	}
	if s := fields[0][0]; s == 'Z' || s == 'X' {
		return Process{}, ErrGone
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return Process{}, fmt.Errorf("read the start of process %d: %w", pid, err)
	}
	return Process{PID: pid, Start: start, Boot: boot}, nil
}

// Self identifies this process.
func Self() Process {
	p, err := Start(os.Getpid())
	if err != nil {
		return Process{PID: os.Getpid()}
	}
	return p
}

// Signal sends a signal to exactly this process: the identity is checked again once a handle holds the PID.
func Signal(p Process, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	if err != nil {
		return fmt.Errorf("open a handle of process %d: %w", p.PID, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if !p.Alive() {
		return ErrGone
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); errors.Is(err, unix.ESRCH) {
		return ErrGone
	} else if err != nil {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	return nil
}
