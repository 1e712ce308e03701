package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"
)

// bell is the socket on which others ring, and the channel on which we hear it.
type bell struct {
	conn *net.UnixConn // nil when others cannot reach us, nor we them
	ring chan struct{} // room for one: many rings are one
	done chan struct{} // closed when the reader has ended
}

// longestPath is what fits into a socket address with its ending zero.
func longestPath() int {
	if runtime.GOOS == "linux" {
		return 107
	}
	return 103
}

// hang opens the socket. It always returns a bell that can be rung from within, with an error when others cannot reach it.
func hang(path string) (*bell, error) {
	b := &bell{ring: make(chan struct{}, 1), done: make(chan struct{})}
	conn, err := listen(path)
	if err != nil {
		close(b.done)
		return b, err
	}
	b.conn = conn
	go b.hear()
	return b, nil
}

func listen(path string) (*net.UnixConn, error) {
	if len(path) > longestPath() {
		return nil, fmt.Errorf("the path of the socket has %d bytes, %d is the most", len(path), longestPath())
	}
	if !ours(path) {
		return nil, errors.New("a file of another user is where the socket should be")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove an old socket: %w", err)
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("open the socket: %w", err)
	}
	// The folder is private already; this keeps the socket so should somebody open the folder.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect the socket: %w", err), conn.Close())
	}
	if err := askWho(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("ask for credentials: %w", err), conn.Close())
	}
	return conn, nil
}

// hear turns datagrams of this user into rings until the socket is closed. What they say does not matter.
func (b *bell) hear() {
	defer close(b.done)
	buf, who := make([]byte, 16), make([]byte, 128)
	for {
		_, n, _, _, err := b.conn.ReadMsgUnix(buf, who)
		if err != nil {
			return
		}
		if fromUs(who[:n]) {
			b.local()
		}
	}
}

func (b *bell) local() {
	select {
	case b.ring <- struct{}{}:
	default:
	}
}

// send rings at another socket. A full queue means that rings are waiting there anyway.
func (b *bell) send(path string) {
	if b.conn == nil || len(path) > longestPath() || !ours(path) {
		return
	}
	raw, err := b.conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { post(fd, path) })
}

func (b *bell) close() {
	if b.conn != nil {
		_ = b.conn.Close()
	}
	<-b.done
}

// Bell delivers when something may have changed. Many rings between two looks are one.
func (i *Instance) Bell() <-chan struct{} { return i.bell.ring }

// Heard tells whether others can ring here. Where the path of the socket is too long for the system they cannot, and the store is looked
// at instead.
func (i *Instance) Heard() bool { return i.bell.conn != nil }

// Poke rings at instances; our own id rings here. It never blocks, and one that cannot be reached finds out by looking.
func (i *Instance) Poke(ids ...string) {
	for _, id := range ids {
		switch {
		case id == i.o.ID:
			i.bell.local()
		case checkID(id) == nil:
			i.bell.send(socketPath(i.dir, id))
		}
	}
}
