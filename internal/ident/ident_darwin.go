package ident

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// BootID names the running boot. Untested.
func BootID() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }

func machineID() string { return "" } // the host name has to do

// Start identifies a running process by its start time. Untested.
func Start(pid int) (Process, error) {
	boot, err := BootID()
	if err != nil {
		return Process{}, fmt.Errorf("read the boot id: %w", err)
	}
	kp, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return Process{}, errors.Join(ErrGone, err)
	}
	tv := kp.Proc.P_starttime
	return Process{PID: pid, Start: uint64(tv.Sec)*1_000_000 + uint64(tv.Usec), Boot: boot}, nil
}

// Self identifies this process.
func Self() Process {
	p, err := Start(os.Getpid())
	if err != nil {
		return Process{PID: os.Getpid()}
	}
	return p
}

// Signal sends a signal after checking the identity; without a handle a small window remains. Untested.
func Signal(p Process, sig unix.Signal) error {
	if !p.Alive() {
		return ErrGone
	}
	return unix.Kill(p.PID, sig)
}
