// Package instructions finds the files in which a project and its user tell coding agents how to work there (AGENTS.md and its like), and
// writes them into one text for the model.
//
// They are data. They are read whether or not the project is trusted, and change no permission: what the model does because of them is
// judged like everything else.
//
// Invariants:
//
//	N1: no file is read through a link that leads out of the directory it was looked for in, and nothing but regular files is opened.
//	N2: what a file holds cannot leave its frame: each of its lines begins with the frame's mark, whatever characters it uses to end lines.
//	N3: the text is never longer than the limit and what frames it; what was cut is said in it.
//	N4: the same files give the same text, so that it can stay in a provider's cache.
package instructions
