//go:build unix

package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// cpu is what this process and its ended children have used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

func BenchmarkSnapshot(b *testing.B) {
	dir := many(b)
	b.Run("first of 5000 files", func(b *testing.B) {
		start := cpu(b)
		for b.Loop() {
			if _, err := New(b.TempDir()).Snapshot(b.Context(), dir); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(cpu(b)-start)/float64(b.N)/1e6, "cpu-ms/op")
	})
	for _, change := range []bool{false, true} {
		b.Run(map[bool]string{false: "nothing changed of 5000", true: "one changed of 5000"}[change], func(b *testing.B) {
			tree := New(b.TempDir())
			if _, err := tree.Snapshot(b.Context(), dir); err != nil {
				b.Fatal(err)
			}
			start, n := cpu(b), 0
			for b.Loop() {
				if n++; change {
					if err := os.WriteFile(filepath.Join(dir, "d07", "f03.txt"), fmt.Append(nil, n), 0o644); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := tree.Snapshot(b.Context(), dir); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpu(b)-start)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}
