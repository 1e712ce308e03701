package instance

import (
	"os"
	"strings"
	"time"
)

// A sign of life is the time of the lock file: it costs no write of its own, and is there for whoever looks. It proves neither life nor
// death; the lock does that.

// Beat leaves a sign of life.
func (i *Instance) Beat() {
	now := time.Now()
	_ = os.Chtimes(lockPath(i.dir, i.o.ID), now, now) // without it the process looks silent, and nothing follows from that by itself
}

// Pulse is the last sign of life of an instance, zero when there is none to be seen.
func Pulse(home, id string) time.Time {
	if checkID(id) != nil {
		return time.Time{}
	}
	st, err := os.Lstat(lockPath(runDir(home), id))
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

// Ring rings at an instance from a process that is none itself. It never blocks, and nobody may hear it.
func Ring(home, id string) {
	if path := socketPath(runDir(home), id); checkID(id) == nil && len(path) <= longestPath() {
		ring(path)
	}
}

// copied tells whether a lock file came here with a copy of the folder. The number of a device may change with a restart of the machine; then
// a file of before it counts as copied, and the boot of its row proves the death.
func copied(f *os.File) bool {
	b := make([]byte, 128)
	n, _ := f.ReadAt(b, 0)
	fields := strings.Fields(string(b[:n]))
	return len(fields) == 3 && fields[2] != "-" && fields[2] != mark(f)
}
