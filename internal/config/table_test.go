package config

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the documents that come from the table of settings")

// fields lists the settings that a struct holds, as the table writes them.
func fields(t reflect.Type, path string) (out []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name := path + f.Tag.Get("toml")
		switch ft := f.Type; {
		case ft.Kind() == reflect.Struct:
			out = append(out, fields(ft, name+".")...)
		case ft.Kind() == reflect.Map && ft.Elem().Kind() == reflect.Struct:
			out = append(out, fields(ft.Elem(), name+".*.")...)
		case ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.Struct:
			out = append(out, fields(ft.Elem(), name+"[].")...)
		default:
			out = append(out, name)
		}
	}
	return out
}

func TestKeys_AreTheFieldsOfConfig(t *testing.T) {
	var listed []string
	for _, k := range Keys() {
		listed = append(listed, k.Path)
		if k.Since == "" || k.Effect == "" || k.Counts == "" || k.Default == "" || k.Example == "" || k.Project == "" || strings.HasSuffix(k.Effect, ".") {
			t.Errorf("%s does not say everything: %+v", k.Path, k)
		}
		if k.Project == Narrower && k.Narrow == nil {
			t.Errorf("%s does not say which of two values is narrower", k.Path)
		}
		f, err := Parse("example", example(k), false)
		if err != nil || len(f.Values) == 0 {
			t.Errorf("the example of %s: %v", k.Path, err)
		}
	}
	held := fields(reflect.TypeFor[Config](), "")
	for _, path := range listed {
		if !slices.Contains(held, path) {
			t.Errorf("%s is in the table and no field of Config", path)
		}
	}
	for _, path := range held {
		if !slices.Contains(listed, path) {
			t.Errorf("%s is a field of Config and not in the table", path)
		}
	}
}

// example is a file that sets one key as its example says.
func example(k Key) []byte {
	path := strings.NewReplacer("*", "some", "[]", "").Replace(k.Path)
	text := path + " = " + k.Example + "\n"
	if strings.HasPrefix(k.Path, "mcp.servers.") && k.last() != "command" {
		text += "mcp.servers.some.command = \"run\"\n"
	}
	if head, name, ok := strings.Cut(k.Path, "[]."); ok && head == "models" {
		text = "[[models]]\n" + name + " = " + k.Example + "\n"
		if name == "name" {
			return []byte(text + "images = false\n")
		}
		text += "name = \"openai/x\"\n"
		if name == "currency" {
			text += "price_input = 1\n"
		}
	} else if ok {
		text = "[[" + head + "]]\n" + name + " = " + k.Example + "\n"
		switch name {
		case "verdict":
			text += "tool = \"shell\"\n"
		case "in":
			text += "verdict = \"ask\"\ntool = \"shell\"\n"
		default:
			text += "verdict = \"ask\"\n"
		}
	}
	return []byte(text)
}

// The document lists every setting and no other; what it says of each is what the code does.
func TestDocument_HoldsTheTable(t *testing.T) {
	const path, begin, end = "../../docs/configuration.md", "<!-- settings -->\n", "<!-- end of the settings -->\n"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	table, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+begin+Markdown()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, got := rowsOf(Markdown()), rowsOf(table)
	for row := range want {
		if !got[row] {
			t.Errorf("%s lacks, or says otherwise: %s", path, row)
		}
	}
	for row := range got {
		if !want[row] {
			t.Errorf("%s says what the code does not: %s", path, row)
		}
	}
}

func rowsOf(table string) map[string]bool {
	rows := map[string]bool{}
	for line := range strings.Lines(table) {
		rows[strings.TrimSpace(line)] = true
	}
	return rows
}

func TestDocument_HoldsTheSchema(t *testing.T) {
	const path = "../../docs/config.schema.json"
	if *update {
		if err := os.WriteFile(path, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(b, Schema()) {
		t.Errorf("%s is not what 'holdfast config schema' prints (%v); run this test with -update and read the difference", path, err)
	}
}
