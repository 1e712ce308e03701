//go:build !cgo

// Package sqlite stands for the driver where there is none.
package sqlite

import (
	"database/sql/driver"
	"errors"
	"syscall"
)

var errNone = errors.New("this build has no SQLite: it was compiled without C")

// ErrNo is a code of the library.
type ErrNo int

// The codes, with the library's numbers.
const (
	ErrPerm            ErrNo = 3
	ErrBusy            ErrNo = 5
	ErrLocked          ErrNo = 6
	ErrReadonly        ErrNo = 8
	ErrIoErr           ErrNo = 10
	ErrCorrupt         ErrNo = 11
	ErrFull            ErrNo = 13
	ErrCantOpen        ErrNo = 14
	ErrConstraint      ErrNo = 19
	ErrNotADB          ErrNo = 26
	ErrReadonlyDbMoved ErrNo = 8 | 4<<8
)

// Error is an error of the library; there are none here.
type Error struct {
	Code, ExtendedCode ErrNo
	SystemErrno        syscall.Errno
}

func (Error) Error() string { return errNone.Error() }

// SQLiteConn is never made here.
type SQLiteConn struct{}

// Exec is refused.
func (*SQLiteConn) Exec(string, []driver.Value) (driver.Result, error) { return nil, errNone }

// Query is refused.
func (*SQLiteConn) Query(string, []driver.Value) (driver.Rows, error) { return nil, errNone }

// SQLiteDriver opens nothing.
type SQLiteDriver struct{ ConnectHook func(*SQLiteConn) error }

// Open is refused.
func (*SQLiteDriver) Open(string) (driver.Conn, error) { return nil, errNone }

// Version is none.
func Version() (text string, number int, source string) { return "none", 0, "" }
