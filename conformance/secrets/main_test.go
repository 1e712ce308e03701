// Package secrets_test runs the real binary with keys in every channel there is and looks for them in everything it leaves behind: the state
// directory byte by byte, its log, the traffic with the editor, the requests at the model, and what its listings print. A key may be in one
// place only: in the header of a request to its own endpoint.
package secrets_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	if server.dir != "" {
		_ = os.RemoveAll(server.dir)
	}
	os.Exit(code)
}

// server is the external MCP server, built once.
var server struct {
	once sync.Once
	dir  string
	err  error
}

func serverBinary(t testing.TB) string {
	t.Helper()
	server.once.Do(func() {
		if server.dir, server.err = os.MkdirTemp("", "holdfast-mcpserver-"); server.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", filepath.Join(server.dir, "mcpserver"), "holdfast/conformance/mcpserver").CombinedOutput()
		if err != nil {
			server.err = fmt.Errorf("build the server: %w\n%s", err, out)
		}
	})
	if server.err != nil {
		t.Fatal(server.err)
	}
	return filepath.Join(server.dir, "mcpserver")
}
