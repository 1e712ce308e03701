package security_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	named    = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	declared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
)

// Every row of the table has a test that exists, and every attack that is tested here has its row.
func TestTable_NamesEveryTest(t *testing.T) {
	doc, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	exists, here := map[string]bool{}, []string{}
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(path)
		for _, f := range declared.FindAllStringSubmatch(string(b), -1) {
			exists[f[1]] = true
			if filepath.Dir(path) == filepath.Join("..", "..", "conformance", "security") && strings.HasPrefix(f[1], "TestAttack_") {
				here = append(here, f[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rows, inTable := 0, map[string]int{}
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 3 || cells[0] == " attack" {
			continue
		}
		rows++
		tests := named.FindAllStringSubmatch(cells[2], -1)
		if len(tests) != 1 {
			t.Errorf("the row %q names %d tests, want one", cells[0], len(tests))
			continue
		}
		inTable[tests[0][1]]++
		if !exists[tests[0][1]] {
			t.Errorf("the row %q names %s, which does not exist", cells[0], tests[0][1])
		}
	}
	slices.Sort(here)
	for _, name := range here {
		if inTable[name] == 0 {
			t.Errorf("%s has no row in docs/security.md", name)
		}
	}
	for name, n := range inTable {
		if n > 1 {
			t.Errorf("%s stands in %d rows", name, n)
		}
	}
	if rows < len(here) || len(here) == 0 {
		t.Errorf("%d rows for %d tests", rows, len(here))
	}
	t.Logf("%d rows, %d of them tested here", rows, len(here))
}
