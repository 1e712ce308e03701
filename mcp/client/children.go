package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"holdfast/internal/ident"
)

// tagName is the variable in the environment of every child that holds the tag of its instance.
const tagName = "HOLDFAST_CHILD"

// record is one line of a children file. A line without a process announces that one is about to be launched; if our death falls
// between the two, the tag alone has to find it.
type record struct {
	ident.Process
	Tag string `json:"tag"`
}

// announce appends one line. It has to survive our death, not the machine's.
func announce(path string, r record) error {
	if path == "" {
		return nil
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("note a child: %w", err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("note a child: %w", err)
	}
	return nil
}

// Sweep ends the processes that a dead instance left, by its children file, and says how many. Only what is proven to be the instance's
// is touched: a leader by its start time, everything else by the tag in its environment, which names that one instance and is passed on
// to whatever a server starts, also to what has left its group. The file stays; without an error it is of no more use.
func Sweep(path string) (ended int, err error) {
	records, err := children(path)
	if err != nil || len(records) == 0 {
		return 0, err
	}
	boot, err := ident.BootID()
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	space := ident.Self().Space
	launches := map[string]int{} // by tag; those of which it is not known that their process is gone
	var known []record
	for _, r := range records {
		switch {
		case r.PID == 0:
			launches[r.Tag]++
		case r.Boot != boot: // nothing outlives its boot
			launches[r.Tag]--
		case r.Space != space:
			launches[r.Tag]--
			err = errors.Join(err, fmt.Errorf("sweep: process %d: %w", r.PID, ident.ErrOtherSpace))
		default:
			launches[r.Tag] = max(launches[r.Tag], 1)
			known = append(known, r)
		}
	}
	var tags []string
	for tag, n := range launches {
		if n > 0 && tag != "" {
			tags = append(tags, tag)
		}
	}
	n, serr := sweep(known, tags)
	return n, errors.Join(err, serr)
}

// children reads a file. A last line without an end was cut by the death of its writer; its launch was announced on the line before.
func children(path string) ([]record, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the children of an instance: %w", err)
	}
	var all []record
	for line := range bytes.Lines(b) {
		var r record
		if json.Unmarshal(line, &r) == nil {
			all = append(all, r)
		}
	}
	return all, nil
}
