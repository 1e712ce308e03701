package goals

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"holdfast/session"
)

const docPath = "../docs/goals.md"

// members lists the JSON members of a type, those of its own structs included.
func members(typ reflect.Type) (out []string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "-" {
			out = append(out, name)
		}
		if f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == typ.PkgPath() {
			out = append(out, members(f.Type)...)
		}
	}
	return out
}

// Every member that a door returns is in the document, and every code of the closed list.
func TestDocument_NamesEveryMember(t *testing.T) {
	b, err := os.ReadFile(docPath)
	if err != nil {
		t.Fatal(err)
	}
	_, doc, found := strings.Cut(string(b), "\n## A goal\n")
	if !found {
		t.Fatal("the document does not describe a goal")
	}
	all := slices.Concat(members(reflect.TypeFor[View]()), members(reflect.TypeFor[Requirement]()), members(reflect.TypeFor[Moment]()),
		members(reflect.TypeFor[session.PlanEntry]()))
	if len(all) < 40 {
		t.Fatalf("only %d members were found", len(all))
	}
	for _, name := range all {
		if !strings.Contains(doc, "`"+name+"`") {
			t.Errorf("the member %q is not described", name)
		}
	}
	doc, _, _ = strings.Cut(doc, "\n## In a session\n")
	if want := codes(); !strings.HasSuffix(strings.TrimSpace(doc), want) {
		t.Errorf("the table of codes differs; want\n%s", want)
		if flag.Lookup("update").Value.String() == "true" {
			before, rest, _ := strings.Cut(string(b), "|---|---|---|---|\n")
			_, after, _ := strings.Cut(rest, "\n\n")
			if err := os.WriteFile(docPath, []byte(before+"|---|---|---|---|\n"+want+"\n\n"+after), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// codes is the closed list as the document shows it.
func codes() string {
	var lines []string
	for code, d := range session.Diagnostics {
		lines = append(lines, fmt.Sprintf("| `%s` | %s | %s | %s |", code, d.Sentence, d.Owner, strings.Join(d.Allowed, ", ")))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
