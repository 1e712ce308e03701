// Package sandbox confines a command: it may write inside given folders and temporary ones only, cannot read places where secrets lie, and
// has no network unless it is given one.
//
// Words:
//
//   - A wall is what the system offers for that: Landlock in the kernel, or bubblewrap where that is installed.
//   - The helper is this binary under a hidden name. It confines itself and then becomes the command, so the command keeps its process
//     number, its group and its exit code.
//
// A wall counts only once it was proved: a write that must land did, and one that must not did not. What a wall cannot do is said by
// [Wall.Limits], never passed over.
//
// Invariants:
//
//	I1: a command that was to be confined and cannot be is not started.
//	I2: a folder that holds the state directory is never writable inside; when a root does, there is no sandbox for it. What the state
//	    directory has for confined commands alone is the exception.
//	I3: the helper starts nothing else and reads nothing but its arguments.
//
// It imports only the system's interfaces.
package sandbox
