package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"holdfast/internal/store"
	"holdfast/session"
)

// docs/diagnostics.md is the closed list: every code that the code knows, with what the code says of it, and no other.
func TestDiagnostics_DocumentIsTheClosedList(t *testing.T) {
	text, err := os.ReadFile("../../docs/diagnostics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		m := regexp.MustCompile("^`([a-z_]+)`$").FindStringSubmatch(strings.TrimSpace(cells[0]))
		if m == nil {
			continue
		}
		if rows[m[1]] != nil {
			t.Errorf("%s has two rows", m[1])
		}
		rows[m[1]] = cells
	}
	known := map[string]bool{}
	for code, d := range session.Diagnostics {
		known[string(code)] = true
		want := []string{fmt.Sprintf("`%s`", code), d.Sentence, d.Owner, strings.Join(d.Allowed, ", ")}
		if len(d.Allowed) == 0 {
			want[3] = "-"
		}
		got := rows[string(code)]
		if len(got) != 5 || strings.Join(got[:4], "|") != strings.Join(want, "|") || got[4] == "" {
			t.Errorf("row of %s:\nwant | %s | COMMAND |\ngot  | %s |", code, strings.Join(want, " | "), strings.Join(got, " | "))
		}
	}
	for code, says := range storeStates(t) {
		known[code] = true
		got := rows[code]
		if len(got) != 3 {
			t.Errorf("row of %s: %q", code, got)
			continue
		}
		for i, sentence := range says { // what a person is told is in the document word by word
			if sentence != "" && !strings.Contains(got[i+1], sentence) {
				t.Errorf("row of %s does not say %q: %q", code, sentence, got[i+1])
			}
		}
	}
	for code := range rows {
		if !known[code] {
			t.Errorf("no such code: %s", code)
		}
	}
}

// storeStates are the codes of the store, and of those that an opening error has one fixed text for, that text and its action.
func storeStates(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	f, err := parser.ParseFile(token.NewFileSet(), "../../internal/store/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range f.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			if lit, ok := v.Values[0].(*ast.BasicLit); ok && strings.HasPrefix(v.Names[0].Name, "Code") {
				code, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				out[code] = nil
			}
		}
	}
	if out[store.CodeFull] == nil && len(out) < 10 {
		t.Fatalf("only %d codes of the store were found", len(out))
	}
	for code, fixed := range map[string][]string{
		store.CodeFull:  {"The disk that holds the store is full.", "Free some space; work goes on by itself as soon as there is room."},
		store.CodeMoved: {"The store was moved or replaced while this process had it open.", "Put the file back where it was"},
	} {
		out[code] = fixed
	}
	return out
}
