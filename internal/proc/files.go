package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func path(dir, name string) string { return filepath.Join(dir, name) }

// put writes a small file whole: under a temporary name of its own, renamed. With durable it survives a power cut.
func put(dir, name string, v any, durable bool) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	f, err := os.CreateTemp(dir, name+".*.tmp") // two stops at once must not share one
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(b)
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path(dir, name))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // best effort after a failure
		return fmt.Errorf("write %s: %w", name, err)
	}
	if durable {
		return syncDir(dir)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// take reads a small file; missing is false without an error.
func take(dir, name string, v any) (bool, error) {
	b, err := os.ReadFile(path(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	return true, nil
}

// prepare makes the private folder. Its entry is durable before anything starts: a folder that a power cut took away would pass for
// a command that never ran.
func prepare(dir string) error {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return fmt.Errorf("make the folder of a command: %w", err)
	}
	switch err := os.Mkdir(dir, 0o700); {
	case errors.Is(err, fs.ErrExist):
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("keep the folder of a command private: %w", err)
		}
	case err != nil:
		return fmt.Errorf("make the folder of a command: %w", err)
	}
	return syncDir(parent)
}

// Command is what a folder's command was, for a person to read; "" when that was never written.
func (h *Handle) Command() string {
	var r record
	if ok, err := take(h.dir, "spec", &r); err != nil || !ok || len(r.Argv) == 0 {
		return ""
	}
	return r.Argv[len(r.Argv)-1] // shells get the command as their last word
}
