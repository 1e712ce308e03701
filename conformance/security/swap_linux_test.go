package security_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/conformance/fakemodel"
)

// A program swaps a folder for a link all the time while the model reads, searches and writes in it.
func TestAttack_SwapAllTheTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.work, "sub/secret.txt", "harmless\n")
	w.link(w.outside, "link")
	sub, link := filepath.Join(w.work, "sub"), filepath.Join(w.work, "link")
	for range 10 {
		var calls []fakemodel.Call
		for i := range 4 {
			calls = append(calls, reach("sub/secret.txt")...)
			calls = append(calls, tool("write", m{"path": fmt.Sprintf("sub/new-%d-%d.txt", len(w.plan), i), "content": "taken\n"}))
		}
		w.will(calls...)
	}
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				stopped <- n
				return
			default:
				if err := unix.Renameat2(unix.AT_FDCWD, sub, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	w.attack("edit")
	close(stop)
	if n := <-stopped; n < 100 {
		t.Errorf("swapped only %d times", n)
	}
	w.safe()
}
