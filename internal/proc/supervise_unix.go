//go:build unix

package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"

	"golang.org/x/sys/unix"

	"holdfast/internal/ident"
	"holdfast/internal/secret"
)

// hidden is the argument that makes this binary a supervisor.
const hidden = "__supervise"

// Main runs a supervisor when the arguments ask for one. It must be the first thing a program does.
func Main(args []string) (handled bool) {
	if len(args) != 3 || args[1] != hidden {
		return false
	}
	if err := supervise(args[2]); err != nil {
		os.Exit(1) // the files say how far it came
	}
	return true
}

// supervise runs the command of a folder to its end. Until the starting file is there, every error means that nothing ran (I1).
func supervise(dir string) error {
	if err := inherit(dir); err != nil {
		return err
	}
	s := &supervisor{dir: dir, term: make(chan os.Signal, 1), child: make(chan os.Signal, 1)}
	_, _ = unix.Setsid() // fails only for the leader of a group, which the launching shell made no one
	listen(s.term, s.child)
	become()
	point("supervisor.claimed")
	if ok, err := take(dir, "spec", &s.spec); err != nil || !ok {
		return errors.Join(err, os.ErrNotExist)
	}
	h, err := environment()
	if err != nil {
		return err
	}
	s.env, s.blanker.mask = h.Env, secret.New(h.Hide...)
	if s.receipt, err = reserve(dir); err != nil {
		return err
	}
	self, err := ident.Start(os.Getpid()) // without it nobody could stop us
	if err != nil {
		return err
	}
	if err := put(dir, "starting", self, false); err != nil {
		return err
	}
	point("supervisor.starting")
	return s.run()
}

// inherit keeps the descriptors that are ours: the lock, which nobody gets from us, and the environment. All others that came along
// belong to whoever started our launcher, and would wait for our end.
func inherit(dir string) error {
	names, err := os.ReadDir(inherited)
	if err != nil {
		return fmt.Errorf("list inherited files: %w", err)
	}
	for _, n := range names {
		fd, err := strconv.Atoi(n.Name())
		if err != nil || fd <= envFD {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd) // Go's own are all closed on exec
		}
	}
	unix.CloseOnExec(claimFD)
	unix.CloseOnExec(envFD)
	var got, want unix.Stat_t
	if err := errors.Join(unix.Fstat(claimFD, &got), unix.Stat(path(dir, "alive"), &want)); err != nil {
		return fmt.Errorf("check the lock: %w", err)
	}
	if got.Dev != want.Dev || got.Ino != want.Ino {
		return errors.New("check the lock: it is not the folder's")
	}
	if err := unix.Flock(claimFD, unix.LOCK_EX|unix.LOCK_NB); err != nil { // ours already, unless a person typed the hidden name
		return fmt.Errorf("check the lock: %w", err)
	}
	return nil
}

// listen makes signals arrive as messages. Those that must not end us are caught too, not ignored: a child would go on ignoring them (I6).
func listen(term, child chan os.Signal) {
	signal.Notify(term, unix.SIGTERM)
	signal.Notify(child, unix.SIGCHLD)
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
}

// environment reads what the command gets and what its output must not keep, and gives us its search path.
func environment() (handed, error) {
	f := os.NewFile(envFD, "environment")
	if f == nil {
		return handed{}, errors.New("read the environment: there is none")
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	if err != nil {
		return handed{}, fmt.Errorf("read the environment: %w", err)
	}
	var h handed
	if err := json.Unmarshal(b, &h); err != nil {
		return handed{}, fmt.Errorf("read the environment: %w", err)
	}
	os.Clearenv()
	if err := os.Setenv("PATH", lookup(h.Env, "PATH")); err != nil {
		return handed{}, fmt.Errorf("set the search path: %w", err)
	}
	h.Env = append([]string{}, h.Env...) // never nil: that would mean ours
	return h, nil
}

// reserved is the space set aside for a receipt; see encodeReceipt.
const reserved = 4096

// reserve sets the receipt's space aside, so that a disk which is full by then does not lose it.
func reserve(dir string) (*os.File, error) {
	f, err := os.OpenFile(path(dir, "exit.tmp"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("set space aside: %w", err)
	}
	if err := allocate(f, reserved); err != nil {
		return nil, errors.Join(fmt.Errorf("set space aside: %w", err), f.Close())
	}
	return f, nil
}
