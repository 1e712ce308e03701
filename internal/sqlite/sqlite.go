//go:build cgo

// Package sqlite names what the store uses of its driver. The driver is C; without a C compiler, as when building for another system, the
// same names stand for a driver that opens nothing, so that everything else is compiled and checked all the same.
package sqlite

import "github.com/mattn/go-sqlite3"

// The driver and its errors.
type (
	SQLiteDriver = sqlite3.SQLiteDriver
	SQLiteConn   = sqlite3.SQLiteConn
	Error        = sqlite3.Error
)

// The codes that mean something to the store.
var (
	ErrPerm            = sqlite3.ErrPerm
	ErrBusy            = sqlite3.ErrBusy
	ErrLocked          = sqlite3.ErrLocked
	ErrReadonly        = sqlite3.ErrReadonly
	ErrIoErr           = sqlite3.ErrIoErr
	ErrCorrupt         = sqlite3.ErrCorrupt
	ErrFull            = sqlite3.ErrFull
	ErrCantOpen        = sqlite3.ErrCantOpen
	ErrConstraint      = sqlite3.ErrConstraint
	ErrNotADB          = sqlite3.ErrNotADB
	ErrReadonlyDbMoved = sqlite3.ErrReadonlyDbMoved
)

// Version of the library.
func Version() (text string, number int, source string) { return sqlite3.Version() }
