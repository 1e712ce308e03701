// Package effects_test kills the real binary on every arrow in the life of a tool call, and looks from outside at what is recorded, what
// took effect, and what the user and the model are told. docs/effects.md has the table; a test compares it with what was seen here.
//
// Words. An arrow is a tool and an instant of its call. A world is one state directory, one work tree and one scripted model. What was seen
// on an arrow is a row.
package effects_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"holdfast/conformance/harness"
)

var update = flag.Bool("update", false, "rewrite the table in docs/effects.md")

// abreast is how many worlds run at once: they mostly wait for processes that start.
const abreast = 4

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", strconv.Itoa(abreast))
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
