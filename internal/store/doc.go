// Package store keeps everything that matters in one SQLite database that many Holdfast processes share.
//
// # Words
//
//   - home: the state folder; it holds the database, its marker, the reserve and the folders run and backups.
//   - gate: the file lock run/gate.lock, taken around every write transaction, so that processes queue fairly in the kernel
//     instead of starving each other in SQLite's busy wait.
//   - schema lock: run/schema.lock, held shared by every process for life; changing the schema of an existing store needs it
//     exclusively.
//   - marker: the file store.id beside the database. It holds the store's random id, so that a missing, emptied or swapped
//     database is recognised as loss and never mistaken for a first start.
//   - reserve: one MiB of allocated space that is given back when the disk is full, so that a last result can be kept.
//   - writer: the single connection that writes, never recycled while healthy; readers: a few query-only connections.
//
// [Open] opens or creates a home, [DB.Commit] is the only way to write and [DB.Read] the way to read.
//
// The package imports the SQLite driver, internal/fault and, in its query files, the domain packages whose interfaces it
// implements. SQL stays inside it.
//
// # Invariants
//
// I1: every connection runs WAL with synchronous=FULL, foreign keys on and the schema untrusted, and has read all of that back
// before its first use; the driver's own defaults are weaker.
//
// I2: a write transaction begins only in the order local queue, gate, BEGIN IMMEDIATE, min_writer; the gate is never taken
// inside a transaction.
//
// I3: statements of a write transaction cannot be interrupted; cancellation is decided before BEGIN.
//
// I4: no code of this process opens the database, its -wal or its -shm except SQLite itself. Closing a descriptor of such a file
// drops the locks of the whole process. Stat, chmod, rename and unlink by path open nothing.
//
// I5: nothing is ever initialised on top of an existing file. A new store is built under another name and renamed into place
// when it is complete and synced; the marker follows. A crash in between leaves either no store or a whole one.
//
// I6: a damaged, newer, foreign or lost store is reported by code and left as it is. An index holds nothing of its own: when it alone is
// damaged it is made anew, in one transaction that is kept only when a full check is content afterwards.
//
// I7: a migration and its record commit together; a recorded migration whose text has changed is refused.
//
// I8: the path of the database is compared with the file that was opened (device and inode) at most once per second before a
// write, because SQLite goes on writing happily into a file that was moved away.
//
// I9: a failed COMMIT has an unknown outcome unless SQLite refused it before it wrote (full disk, constraint, lock). It is
// reported as such and never repeated here.
//
// I10: every migration raises min_writer to its own number in its own transaction. A handle that has met a higher number than it
// knows is outdated and never writes again; it does not change back.
//
// I11: a row that cannot be read or is not valid costs nothing but itself. Scans mark it ([session.RecordError] where nothing could be
// read), listings keep a place for it, and no update writes over what was not understood.
package store
