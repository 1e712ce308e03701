// Package config reads configuration files: the user's, and the one of a project.
//
// It owns the table of settings, Keys. The reader, the check of a file, the JSON Schema for editors, the table in docs/configuration.md and
// what 'holdfast config show' prints all come from it, and tests compare each of them with it and with the struct Config. To add a setting,
// add a field to Config and a Key; keys of one area may have a file of their own that appends to tables.
//
// Words: a *key* is a path such as mcp.limits.start_seconds; in the table "*" stands for a name that the file chooses, and "[]" behind a
// segment for the entries of a list of tables. A *mistake* is one Error; a file with any mistake is not used at all.
//
// Invariants:
//
//	C1: a file that holds a mistake changes nothing.
//	C2: what a project sets counts only through Merge, and Merge takes only what its key allows to projects.
//	C3: no value of a key that may hold a secret is in an error or in a listing.
//
// Whether a project is trusted is decided elsewhere; this package reads what there is and says what it amounts to.
package config
