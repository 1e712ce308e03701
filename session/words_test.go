package session

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestReadCommand(t *testing.T) {
	cases := map[string]struct {
		parts  string // parts by |, words by _
		simple bool
	}{
		"go test ./...":            {"go_test_./...", true},
		"  go   test\t-run 'A B' ": {"go_test_-run_A B", true},
		`grep "a b" x`:             {"grep_a b_x", true},
		`a'b'"c"d`:                 {"abcd", true},
		`echo ''`:                  {"echo_", true},
		"ls *.go ~":                {"ls_*.go_~", true},
		"a; b":                     {"a|b", false},
		"a && b || c & d | e":      {"a|b|c|d|e", false},
		"a\nb":                     {"a|b", false},
		"a $(b c) d":               {"a|b_c|d", false},
		"a `b c` d":                {"a|b_c|d", false},
		`a "x $(b "c d") y" e`:     {"a_x |b_c d| y_e", false},
		"a <(b)":                   {"a|b", false},
		"(a; b)":                   {"a|b", false},
		"a > f 2>&1 < g b":         {"a_b", false},
		"a 2> f":                   {"a", false},
		`a \; b`:                   {"a_;_b", false},
		"a\\\nb":                   {"ab", false},
		"a $HOME":                  {"a_$HOME", false},
		`a "$HOME"`:                {"a_$HOME", false},
		"a $'b\\'c' d":             {"a_b'c_d", false},
		"a # b; c":                 {"a", false},
		"a#b":                      {"a#b", true},
		"'a; b'":                   {"a; b", true},
		"a 'b":                     {"a_b", false},
		`a "b`:                     {"a_b", false},
		"A=b c":                    {"A=b_c", false},
		"! a":                      {"!_a", false},
		"if a; then b; fi":         {"if_a|then_b|fi", false},
		"sudo a":                   {"sudo_a", false},
		"":                         {"", false},
		"a \x00b":                  {"a_\x00b", false},
		"a\rb":                     {"a\rb", false},
	}
	for line, want := range cases {
		c := ReadCommand(line)
		var parts []string
		for _, p := range c.Parts {
			parts = append(parts, strings.Join(p, "_"))
		}
		if got := strings.Join(parts, "|"); got != want.parts || c.Simple != want.simple {
			t.Errorf("%q: %q simple %v, want %q simple %v", line, got, c.Simple, want.parts, want.simple)
		}
	}
}

func TestProgram(t *testing.T) {
	for in, want := range map[string]string{"A=b c": "c", "sudo env A=b nohup c d": "c d", "then c": "c", "./a=b c": "./a=b c", "A=b": ""} {
		if got := strings.Join(Program(strings.Fields(in)), " "); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// stage is a folder with two programs, ok and no, which leave their names; no shell finds others there.
type stage struct {
	dir    string
	shells []string
}

func newStage(t *testing.T) stage {
	t.Helper()
	s := stage{dir: t.TempDir()}
	for _, name := range []string{"ok", "no"} {
		if err := os.MkdirAll(filepath.Join(s.dir, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		script := "#!/bin/sh\necho " + name + " >> " + filepath.Join(s.dir, "ran") + "\n"
		if err := os.WriteFile(filepath.Join(s.dir, "bin", name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"sh", "bash"} {
		if path, err := exec.LookPath(name); err == nil {
			s.shells = append(s.shells, path)
		}
	}
	return s
}

// ran is what a shell runs for a line.
func (s stage) ran(t *rapid.T, shell, line string) []string {
	log := filepath.Join(s.dir, "ran")
	_ = os.Remove(log)
	work, err := os.MkdirTemp(s.dir, "work")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	cmd := exec.Command(shell, "-c", line)
	cmd.Dir, cmd.Env = work, []string{"PATH=" + filepath.Join(s.dir, "bin")}
	_ = cmd.Run() // most lines are wrong
	b, _ := os.ReadFile(log)
	return strings.Fields(string(b))
}

// A line that counts as simple and begins with a word runs that program and no other, in every shell here.
func TestReadCommand_SimpleRunsNothingElse(t *testing.T) {
	s := newStage(t)
	pieces := []string{"ok", "no", " ", " ", "a", ";", "&", "|", "\n", "$(", "(", ")", "`", "'", "\"", "\\", "<", ">", "{", "}", "#", "=", "!", "~", "*", "[", "$", "\t", "\r", ","}
	simple := 0
	rapid.Check(t, func(rt *rapid.T) {
		line := "ok" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 9).Draw(rt, "line"), "")
		c := ReadCommand(line)
		if !c.Simple || c.Parts[0][0] != "ok" {
			return
		}
		simple++
		for _, shell := range s.shells {
			if ran := s.ran(rt, shell, line); slices.Contains(ran, "no") {
				rt.Fatalf("%s runs %v for %q", shell, ran, line)
			}
		}
	})
	if simple == 0 {
		t.Error("no line was simple")
	}
	t.Logf("%d simple lines were run by %v", simple, s.shells)
}

// What a shell runs without expanding anything is found in the line, so a refusal cannot be hidden by joining or quoting.
func TestRule_RefusalFindsWhatRuns(t *testing.T) {
	s := newStage(t)
	r := Rule{Verdict: VerdictDeny, Kind: RulePrefix, Tool: "shell", Value: `["no"]`}
	pieces := []string{"ok", "no", "n", "o", " ", " ", "a", ";", "&", "|", "\n", "$(", "(", ")", "`", "'", "\"", "\\", "<", ">", "{ ", "}", "#", "=", "! "}
	found := 0
	rapid.Check(t, func(rt *rapid.T) {
		line := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 9).Draw(rt, "line"), "")
		if r.covers(Subject{Tool: "shell", Command: line}) != coversNot {
			return // nothing to find out
		}
		for _, shell := range s.shells {
			if ran := s.ran(rt, shell, line); slices.Contains(ran, "no") {
				rt.Fatalf("%s runs %v for %q", shell, ran, line)
			}
		}
		found++
	})
	t.Logf("%d lines were not covered and did not run it", found)
}
