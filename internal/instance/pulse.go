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

// Pulse is the last sign of life of an instance, zero when there is none to be seen. An older program, whose lock file does not name itself,
// gives none.
func Pulse(home, id string) time.Time {
	if checkID(id) != nil {
		return time.Time{}
	}
	f, err := os.Open(lockPath(runDir(home), id))
	if err != nil {
		return time.Time{}
	}
	defer func() { _ = f.Close() }() // drops no lock: that belongs to its holder's open file
	st, err := f.Stat()
	if err != nil || len(inside(f)) < 3 {
		return time.Time{}
	}
	return st.ModTime()
}

// inside are the words of a lock file: number, kind, and the file itself.
func inside(f *os.File) []string {
	b := make([]byte, 128)
	n, _ := f.ReadAt(b, 0) // less than that is there
	return strings.Fields(string(b[:n]))
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
	fields := inside(f)
	return len(fields) == 3 && fields[2] != "-" && fields[2] != mark(f)
}
