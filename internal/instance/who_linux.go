package instance

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// askWho makes the kernel say with each datagram which user sent it.
func askWho(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = raw.Control(func(fd uintptr) { serr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) })
	return errors.Join(err, serr)
}

// fromUs tells whether what came with a datagram names this user, or root.
func fromUs(oob []byte) bool {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return false
	}
	for i := range msgs {
		if c, err := unix.ParseUnixCredentials(&msgs[i]); err == nil {
			return int(c.Uid) == os.Geteuid() || c.Uid == 0
		}
	}
	return false
}
