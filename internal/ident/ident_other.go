//go:build !linux && !darwin

package ident

import (
	"errors"
	"os"
	"syscall"
)

var errUnsupported = errors.New("process identity is not available on this system")

// BootID is not available here.
func BootID() (string, error) { return "", errUnsupported }

func machineID() string { return "" }

// Start is not available here.
func Start(int) (Process, error) { return Process{}, errUnsupported }

// Self identifies this process by its PID alone.
func Self() Process { return Process{PID: os.Getpid()} }

// Signal is not available here.
func Signal(Process, syscall.Signal) error { return errUnsupported }
