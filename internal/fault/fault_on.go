//go:build faultpoints

package fault

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Enabled tells whether this binary was built with crash points.
const Enabled = true

type armed struct {
	name   string
	left   int
	action string
}

var (
	mu     sync.Mutex
	specs  []*armed
	log    string
	resume string
)

func init() {
	log, resume = os.Getenv("HOLDFAST_CRASH_LOG"), os.Getenv("HOLDFAST_CRASH_RESUME")
	for _, s := range strings.Split(os.Getenv("HOLDFAST_CRASH"), ",") {
		if s == "" {
			continue
		}
		a := &armed{left: 1, action: "kill"}
		for i, p := range strings.Split(s, "/") {
			switch n, err := strconv.Atoi(p); {
			case i == 0:
				a.name = p
			case err == nil:
				a.left = n
			default:
				a.action = p
			}
		}
		specs = append(specs, a)
	}
	for _, k := range []string{"HOLDFAST_CRASH", "HOLDFAST_CRASH_LOG", "HOLDFAST_CRASH_RESUME"} {
		_ = os.Unsetenv(k)
	}
}

// Point acts when HOLDFAST_CRASH names this instant; see the package comment.
func Point(name string) {
	if !slices.Contains(Points, strings.TrimSuffix(strings.TrimSuffix(name, ":before"), ":after")) {
		panic("fault: crash point is not listed: " + name)
	}
	mu.Lock()
	var act string
	for _, a := range specs {
		if a.name == name && a.left > 0 {
			if a.left--; a.left == 0 {
				act = a.action
			}
		}
	}
	mu.Unlock()
	if act == "" {
		return
	}
	if log != "" {
		if f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			fmt.Fprintf(f, "%s %s %d\n", name, act, os.Getpid())
			_ = f.Close()
		}
	}
	switch act {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "stop":
		stop()
	case "exit":
		os.Exit(70)
	case "pause":
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
			if _, err := os.Stat(resume); err == nil {
				return
			}
		}
	}
}
