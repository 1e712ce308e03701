package harness

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// tried holds which packages this program has looked for, and how that failed.
var (
	peersMu sync.Mutex
	tried   = map[string]string{}
)

// Peers makes the pinned npm packages available and returns the folder of one of them. Where node or npm is missing the test is skipped,
// with the command that runs it.
func Peers(t testing.TB, name string) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(file), "..")
	dir := filepath.Join(root, "node_modules", filepath.FromSlash(name))
	skip := func(why string) {
		t.Skipf("%s; to run it: (cd conformance && npm ci) && go test -run '%s' ./conformance/...", why, t.Name())
	}
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			skip(tool + " is not installed")
		}
	}
	peersMu.Lock()
	failed, looked := tried[name]
	if !looked { // each for itself: packages that were installed for another one may be older than this one
		failed = install(root, dir)
		tried[name] = failed
	}
	peersMu.Unlock()
	if _, err := os.Stat(dir); err != nil {
		skip("the npm packages are not installed. " + failed)
	}
	return dir
}

// install runs npm ci once, however many test programs start at the same time.
func install(root, dir string) string {
	lock, err := os.Open(filepath.Join(root, "package-lock.json"))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err.Error()
	}
	// npm writes this file last.
	_, marker := os.Stat(filepath.Join(root, "node_modules", ".package-lock.json"))
	if _, err := os.Stat(dir); err == nil && marker == nil {
		return ""
	}
	c := exec.Command("npm", "ci", "--no-audit", "--no-fund")
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		return "npm ci: " + err.Error() + ": " + string(bytes.TrimSpace(out))
	}
	return ""
}
