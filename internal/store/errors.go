package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	sqlite3 "holdfast/internal/sqlite"
	"holdfast/session"
)

// Codes of the states a store can be in. They are stable: interfaces and logs repeat them.
const (
	CodeLost           = "store_lost"            // a marker or a remainder exists, the data does not
	CodeCorrupt        = "store_corrupt"         // SQLite or a check says the file is damaged or not a store
	CodeNewer          = "store_newer"           // written by a newer binary
	CodeUnwritable     = "store_unwritable"      // read-only, not ours, or no permission
	CodeLogLost        = "store_log_lost"        // the log was taken away while it held changes; nothing is refused because of it
	CodeMoved          = "store_moved"           // the path no longer names the file that is open
	CodeInUse          = "store_in_use"          // a migration waits for other live processes
	CodeMismatch       = "schema_mismatch"       // an applied migration is not the one this binary has
	CodeNetwork        = "store_network_fs"      // the home is on a file system without trustworthy locks
	CodeLibrary        = "store_library"         // the linked SQLite is too old or not set up as required
	CodeBusy           = "store_busy"            // another process holds the gate
	CodeFull           = "store_full"            // the disk is full, reserve included
	CodeUnknownOutcome = "store_outcome_unknown" // COMMIT failed; look the transaction's ids up again
	CodeClosed         = "store_closed"          // used after Close
	CodeFailed         = "store_failed"          // anything else the operating system or SQLite reported
)

var (
	// ErrCommitUnknown is wrapped by an error of [DB.Commit] whose transaction may or may not be stored. The caller looks its
	// own ids up before it does anything again.
	ErrCommitUnknown = errors.New("the outcome of a commit is unknown")
	// ErrFull is wrapped when the disk is full even without the reserve. Nothing was stored; the caller keeps its result.
	ErrFull = errors.New("the disk is full")
	// ErrClosed is returned after [DB.Close].
	ErrClosed = errors.New("the store is closed")

	errWaitLimit = errors.New("waited for the longest time allowed")
)

// OpenError is a named state in which the store cannot be used, with what a person can do about it.
type OpenError struct {
	Code    string // one of the Code constants
	Message string // one plain sentence
	Action  string // what to do next, one plain sentence
	Err     error  // the cause, for the log; may be nil
}

func (e *OpenError) Error() string {
	s := e.Code + ": " + e.Message
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *OpenError) Unwrap() error { return e.Err }

// Plain is the state in words for a person.
func (e *OpenError) Plain() string { return e.Code + ": " + strings.TrimSuffix(e.Message, ".") }

// Is tells the states that may pass by themselves, and in which nothing was stored.
func (e *OpenError) Is(target error) bool {
	return target == session.ErrNotNow && (e.Code == CodeFull || e.Code == CodeMoved || e.Code == CodeUnwritable)
}

// BusyError says that the gate could not be had. Trying again is always allowed: the kernel frees the gate when its holder dies,
// and a holder that was suspended goes on when it is continued.
type BusyError struct {
	PID   int       // the process that holds the gate, 0 when it is not one of ours or many take turns
	Since time.Time // when that process took the gate, zero when unknown
	Err   error     // why the wait ended: the context's error or the limit
}

func (e *BusyError) Error() string {
	if e.PID == 0 {
		return CodeBusy + ": others are writing to the store"
	}
	return fmt.Sprintf("%s: process %d has held the store since %s; it may be suspended", CodeBusy, e.PID, e.Since.Format(time.RFC3339))
}

// Plain is the state in words for a person.
func (e *BusyError) Plain() string { return e.Error() }

func (e *BusyError) Unwrap() error { return e.Err }

// Holder is who keeps the store; it makes the error a session.StoreBusy.
func (e *BusyError) Holder() (pid int, since time.Time) { return e.PID, e.Since }

// Is tells that nothing was stored, and that trying again is right.
func (e *BusyError) Is(target error) bool { return target == session.ErrNotNow }

