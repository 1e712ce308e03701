// Package tools holds the built-in tools: what a model may do to files and how it runs commands.
//
// Words:
//
//   - A place is a path with every link in it resolved, and its kind what the policy asks about: outside, protected, secret.
//   - A version is the first twelve digits of a file's sha256. The read tool shows it, the write tool wants it back: that is how a
//     whole-file write proves that it knows what it replaces.
//   - A change is a [session.FileChange]: the digest before, the digest after, and the text in between.
//   - A leftover is a temporary file that a killed process did not get to rename.
//
// It imports session for the interfaces, internal/proc for supervised commands, and doublestar for glob patterns.
//
// Invariants:
//
//	I1: a path outside of the roots, after its links are resolved, is a question of the policy, and a call runs only on the place that it was
//	    planned for. Files are changed and read by their name in a folder that was opened without following a link, so that a folder swapped
//	    for a link after the check leads nowhere else.
//	I2: no path inside the state directory or the folder of the user's configuration is read or written, and nothing of git's own records is written.
//	I3: a file is replaced as a whole by rename; it holds the old or the new content at every instant, and a new file never replaces one that
//	    appeared meanwhile. Several files are changed in order, after all were looked at, or none is; each says afterwards whether it was.
//	I4: an edit changes the bytes it names and no others: byte-order mark, line ends, final newline and permissions stay.
//	I5: content that is neither UTF-8 nor UTF-16 with a byte-order mark is shown with marks at most, never written back.
//	I6: planning changes nothing. A *session.ToolError means that nothing was changed.
//	I7: no result is cut inside a character, and every cut is marked.
//	I8: a command is stopped for every cause except those by which this process only lets go of it.
package tools
