package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

var build struct {
	once sync.Once
	dir  string
	err  error
}

// built names a folder in which both binaries are already: linking them takes longer than many a package's tests.
const built = "HOLDFAST_TEST_BINARIES"

// Binaries builds the product once per test process: as released, and with crash points.
func Binaries() (plain, faulty string, err error) {
	if dir := os.Getenv(built); dir != "" {
		return filepath.Join(dir, "holdfast"), filepath.Join(dir, "holdfast-fault"), nil
	}
	build.once.Do(func() {
		if build.dir, build.err = os.MkdirTemp("", "holdfast-bin-"); build.err != nil {
			return
		}
		for name, args := range map[string][]string{"holdfast": nil, "holdfast-fault": {"-tags", "faultpoints"}} {
			cmd := exec.Command("go", append(append([]string{"build", "-ldflags=-s -w", "-o", filepath.Join(build.dir, name)}, args...), "holdfast/cmd/holdfast")...)
			if out, err := cmd.CombinedOutput(); err != nil {
				build.err = fmt.Errorf("build %s: %w\n%s", name, err, out)
				return
			}
		}
	})
	return filepath.Join(build.dir, "holdfast"), filepath.Join(build.dir, "holdfast-fault"), build.err
}

// Cleanup removes the binaries; TestMain calls it last.
func Cleanup() {
	if build.dir != "" {
		_ = os.RemoveAll(build.dir)
	}
}
