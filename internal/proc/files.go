package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"holdfast/internal/ident"
)

// Spec is a command to run.
type Spec struct {
	Dir       string        `json:"-"` // private folder for this command alone
	Argv      []string      `json:"argv"`
	Cwd       string        `json:"cwd"`
	Env       []string      `json:"env"`
	Timeout   time.Duration `json:"timeout"`   // 0 means no deadline
	OutputCap int64         `json:"outputCap"` // bytes after which the command is stopped; 0 means no cap
	Boot      string        `json:"boot"`
}

// Result is a receipt.
type Result struct {
	ExitCode    *int      `json:"exitCode"`
	Signal      string    `json:"signal,omitempty"`
	Stopped     string    `json:"stopped,omitempty"` // "user", "deadline", "output_cap", or ""
	Started     time.Time `json:"started"`
	Ended       time.Time `json:"ended"`
	OutputBytes int64     `json:"outputBytes"`
	Left        int       `json:"left"` // processes of the command that were left running
	Failure     string    `json:"failure,omitempty"`
}

// Verdict is what the files prove about a command.
type Verdict string

const (
	NotStarted   Verdict = "not_started"   // provably nothing ran
	Live         Verdict = "live"          // the supervisor holds the lock
	Done         Verdict = "done"          // there is a receipt
	MaybeStarted Verdict = "maybe_started" // the supervisor was lost around the start
	Orphaned     Verdict = "orphaned"      // the supervisor is lost, the command runs; its exit code will stay unknown
	Lost         Verdict = "lost"          // both are gone without a receipt
	Rebooted     Verdict = "rebooted"      // the machine was restarted under it
)

// State is a verdict with what it rests on.
type State struct {
	Verdict    Verdict
	Result     Result        // with Done
	Supervisor ident.Process // once it has said who it is
	Command    ident.Process // once it was started
}

func path(dir, name string) string { return filepath.Join(dir, name) }

// put writes a small file whole: under a temporary name, synced, renamed.
func put(dir, name string, v any, sync bool) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	tmp := path(dir, name+".tmp")
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(b)
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(tmp, path(dir, name)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if sync {
		return syncDir(dir)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return errors.Join(d.Sync(), d.Close())
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
