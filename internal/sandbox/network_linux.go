package sandbox

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// NetworkFlags are what makes the kernel give a new process a user and a network namespace of its own, with the same user inside.
func NetworkFlags(attr *syscall.SysProcAttr, uid, gid int) {
	attr.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNET
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
}

// raiseLoopback brings the loopback up, so that a program and its own servers can talk.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
		return err
	}
	if req.Uint16()&unix.IFF_UP != 0 {
		return nil
	}
	req.SetUint16(req.Uint16() | unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// enterNetwork makes sure that this process is in a network of its own, and brings its loopback up.
func enterNetwork() error {
	list, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("look at the network: %w", err)
	}
	for _, i := range list {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			return errors.New("the network is not its own")
		}
	}
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("bring the loopback up: %w", err)
	}
	return nil
}