// CodeOf returns the code of any error of this package, CodeFailed for one without a name of its own and "" for nil.
func CodeOf(err error) string {
	var open *OpenError
	var busy *BusyError
	var broken *session.RecordError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrCommitUnknown): // first: nothing else about it matters before the caller has looked
		return CodeUnknownOutcome
	case errors.As(err, &broken):
		return string(broken.Code)
	case errors.As(err, &open):
		return open.Code
	case errors.As(err, &busy):
		return CodeBusy
	case errors.Is(err, ErrFull):
		return CodeFull
	case errors.Is(err, ErrClosed):
		return CodeClosed
	}
	return CodeFailed
}

// classify turns what the system or SQLite said while a store was opened into a named state. Errors with a name keep it.
func classify(err error) error {
	var open *OpenError
	switch {
	case err == nil, errors.As(err, &open):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return full(err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return unwritable(err)
	}
	return classifySQLite(err)
}

// classifySQLite does the same inside a transaction, where only SQLite's word is about the store: anything else came from the
// caller's function and is returned as it is.
func classifySQLite(err error) error {
	var open *OpenError
	var broken *session.RecordError
	var lite sqlite3.Error
	switch {
	case err == nil, errors.As(err, &open), errors.As(err, &broken), errors.Is(err, ErrCommitUnknown), !errors.As(err, &lite):
		return err
	case isFull(err):
		return full(err)
	case lite.ExtendedCode == sqlite3.ErrReadonlyDbMoved:
		return moved(err)
	case lite.Code == sqlite3.ErrNotADB, lite.Code == sqlite3.ErrCorrupt:
		return corrupt("The store is damaged.", err)
	case lite.Code == sqlite3.ErrReadonly, lite.Code == sqlite3.ErrPerm, lite.Code == sqlite3.ErrCantOpen,
		lite.SystemErrno == syscall.EROFS, lite.SystemErrno == syscall.EACCES:
		return unwritable(err)
	}
	return err
}

func corrupt(message string, err error) *OpenError {
	return &OpenError{CodeCorrupt, message,
		"Keep the file as it is; copy the newest file of the folder backups over it, or move the folder away to start anew.", err}
}

func lost(message string) *OpenError {
	return &OpenError{CodeLost, message,
		"Put the store back from a copy; to give it up and start anew, move the whole state folder away.", nil}
}

func unwritable(err error) *OpenError {
	return &OpenError{CodeUnwritable, "The state folder or the store in it cannot be written.",
		"Give your user the folder with write permission, or choose another with HOLDFAST_HOME.", err}
}

func moved(err error) *OpenError {
	return &OpenError{CodeMoved, "The store was moved or replaced while this process had it open.",
		"Put the file back where it was, or start this process again to use the file that is there now.", err}
}

func full(err error) *OpenError {
	return &OpenError{CodeFull, "The disk that holds the store is full.",
		"Free some space; work goes on by itself as soon as there is room.", errors.Join(ErrFull, err)}
}

// isFull recognises a full disk or quota, whichever of SQLite's calls noticed it.
func isFull(err error) bool {
	var lite sqlite3.Error
	return errors.As(err, &lite) &&
		(lite.Code == sqlite3.ErrFull || lite.SystemErrno == syscall.ENOSPC || lite.SystemErrno == syscall.EDQUOT)
}

// isRefused recognises the errors of COMMIT after which the transaction is certainly not stored: the log had no room for the record
// that ends it, a deferred constraint failed, or a lock was missing. In each the log was never complete.
func isRefused(err error) bool {
	var lite sqlite3.Error
	return isFull(err) || isBusy(err) || errors.As(err, &lite) && lite.Code == sqlite3.ErrConstraint
}

// isBusy recognises a lock of SQLite's own that somebody else holds.
func isBusy(err error) bool {
	var lite sqlite3.Error
	return errors.As(err, &lite) && (lite.Code == sqlite3.ErrBusy || lite.Code == sqlite3.ErrLocked)
}

// ended returns the reason a context ended, its cause first.
func ended(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return ctx.Err()
}
