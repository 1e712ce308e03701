package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"holdfast/internal/fault"
)

// marker is what the file store.id says. A marker that exists without an id still proves that there was a store.
type marker struct {
	exists bool
	id     string
}

func readMarker(path string) (marker, error) {
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return marker{}, nil
	case err != nil:
		return marker{}, unwritable(err)
	}
	return marker{exists: true, id: strings.TrimSpace(string(b))}, nil
}

// writeMarker replaces the marker whole: written and synced under another name, then renamed.
func writeMarker(path, id string) error {
	tmp := path + ".new"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the marker: %w", err)
	}
	_, err = f.WriteString(id + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write the marker: %w", err)
	}
	fault.Point("store.marker:before")
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write the marker: %w", err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	fault.Point("store.marker:after")
	return nil
}

// identity tells one file from another even under the same path.
type identity struct{ device, inode uint64 }

func pathID(path string) (identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return identity{}, fmt.Errorf("look at the store: %w", err)
	}
	return fileID(info), nil
}
