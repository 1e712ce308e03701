package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// State is what a probe found.
type State string

const (
	// Alive means that the lock is held: by the instance, or for a moment by another probe of a dead one.
	Alive State = "alive"
	// Dead means that the process has ended, however it ended. It comes with a claim.
	Dead State = "dead"
	// Missing means that there is no lock file, which proves nothing (I2).
	Missing State = "missing"
	// Copied means that the lock file was copied here with its folder. That its lock is free proves nothing.
	Copied State = "copied"
)

// Claim is the lock of a dead instance. It ends with Release or Remove; calling either again does nothing.
type Claim struct {
	dir, id string

	mu sync.Mutex
	f  *os.File // nil once ended
}

// Probe asks whether an instance is alive. A claim is returned with Dead only; until it ends, every other probe of the same
// instance says Alive, so at most one process at a time acts on the death.
func Probe(home, id string) (State, *Claim, error) {
	if err := checkID(id); err != nil {
		return "", nil, err
	}
	dir := runDir(home)
	path := lockPath(dir, id)
	f, err := os.OpenFile(path, os.O_RDWR, 0) // never creates
	if errors.Is(err, fs.ErrNotExist) {
		return Missing, nil, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("probe instance %s: %w", id, err)
	}
	free, err := lock(f)
	if err != nil || !free {
		_ = f.Close() // drops nothing: the lock belongs to its holder's open file
		if err != nil {
			return "", nil, fmt.Errorf("probe instance %s: %w", id, err)
		}
		return Alive, nil, nil
	}
	if !same(f, path) { // removed between opening and locking
		return Missing, nil, f.Close()
	}
	if copied(f) {
		return Copied, nil, f.Close()
	}
	return Dead, &Claim{dir: dir, id: id, f: f}, nil
}

// Release lets go and leaves the files for the next probe.
func (c *Claim) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.f != nil {
		_ = c.f.Close()
		c.f = nil
	}
}

// Remove deletes the dead one's files while holding its lock, then lets go. The caller has removed its row before.
func (c *Claim) Remove() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.f == nil {
		return nil
	}
	f := c.f
	c.f = nil
	if err := removeFiles(f, c.dir, c.id); err != nil {
		return fmt.Errorf("remove instance %s: %w", c.id, err)
	}
	return nil
}
