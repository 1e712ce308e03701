//go:build faultpoints

package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/internal/fault"
)

// Run with: go test -tags faultpoints ./internal/store -run TestCrash

func init() {
	fault.Points = append(fault.Points, "test")
	// Opens the store with the schema of so many steps beyond the first, and commits once.
	roles["use"] = func(home string, args []string) error {
		d, err := Open(context.Background(), options(home, args...))
		if err != nil {
			return err
		}
		if err := d.Commit(context.Background(), "test", bump("x")); err != nil {
			return err
		}
		return d.Close()
	}
}

// A process dies at each instant of creating, migrating and committing, and the next one finds all or nothing, also when it dies
// at the same place of its own way first.
func TestCrash_EveryPoint(t *testing.T) {
	cases := []struct {
		point   string
		fresh   bool // no store before
		counter int  // what the second process leaves in the counter
	}{
		{"store.create:before", true, 1}, {"store.create:after", true, 1},
		{"store.marker:before", true, 1}, {"store.marker:after", true, 1},
		{"store.migrate:before", true, 1}, {"store.migrate:after", true, 1},
		{"store.backup:before", false, 2}, {"store.backup:after", false, 2},
		{"store.migrate:before", false, 2}, {"store.migrate:after", false, 2},
		{"test:before", false, 2}, {"test:after", false, 3},
	}
	for _, c := range cases {
		name := c.point
		if c.fresh {
			name = "fresh " + name
		}
		t.Run(name, func(t *testing.T) {
			home := newHome(t)
			if !c.fresh {
				home = created(t)
			}
			dieAt(t, home, c.point)
			again := c.point
			if strings.HasSuffix(again, ":after") {
				again = "test:before" // its own point may have been passed for good
			}
			dieAt(t, home, again)
			start(t, "use", home, stepTwo).rest(t)
			d := open(t, options(home, stepTwo))
			if n := count(t, d, "x"); n != c.counter {
				t.Errorf("the counter is %d, want %d", n, c.counter)
			}
			if left, _ := filepath.Glob(filepath.Join(home, "holdfast.db.new*")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func dieAt(t *testing.T, home, point string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "fired")
	c := newChild(t, "use", home, stepTwo)
	c.Env = append(c.Env, "HOLDFAST_CRASH="+point, "HOLDFAST_CRASH_LOG="+log)
	c.begin(t)
	err := c.Wait()
	status, _ := c.ProcessState.Sys().(syscall.WaitStatus)
	fired, _ := os.ReadFile(log)
	if !status.Signaled() || status.Signal() != syscall.SIGKILL || !strings.HasPrefix(string(fired), point+" kill") {
		t.Fatalf("did not die at %s: %v, fired %q", point, err, fired)
	}
}
