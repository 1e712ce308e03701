package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"
)

// ErrIDInUse is returned when a lock file of this id exists already. Ids are random, so it is a mistake of the caller.
var ErrIDInUse = errors.New("the instance id is in use")

// Options say who this process is.
type Options struct {
	Home string         // the state folder
	ID   string         // random, unique for ever
	Kind string         // what the process does, for people who look into the file
	Log  zerolog.Logger // gets why there is no bell
}

// Instance is this process as others see it. One goroutine reads its bell; Close waits for it.
type Instance struct {
	o    Options
	dir  string // the run folder
	lock *os.File
	bell *bell

	mu     sync.Mutex
	closed bool
}

var validID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// reserved are lock files in the run folder that are no instances.
var reserved = []string{"gate", "schema"}

func runDir(home string) string { return filepath.Join(home, "run") }

func lockPath(dir, id string) string { return filepath.Join(dir, id+".lock") }

func socketPath(dir, id string) string { return filepath.Join(dir, id+".sock") }

func checkID(id string) error {
	if !validID.MatchString(id) || slices.Contains(reserved, id) {
		return fmt.Errorf("instance id %q is not a plain name", id)
	}
	return nil
}

// Start makes this process visible as alive. The caller writes its row afterwards.
func Start(o Options) (*Instance, error) {
	if err := checkID(o.ID); err != nil {
		return nil, err
	}
	dir := runDir(o.Home)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start instance: %w", err)
	}
	f, err := takeLock(dir, o.ID, o.Kind)
	if err != nil {
		return nil, fmt.Errorf("start instance: %w", err)
	}
	i := &Instance{o: o, dir: dir, lock: f}
	if i.bell, err = hang(socketPath(dir, o.ID)); err != nil {
		o.Log.Info().Err(err).Str("instance_id", o.ID).Msg("no bell, polling only")
	}
	return i, nil
}

// takeLock makes the lock file under another name, locks it and only then gives it its own (I1). The lock stays with the file
// through the renaming.
func takeLock(dir, id, kind string) (*os.File, error) {
	path := lockPath(dir, id)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(ErrIDInUse, err)
	}
	tmp := path + ".new"
	f, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the lock file: %w", err)
	}
	_, _ = fmt.Fprintf(f, "%d %s %s\n", os.Getpid(), or(kind, "-"), mark(f)) // the first two for people only; nothing decides by them
	ok, err := lock(f)
	if err == nil && ok {
		err = os.Rename(tmp, path)
	}
	if err == nil && (!ok || !same(f, path)) {
		err = ErrIDInUse // two processes start under one id
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// ID returns the id given to Start.
func (i *Instance) ID() string { return i.o.ID }

// Kind returns the kind given to Start.
func (i *Instance) Kind() string { return i.o.Kind }

// Others lists the ids that have a lock file, dead or alive, except our own.
func (i *Instance) Others() ([]string, error) {
	entries, err := os.ReadDir(i.dir)
	if err != nil {
		return nil, fmt.Errorf("list instances: %w", err)
	}
	var ids []string
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".lock")
		if ok && id != i.o.ID && checkID(id) == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Close removes the socket and the lock file while still holding the lock, then lets it go. The caller has removed its row before.
// It may be called twice.
func (i *Instance) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil
	}
	i.closed = true
	i.bell.close()
	if err := removeFiles(i.lock, i.dir, i.o.ID); err != nil {
		return fmt.Errorf("close instance: %w", err)
	}
	return nil
}

// Abandon lets the lock go and leaves its file, as a death would: whoever looks finds a dead instance and takes over what it had. It is
// for a process that must not remove its row. Close does nothing afterwards.
func (i *Instance) Abandon() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil
	}
	i.closed = true
	i.bell.close()
	if err := i.lock.Close(); err != nil {
		return fmt.Errorf("abandon instance: %w", err)
	}
	return nil
}

// removeFiles deletes what belongs to an id whose lock the caller holds, and lets the lock go last. A file under the name that is
// not the locked one belongs to somebody else.
func removeFiles(f *os.File, dir, id string) error {
	var errs []error
	if same(f, lockPath(dir, id)) {
		for _, path := range []string{socketPath(dir, id), lockPath(dir, id)} {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(append(errs, f.Close())...)
}
