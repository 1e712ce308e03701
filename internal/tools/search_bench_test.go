//go:build unix

package tools

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// searchTree makes a repository of 50,000 files, about 150 MB of words.
func searchTree(b *testing.B) *bench {
	b.Helper()
	w := newBench(b)
	words := strings.Fields("func return err nil package import string type struct interface context session store turn call effect plan read write list glob grep image")
	rnd := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for d := range 1000 {
		dir := w.path(fmt.Sprintf("d%02d/e%04d", d%40, d))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for f := range 50 {
			text.Reset()
			for range 20 + rnd.IntN(140) {
				for range 2 + rnd.IntN(8) {
					text.WriteString(words[rnd.IntN(len(words))] + " ")
				}
				text.WriteByte('\n')
			}
			if rnd.IntN(1000) == 0 {
				text.WriteString("needleInHaystack is here\n")
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%02d.go", f)), []byte(text.String()), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	w.git("init", "-q")
	w.git("add", ".")
	return w
}

// BenchmarkSearch compares with other programs where they are there; none is needed.
func BenchmarkSearch(b *testing.B) {
	w := searchTree(b)
	for _, c := range []struct {
		name, tool string
		args       args
		others     map[string][]string
	}{
		{"glob", "glob", args{"pattern": "**/f00.go"}, map[string][]string{"rg": {"rg", "--files", "-g", "f00.go"}, "git": {"git", "ls-files", "*/f00.go"}}},
		{"literal", "grep", args{"pattern": "needleInHaystack", "literal": true},
			map[string][]string{"rg": {"rg", "-n", "-F", "needleInHaystack", "."}, "git": {"git", "grep", "-n", "-F", "needleInHaystack"}}},
		{"literal_any_case", "grep", args{"pattern": "NEEDLEinhaystack", "literal": true, "ignore_case": true},
			map[string][]string{"rg": {"rg", "-n", "-i", "-F", "NEEDLEinhaystack", "."}, "git": {"git", "grep", "-n", "-i", "-F", "NEEDLEinhaystack"}}},
		{"regexp", "grep", args{"pattern": `needle\w+stack\s+is`},
			map[string][]string{"rg": {"rg", "-n", `needle\w+stack\s+is`, "."}, "git": {"git", "grep", "-n", "-P", `needle\w+stack\s+is`}}},
		{"regexp_no_text", "grep", args{"pattern": `[xyz]\w{3}[0-9]`},
			map[string][]string{"rg": {"rg", "-n", `[xyz]\w{3}[0-9]`, "."}, "git": {"git", "grep", "-n", "-P", `[xyz]\w{3}[0-9]`}}},
		{"regexp_short_text", "grep", args{"pattern": `t\w{3}[0-9]`}, map[string][]string{"rg": {"rg", "-n", `t\w{3}[0-9]`, "."}}},
	} {
		for how, env := range map[string][]string{"own": nil, "with_rg": {"PATH=" + os.Getenv("PATH")}} {
			if _, err := exec.LookPath("rg"); how == "with_rg" && (err != nil || c.tool != "grep") {
				continue
			}
			b.Run(c.name+"/"+how, func(b *testing.B) {
				w.env.Env = env
				before := processorTime()
				for b.Loop() {
					w.must(c.tool, c.args)
				}
				reportProcessor(b, before)
			})
		}
		for name, command := range c.others {
			if _, err := exec.LookPath(name); err != nil {
				continue
			}
			b.Run(c.name+"/"+name, func(b *testing.B) {
				before := processorTime()
				for b.Loop() {
					cmd := exec.Command(command[0], command[1:]...)
					cmd.Dir = w.env.Cwd
					_ = cmd.Run() // no match is an error of theirs
				}
				reportProcessor(b, before)
			})
		}
	}
}

// processorTime is what this process and its children have used.
func processorTime() time.Duration {
	sum := time.Duration(0)
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

// reportProcessor shows the processor time beside the clock: on a busy machine it is the steadier of the two.
func reportProcessor(b *testing.B, before time.Duration) {
	b.ReportMetric(float64((processorTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}
