//go:build !linux && !darwin

package ident

import (
	"errors"
	"syscall"
)

var errUnsupported = errors.New("process identity is not available on this system")

// BootID is not available here.
func BootID() (string, error) { return "", errUnsupported }

func space() string { return "" }

func machineID() string { return "" }

// Start is not available here.
func Start(int) (Process, error) { return Process{}, errUnsupported }

// Descendants is not available here.
func Descendants(int) ([]Process, error) { return nil, errUnsupported }

// Signal is not available here.
func Signal(Process, syscall.Signal) error { return errUnsupported }

// Suspended is not known here.
func (p Process) Suspended() bool { return false }
