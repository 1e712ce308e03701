// Package instance proves which Holdfast processes of this machine are alive, and lets them wake each other.
//
// # Words
//
//   - instance: one Holdfast process. It holds an exclusive file lock on run/<id>.lock in the state folder for life.
//   - probe: the question whether an instance is alive. The kernel drops the lock at any death, so a free lock proves death at
//     once; a suspended process still holds its lock, so slow is never taken for dead.
//   - claim: the lock of a dead instance in the hands of the one that found it. Whoever has it, and nobody else, may take over.
//   - bell: a hint that something in the store may have changed. It arrives over a datagram socket, run/<id>.sock. A lost ring
//     costs delay only, because everybody also looks by himself now and then.
//
// The package imports the standard library, zerolog and x/sys. It knows nothing of the store; rows about instances are the
// caller's, written after [Start] and removed before [Instance.Close] or [Claim.Remove].
//
// # Invariants
//
// I1: a lock file appears under its name already locked: it is made and locked under another name and then renamed. So a file
// whose lock is free belongs to a dead instance, never to one that is starting.
//
// I2: a lock file is removed only by a process that holds its lock, and every holder compares the file it has locked with the
// one under the name. A missing file proves nothing.
//
// I3: no child process inherits a lock; the descriptor is closed on exec.
//
// I4: a lock file names itself inside. A copy of one is recognised and proves nothing, whoever holds its lock.
//
// I5: ringing never blocks, never waits for a suspended process and never fails where the caller would have to care.
package instance
