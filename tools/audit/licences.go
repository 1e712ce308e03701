package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed licences ask for no more than a notice, or, for MPL-2.0, only concern files of the module itself.
var allowed = []string{"MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC", "0BSD", "Unlicense", "MPL-2.0"}

// choice is how a file says that one of two licences may be taken.
var choice = regexp.MustCompile(`\b([A-Za-z0-9.-]+) OR ([A-Za-z0-9.-]+)\b`)

// minCoverage is how much of a licence file must be the text of licences that are known.
const minCoverage = 75

// licences looks at the licence of every module that is linked into the product.
func licences(w io.Writer, root string) (bool, error) {
	cmd := exec.Command("go", "list", "-C", root, "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}", "./cmd/...")
	out, err := cmd.Output()
	if err != nil {
		return false, fmt.Errorf("list the linked modules: %w", err)
	}
	seen := map[string]bool{}
	ok := true
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		line := strings.Fields(s.Text())
		if len(line) != 3 || seen[s.Text()] {
			continue
		}
		seen[s.Text()] = true
		ids, err := licenceOf(line[2])
		if err != nil {
			return false, fmt.Errorf("licence of %s: %w", line[0], err)
		}
		verdict := strings.Join(ids, ", ")
		if bad := slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(allowed, id) }); bad || len(ids) == 0 {
			ok = false
			verdict = "FAIL: " + verdict + " is not a licence on the list"
		}
		_, _ = fmt.Fprintf(w, "%s %s  %s\n", line[0], line[1], verdict)
	}
	_, _ = fmt.Fprintf(w, "licences: %d modules are linked\n", len(seen))
	return ok, nil
}

// licenceOf names the licences of a module's folder.
func licenceOf(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") && !strings.HasPrefix(name, "UNLICENSE") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		cov := licensecheck.Scan(text)
		if offered := choice.FindSubmatch(text); offered != nil { // its author leaves the choice
			if i := slices.IndexFunc(offered[1:], func(id []byte) bool { return slices.Contains(allowed, string(id)) }); i >= 0 {
				ids = append(ids, string(offered[1+i]))
				continue
			}
		}
		if cov.Percent < minCoverage {
			ids = append(ids, "an unknown text in "+e.Name())
		}
		for _, m := range cov.Match {
			if !slices.Contains(ids, m.ID) {
				ids = append(ids, m.ID)
			}
		}
	}
	return ids, nil
}
