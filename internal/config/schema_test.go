package config

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// validator is what an editor does with the schema.
func validator(t *testing.T) func(text string) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) error {
		var v map[string]any
		if err := toml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		return s.Validate(instance)
	}
}

// Editors accept what the reader accepts, and mark what it refuses by name, type, bound or choice.
func TestSchema_SaysWhatTheReaderSays(t *testing.T) {
	valid := validator(t)
	for _, k := range Keys() {
		if err := valid(string(example(k))); err != nil {
			t.Errorf("the example of %s: %v", k.Path, err)
		}
	}
	for _, text := range []string{"[mcp]\nauthorty = \"full\"\n", "[mpc]\n", "[mcp.servers.x]\ncomand = \"a\"\n", "recovery.stall_seconds = \"5\"\n",
		"recovery.stall_seconds = -1\n", "permissions.park_minutes = 1e9\n", "mcp.authority = \"all\"\n", "mcp.trusted = [5]\n", "mcp.servers.x.env = { A = 1 }\n"} {
		if err := valid(text); err == nil {
			t.Errorf("the schema accepts %q", text)
		}
		if _, err := Parse("x", []byte(text), false); err == nil {
			t.Errorf("the reader accepts %q", text)
		}
	}
}
