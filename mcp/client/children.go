package client

import (
	"encoding/json"
	"fmt"
	"os"

	"holdfast/internal/ident"
)

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
