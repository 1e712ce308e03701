package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// SQLite keeps what was stored last in a log beside the store, until the last program that has it open folds it in. Without that log the
// store opens whole, as it was before. So that this is not passed over, a mark stands beside the store while the log must be there: from the
// first commit of a process until the log is gone in order.

// markLog is called after each commit. The caller holds the gate.
func (d *DB) markLog() {
	if d.marked {
		return
	}
	f, err := os.OpenFile(d.home.logMark(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = f.Close()
	}
	d.marked = err == nil // a full disk leaves no mark: then nothing is concluded
}

// unmarkLog takes the mark away when no other process has the store open and the log was folded in. The lock was let go of before: of two
// that end at once, the last finds itself alone.
func (d *DB) unmarkLog() {
	lock, err := os.OpenFile(d.home.schemaLock(), os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer func() { _ = lock.Close() }()
	alone, err := flockTry(lock, true)
	if left, lerr := exists(d.home.log()); err != nil || !alone || lerr != nil || left {
		return
	}
	_ = os.Remove(d.home.logMark()) // one that stays says too much, never too little
}

// missLog looks whether the log was taken away, and remembers it. The caller holds the gate and the schema lock, shared.
func (d *DB) missLog() error {
	marked, err := exists(d.home.logMark())
	if err != nil || !marked {
		return err
	}
	left, err := exists(d.home.log())
	if err != nil || left {
		return err
	}
	alone, err := flockTry(d.schemaLock, true)
	if err != nil || !alone {
		return err
	}
	if ok, err := flockTry(d.schemaLock, false); err != nil || !ok {
		return errors.Join(errors.New("take the schema lock back"), err)
	}
	d.o.Log.Error().Str("code", CodeLogLost).Msg("the store's log was removed while it held changes; what was stored last may be missing")
	if err := os.WriteFile(d.home.logLost(), []byte(d.o.Now().UTC().Format(time.RFC3339)+"\n"), 0o600); err != nil {
		return fmt.Errorf("remember that the log is lost: %w", err)
	}
	return os.Remove(d.home.logMark())
}

// LogLost tells when it was found that the store's log had been taken away, and the file that remembers it.
func LogLost(path string) (at, file string, err error) {
	file = home(path).logLost()
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", file, nil
	}
	return string(b), file, err
}
