// Package catalogue knows models by their names: how much they read and write, whether they see images, how they reason, what they cost.
//
// It owns models.json, which is built in and carries the day it was written and where its figures come from, and the rules by which a name
// finds its entry. [Find] looks up what is built in; [Catalogue.With] puts figures of the user on top.
//
// Words. A *figure* is one thing that may be known of a model. An *entry* is what is known of one name. A *pattern* is the name that an entry
// or an own figure is for: exact, exact with a date behind it, or with * for any characters.
//
// Invariants:
//
//	C1: a figure that nobody gave is unknown. It is never zero, and nothing is derived from its absence.
//	C2: every known figure says where it comes from.
//	C3: an answer depends on the name and on what the patterns are, not on their order: the more exact pattern counts, then the longer, then
//	    the newer model. Own figures count before all of them, each for itself; among equals the later one.
//
// It is pure: it reads no file, asks nobody, and imports nothing of ours.
package catalogue
