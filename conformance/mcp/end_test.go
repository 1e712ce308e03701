package mcp_test

import (
	"os"
	"os/exec"
	"testing"
)

type ends struct{ r, w *os.File }

func pipe(t *testing.T) ends {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return ends{r, w}
}

// start launches a server on given files and returns how it ends.
func start(t *testing.T, w *world, in, out *os.File) <-chan error {
	t.Helper()
	cmd := exec.Command(binary(t), "mcp")
	cmd.Env, cmd.Stdin, cmd.Stdout = append([]string{"PATH=" + os.Getenv("PATH")}, w.env()...), in, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	return done
}
