// Command audit looks through what the product is built from: known vulnerabilities and licences. It needs no network once the modules of
// tools/go.mod are in the module cache: the vulnerability database is one of them.
//
// A finding in a module fails the audit unless exceptions.json names it with a reason and a date that has not passed. A finding in Go's own
// standard library is a warning that names the release with the fix, because the toolchain is chosen by whoever builds. A module whose
// licence is not on the list of those that ask for no more than a notice fails.
package main
