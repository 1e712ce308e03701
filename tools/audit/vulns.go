package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// exception keeps a known finding from failing the audit until its date.
type exception struct {
	ID     string `json:"id"`
	Until  string `json:"until"` // the last day it holds, YYYY-MM-DD
	Reason string `json:"reason"`
}

func loadExceptions(path string) ([]exception, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the exceptions: %w", err)
	}
	var list []exception
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("read the exceptions: %w", err)
	}
	for _, e := range list {
		if _, err := time.Parse(time.DateOnly, e.Until); err != nil || e.ID == "" || strings.TrimSpace(e.Reason) == "" {
			return nil, fmt.Errorf("exception %q needs an id, a date and a reason", e.ID)
		}
	}
	return list, nil
}

// finding is one advisory that concerns the product.
type finding struct {
	ID       string
	Module   string // "stdlib" for the standard library
	Fixed    string // "" when no version has a fix
	Reached  bool   // the product calls the symbol
	Standard bool
}

// module is where a module of tools/go.mod lies.
func module(path string) (dir, version string, err error) {
	out, err := exec.Command("go", "mod", "download", "-json", path).Output()
	if err != nil {
		return "", "", fmt.Errorf("find %s: %w; run it once with network access", path, err)
	}
	var m struct{ Dir, Version string }
	err = json.Unmarshal(out, &m)
	return m.Dir, m.Version, err
}

// database makes a vulnerability database of the advisories in the module cache, once for each version of them.
func database() (string, error) {
	dir, version, err := module("golang.org/x/vulndb")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place for the database: %w", err)
	}
	db := filepath.Join(cache, "go-vulndb", version)
	if _, err := os.Stat(filepath.Join(db, "index", "modules.json")); err == nil {
		return db, nil
	}
	tmp := db + ".new"
	if err := errors.Join(os.RemoveAll(tmp), os.RemoveAll(db)); err != nil {
		return "", fmt.Errorf("clear an unfinished database: %w", err)
	}
	cmd := exec.Command("go", "tool", "indexdb", "-out", tmp, "-vulns", filepath.Join(dir, "data", "osv"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make the database: %w\n%s", err, out)
	}
	return db, os.Rename(tmp, db)
}

// scan runs the scanner over the product, with the database on disk.
func scan(root, db string) ([]finding, error) {
	cmd := exec.Command("go", "tool", "govulncheck", "-format", "json", "-db", "file://"+db, "-C", root, "./cmd/...")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("scan: %w\n%s", err, errs.Bytes())
	}
	return parse(&out)
}

// parse reads what the scanner says: one advisory has many findings, the deepest of which counts.
func parse(r io.Reader) ([]finding, error) {
	byID := map[string]finding{}
	for d := json.NewDecoder(r); ; {
		var msg struct {
			Finding *struct {
				OSV   string `json:"osv"`
				Fixed string `json:"fixed_version"`
				Trace []struct {
					Module   string `json:"module"`
					Function string `json:"function"`
				} `json:"trace"`
			} `json:"finding"`
		}
		err := d.Decode(&msg)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the scan: %w", err)
		}
		if f := msg.Finding; f != nil && len(f.Trace) > 0 {
			old := byID[f.OSV]
			byID[f.OSV] = finding{ID: f.OSV, Module: f.Trace[0].Module, Fixed: f.Fixed, Standard: f.Trace[0].Module == "stdlib",
				Reached: old.Reached || f.Trace[0].Function != ""}
		}
	}
	list := make([]finding, 0, len(byID))
	for _, f := range byID {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b finding) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// judge prints every finding and tells whether nothing fails the audit. An exception that nothing needs any more fails it too.
func judge(w io.Writer, found []finding, except []exception, now time.Time) bool {
	ok := true
	used := map[string]bool{}
	for _, f := range found {
		i := slices.IndexFunc(except, func(e exception) bool { return e.ID == f.ID })
		verdict := "FAIL"
		switch {
		case f.Standard && f.Fixed != "":
			verdict = "warn: build releases with a toolchain that has it"
		case i >= 0 && now.Format(time.DateOnly) <= except[i].Until:
			verdict, used[f.ID] = "excepted until "+except[i].Until+": "+except[i].Reason, true
		case i >= 0:
			verdict, used[f.ID], ok = "FAIL: the exception ended on "+except[i].Until, true, false
		default:
			ok = false
		}
		fixed, reached := "no version has a fix", "not called"
		if f.Fixed != "" {
			fixed = "fixed in " + f.Fixed
		}
		if f.Reached {
			reached = "called"
		}
		_, _ = fmt.Fprintf(w, "%s  %s  %s, %s  %s\n", f.ID, f.Module, reached, fixed, verdict)
	}
	for _, e := range except {
		if !used[e.ID] {
			ok = false
			_, _ = fmt.Fprintf(w, "%s  FAIL: nothing needs this exception any more; remove it\n", e.ID)
		}
	}
	_, _ = fmt.Fprintf(w, "vulnerabilities: %d advisories concern the product\n", len(found))
	return ok
}
