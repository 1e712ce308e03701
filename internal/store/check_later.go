package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// checkAgain is how old the last check of a large store may be. Smaller ones are checked at every opening.
const checkAgain = 24 * time.Hour

// LastCheck is what a check in the background found.
type LastCheck struct {
	At    time.Time `json:"at"`
	Fault string    `json:"fault"` // the gravest, "" for none
}

func (h home) checked() string { return filepath.Join(string(h), "check.json") }

// LastCheck returns the last check in the background, the zero value when there was none.
func (d *DB) LastCheck() (k LastCheck, err error) {
	b, err := os.ReadFile(d.home.checked())
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return k, fmt.Errorf("read the last check: %w", err)
	}
	if json.Unmarshal(b, &k) != nil {
		return LastCheck{}, nil // it is made again
	}
	return k, nil
}

// CheckLarge looks through a store that is too large to be checked at every opening, when that was not done for a day. It reads only; what
// it finds is kept beside the store for doctor, and logged.
func (d *DB) CheckLarge(ctx context.Context) error {
	info, err := os.Stat(d.home.db())
	if err != nil || info.Size() < checkBelow {
		return err
	}
	last, err := d.LastCheck()
	if now := d.o.Now(); err == nil && !last.At.After(now) && now.Sub(last.At) < checkAgain {
		return nil
	}
	faults, err := d.Check(ctx, false)
	if err != nil {
		return err
	}
	k := LastCheck{At: d.o.Now()}
	for _, f := range faults {
		if f.Kind == worst(faults) && f.Kind != FaultUnused {
			k.Fault = string(f.Kind) + ": " + f.Text
			d.o.Log.Error().Str("fault", k.Fault).Msg("the store is damaged; see holdfast doctor --deep")
			break
		}
	}
	b, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	tmp := d.home.checked() + ".new" // losing it costs another check
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return fmt.Errorf("keep the result of the check: %w", err)
	}
	return os.Rename(tmp, d.home.checked())
}

// NetworkFileSystem names the file system of a folder when it is one whose locks cannot be trusted, else "".
func NetworkFileSystem(dir string) (string, error) { return remoteFS(dir) }
