package archtest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"holdfast/internal/fault"
)

func tree(t *testing.T) []File {
	t.Helper()
	files, err := Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 100 {
		t.Fatalf("only %d Go files were found; the walk does not see the project", len(files))
	}
	return files
}

func TestLayers_HoldEverywhere(t *testing.T) {
	files := tree(t)
	for _, v := range Layers(files) {
		t.Error(v)
	}
	seen := map[string]bool{}
	for _, f := range files {
		seen[f.Package] = true
	}
	for pkg := range layers {
		if !seen[pkg] && !planned[pkg] {
			t.Errorf("the rule for %s is about no package", pkg)
		}
	}
}

func TestPoints_ListedAndUsed(t *testing.T) {
	used := Points(tree(t))
	for name, at := range used {
		if !slices.Contains(fault.Points, name) {
			t.Errorf("%s: the crash point %q is not listed in internal/fault/points.go", at, name)
		}
	}
	for i, name := range fault.Points {
		if used[name] == "" {
			t.Errorf("the crash point %q is listed and never reached", name)
		}
		if slices.Contains(fault.Points[:i], name) {
			t.Errorf("the crash point %q is listed twice", name)
		}
	}
}

func TestWorkarounds_ListedAndUsed(t *testing.T) {
	used := Workarounds(tree(t))
	for name, at := range used {
		if !slices.Contains(fault.Workarounds, name) {
			t.Errorf("%s: the workaround %q is not listed in internal/fault/workarounds.go", at, name)
		}
	}
	for _, name := range fault.Workarounds {
		if used[name] == "" {
			t.Errorf("the workaround %q is listed and nothing leaves it out", name)
		}
	}
}

// The documents name commits; a renamed one must not leave them behind.
func TestPoints_InTheDocumentsAreReal(t *testing.T) {
	groups := map[string]bool{}
	for _, name := range fault.Points {
		group, _, _ := strings.Cut(name, ".")
		groups[group] = true
	}
	token := regexp.MustCompile(`\b([a-z]+)\.[a-z_]+\b`)
	for _, doc := range []string{"architecture.md", "state-machines.md"} {
		b, err := os.ReadFile("../../docs/" + doc)
		if err != nil {
			t.Fatal(err)
		}
		named := 0
		for _, m := range token.FindAllStringSubmatch(string(b), -1) {
			if !groups[m[1]] || strings.HasSuffix(m[0], ".md") {
				continue
			}
			named++
			if !slices.Contains(fault.Points, m[0]) {
				t.Errorf("docs/%s names the commit %q, which there is not", doc, m[0])
			}
		}
		if named < 20 {
			t.Errorf("docs/%s names %d commits; the expression misses them", doc, named)
		}
	}
}

// plant parses a small tree of sources.
func plant(t *testing.T, sources map[string]string) []File {
	t.Helper()
	m := fstest.MapFS{}
	for path, src := range sources {
		m[path] = &fstest.MapFile{Data: []byte(src)}
	}
	files, err := Load(m)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A checker that accepts anything would pass the tree as well; each of these must fail.
func TestLayers_PlantedViolationsFail(t *testing.T) {
	cases := map[string]struct{ path, imports string }{
		"the domain uses the store":             {"session/a.go", "holdfast/internal/store"},
		"the domain uses what builds on it":     {"session/a.go", "holdfast/goals"},
		"recovery uses goals":                   {"recovery/a.go", "holdfast/goals"},
		"goals use recovery":                    {"goals/a.go", "holdfast/recovery"},
		"one adapter uses another":              {"internal/store/a.go", "holdfast/internal/tools"},
		"the editor side uses the store":        {"acp/a.go", "holdfast/internal/store"},
		"tools use goals":                       {"internal/tools/a.go", "holdfast/goals"},
		"the transport knows the domain":        {"acp/rpc/a.go", "holdfast/session"},
		"wire types know the transport":         {"acp/v1/a.go", "holdfast/acp/rpc"},
		"something below knows the domain":      {"internal/proc/a.go", "holdfast/session"},
		"usage knows the domain":                {"usage/a.go", "holdfast/session"},
		"the wiring is imported":                {"acp/a.go", "holdfast/cmd/holdfast"},
		"the suite knows the product":           {"conformance/kill/a.go", "holdfast/session"},
		"the suite's tests know the product":    {"conformance/kill/a_test.go", "holdfast/acp/v1"},
		"the product uses the suite":            {"session/a.go", "holdfast/conformance/harness"},
		"a test reaches above its layer":        {"session/a_test.go", "holdfast/internal/store"},
		"a package that nobody gave a layer":    {"internal/util/a.go", "strings"},
		"a file of another system is no excuse": {"session/a_windows.go", "holdfast/acp"},
	}
	for name, c := range cases {
		files := plant(t, map[string]string{c.path: "package x\n\nimport _ \"" + c.imports + "\"\n"})
		got := Layers(files)
		if len(got) != 1 || !strings.Contains(got[0], c.path) {
			t.Errorf("%s: want one complaint about %s, got %q", name, c.path, got)
		}
	}
}

func TestLayers_WhatIsAllowed(t *testing.T) {
	cases := map[string]string{
		"session/a.go":                  "holdfast/usage",
		"internal/store/a.go":           "holdfast/goals",
		"internal/tools/a.go":           "holdfast/internal/proc",
		"acp/a.go":                      "holdfast/acp/rpc",
		"cmd/holdfast/a.go":             "holdfast/internal/store",
		"conformance/kill/a.go":         "holdfast/conformance/harness",
		"internal/provider/a_test.go":   "holdfast/conformance/fakemodel",
		"node_modules/x/a.go":           "holdfast/session",
		"session/testdata/src/pkg/a.go": "holdfast/acp",
	}
	for path, imp := range cases {
		if got := Layers(plant(t, map[string]string{path: "package x\n\nimport _ \"" + imp + "\"\n"})); len(got) != 0 {
			t.Errorf("%s may import %s: %q", path, imp, got)
		}
	}
}

func TestPoints_AreFoundInEveryForm(t *testing.T) {
	used := Points(plant(t, map[string]string{"session/a.go": `package session

func f() {
	e.Commit(ctx, "a.engine", id, func() { t.commit(ctx, "b.turn", nil) })
	c.settle(ctx, "c.call", nil)
	e.Store.Commit(ctx, "d.store", func(tx Tx) error { return tx.Note("not a point") })
	fault.Point("e.direct:before")
	point("f.short")
	point := "g.variable"
	if x {
		point = "h.assigned"
	}
	tx.Commit()
	title := "not a point either"
}
`, "session/a_test.go": "package session\n\nfunc g() { e.Commit(ctx, \"z.test\", id, nil) }\n"}))
	var names []string
	for name := range used {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"a.engine", "b.turn", "c.call", "d.store", "e.direct", "f.short", "g.variable", "h.assigned"}
	if !slices.Equal(names, want) {
		t.Errorf("want %q\ngot  %q", want, names)
	}
}
