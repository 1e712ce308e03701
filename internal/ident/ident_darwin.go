package ident

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const zombie = 5 // SZOMB of sys/proc.h

// BootID names the running boot. Untested.
func BootID() (string, error) {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return id, nil
}

func space() string { return "" } // there is one

func machineID() string { return "" } // the host name has to do

// Start identifies a running process by its start time. Untested.
func Start(pid int) (Process, error) {
	boot, err := BootID()
	if err != nil {
		return Process{}, err
	}
	kp, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EIO) { // EIO is how the wrapper says that there was no answer
		return Process{}, errors.Join(ErrGone, err)
	}
	if err != nil {
		return Process{}, fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	if kp.Proc.P_stat == zombie {
		return Process{}, ErrGone
	}
	return identify(kp, boot), nil
}

func identify(kp *unix.KinfoProc, boot string) Process {
	tv := kp.Proc.P_starttime
	return Process{PID: int(kp.Proc.P_pid), Start: uint64(tv.Sec)*1_000_000 + uint64(tv.Usec), Boot: boot}
}

// Descendants lists the running processes below one, itself left out. Orphans are not found: they belong to launchd. Untested.
func Descendants(pid int) ([]Process, error) {
	boot, err := BootID()
	if err != nil {
		return nil, err
	}
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	byParent := map[int][]Process{}
	for i := range list {
		if kp := &list[i]; kp.Proc.P_stat != zombie {
			byParent[int(kp.Eproc.Ppid)] = append(byParent[int(kp.Eproc.Ppid)], identify(kp, boot))
		}
	}
	return below(pid, byParent), nil
}

// Signal sends a signal after checking the identity; without a handle a small window remains. Untested.
func Signal(p Process, sig unix.Signal) error {
	if p.PID <= 0 {
		return ErrGone
	}
	return p.signal(func() error { return unix.Kill(p.PID, sig) })
}

const stopped = 4 // SSTOP of sys/proc.h

// Suspended tells whether the system has stopped this process. Not knowing is no. Untested.
func (p Process) Suspended() bool {
	kp, err := unix.SysctlKinfoProc("kern.proc.pid", p.PID)
	return err == nil && kp.Proc.P_stat == stopped
}
