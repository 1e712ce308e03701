package client

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

var legalName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func TestExposed(t *testing.T) {
	long := strings.Repeat("x", 90)
	for _, c := range []struct{ server, tool, want string }{
		{"files", "read_file", "mcp__files__read_file"},
		{"files", "get-sum", "mcp__files__get-sum"},
		{"files", "a.b", "mcp__files__a_b_"},
		{"files", "a/b", "mcp__files__a_b_"},
		{"my files", "read", "mcp__my_files__read_"},
		{"files", "名前", "mcp__files_____"},
		{"files", long, "mcp__files__xxxxxxx"},
		{long, "read", "mcp__xxxxxxxxxxxxxxxxxxxxxxxx__read_"},
		{long, long, "mcp__xxxxxxxxxxxxxxxxxxxxxxxx__xxxxx"},
	} {
		got := Exposed(c.server, c.tool)
		if !legalName.MatchString(got) || !strings.HasPrefix(got, c.want) || got != Exposed(c.server, c.tool) {
			t.Errorf("%q %q is exposed as %q, want %q", c.server, c.tool, got, c.want)
		}
	}
	seen := map[string]string{}
	for _, server := range []string{"a", "a_", "a__b", "a.b", "a_b", "_a", long, long + "y"} {
		for _, tool := range []string{"c", "_c", "b__c", "b.c", "b_c", "__", long, long + "y", "名", "前"} {
			name := Exposed(server, tool)
			if other := seen[name]; other != "" {
				t.Errorf("%q is %q and %q", name, other, server+" "+tool)
			}
			seen[name] = server + " " + tool
		}
	}
}

func rebuilt(t *testing.T, def string) Tool {
	t.Helper()
	tool, err := Rebuild("s", json.RawMessage(def))
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// The hash is of what a tool means: not of the order or the spelling, but of every word of it.
func TestRebuild_Hash(t *testing.T) {
	const def = `{"name":"n","description":"d","inputSchema":{"type":"object","properties":{"a":{"type":"string"},"b":{"maximum":1.0}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
	base := rebuilt(t, def)
	same := rebuilt(t, `{ "annotations":{"readOnlyHint":true}, "_meta":{"x":1}, "outputSchema":{"type":"object"},"inputSchema":{"properties":{"b":{"maximum":1.0},"a":{"type":"string"}},"type":"object"},"description":"d","name":"n"}`)
	if base.Hash != same.Hash || len(base.Hash) != 64 {
		t.Errorf("another order is another hash: %s %s", base.Hash, same.Hash)
	}
	for old, changed := range map[string]string{`"n"`: `"m"`, `"d"`: `"e"`, `"string"`: `"number"`, "1.0": "2.0", `"outputSchema":{"type":"object"}`: `"outputSchema":{"type":"array"}`, "true": "false"} {
		if other := rebuilt(t, strings.Replace(def, old, changed, 1)); other.Hash == base.Hash {
			t.Errorf("%s for %s is not noticed", changed, old)
		}
	}
	again, err := Rebuild(base.Server, base.Raw)
	if err != nil || again.Hash != base.Hash || again.Exposed != base.Exposed || string(again.Schema) != string(base.Schema) || !again.Hints["readOnlyHint"] {
		t.Errorf("rebuilt %+v, %v", again, err)
	}
}

func TestRebuild_View(t *testing.T) {
	key := strings.Repeat("k", 70)
	for name, c := range map[string]struct{ in, want string }{
		"nothing":             {`null`, `{"properties":{},"type":"object"}`},
		"an empty object":     {`{}`, `{"properties":{},"type":"object"}`},
		"marks of the schema": {`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"x","$comment":"y","type":"object","properties":{"a":{"type":"string","x-y":1}}}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		"may be null":         {`{"properties":{"a":{"type":["string","null"]},"b":{"type":"number","nullable":true,"description":"B"}}}`, `{"properties":{"a":{"description":"(may be null)","type":"string"},"b":{"description":"B (may be null)","type":"number"}},"type":"object"}`},
		"several types":       {`{"properties":{"a":{"type":["string","number"]}}}`, `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"number"}]}},"type":"object"}`},
		"a reference":         {`{"$defs":{"d":{"type":"integer","minimum":0}},"properties":{"a":{"$ref":"#/$defs/d","description":"A"}}}`, `{"properties":{"a":{"description":"A","minimum":0,"type":"integer"}},"type":"object"}`},
		"a ring":              {`{"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, `{"properties":{"a":{"properties":{"next":{"description":"The same again, as deep as needed."}},"type":"object"}},"type":"object"}`},
		"the root refers":     {`{"$ref":"#/definitions/r","definitions":{"r":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`, `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`},
		"booleans":            {`{"properties":{"a":true,"b":false},"required":["a","b"]}`, `{"properties":{"a":{}},"required":["a"],"type":"object"}`},
		"a tuple":             {`{"properties":{"a":{"type":"array","items":[{"type":"string"},{"type":"number"}]},"b":{"type":"array","prefixItems":[{"type":"string"}]},"c":{"type":"array"}}}`, `{"properties":{"a":{"items":{"anyOf":[{"type":"string"},{"type":"number"}]},"type":"array"},"b":{"items":{"type":"string"},"type":"array"},"c":{"items":{},"type":"array"}},"type":"object"}`},
		"all of":              {`{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{}}}],"properties":{"c":{}},"required":["c"]}`, `{"properties":{"a":{"type":"string"},"b":{},"c":{}},"required":["c","a"],"type":"object"}`},
		"one of, below":       {`{"properties":{"a":{"oneOf":[{"type":"string"},{"const":1}]}}}`, `{"properties":{"a":{"anyOf":[{"type":"string"},{"const":1}]}},"type":"object"}`},
		"values of no sense":  {`{"properties":{"a":{"type":"any","minimum":"3","enum":[],"pattern":7,"required":3}}}`, `{"properties":{"a":{}},"type":"object"}`},
		"a key too long":      {`{"properties":{"` + key + `":{}},"required":["` + key + `"]}`, `{"properties":{"` + key[:48] + `_5c6ced41":{}},"required":["` + key[:48] + `_5c6ced41"],"type":"object"}`},
	} {
		t.Run(name, func(t *testing.T) {
			tool := rebuilt(t, `{"name":"n","inputSchema":`+c.in+`}`)
			if string(tool.Schema) != c.want {
				t.Errorf("the view is\n%s, want\n%s", tool.Schema, c.want)
			}
		})
	}
}

func TestRebuild_RootRulesAreSaid(t *testing.T) {
	tool := rebuilt(t, `{"name":"n","description":"D","inputSchema":{"type":"object","oneOf":[{"required":["a"],"properties":{"a":{"type":"string"}}},{"required":["b","c"],"properties":{"b":{},"c":{}}}],"not":{"required":["z"]}}}`)
	if !strings.Contains(tool.Description, "Exactly one of these has to hold: {a}; {b, c}.") || !strings.Contains(tool.Description, "Not every combination") {
		t.Errorf("description %q", tool.Description)
	}
	if strings.Contains(string(tool.Schema), "oneOf") || !strings.Contains(string(tool.Schema), `"b":{}`) {
		t.Errorf("view %s", tool.Schema)
	}
	if _, err := tool.Arguments(json.RawMessage(`{"a":"x","b":1,"c":2}`)); err == nil {
		t.Error("both forms at once were not noticed")
	}
}

// References that multiply do not blow up.
func TestRebuild_Bomb(t *testing.T) {
	var defs []string
	for i := range 30 {
		n := string(rune('a' + i%26))
		defs = append(defs, `"`+n+string(rune('0'+i/26))+`":{"type":"object","properties":{"x":{"$ref":"#/$defs/`+string(rune('a'+(i+1)%26))+string(rune('0'+(i+1)/26))+`"},"y":{"$ref":"#/$defs/`+string(rune('a'+(i+1)%26))+string(rune('0'+(i+1)/26))+`"}}}`)
	}
	tool := rebuilt(t, `{"name":"n","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/a0"}},"$defs":{`+strings.Join(defs, ",")+`}}}`)
	if len(tool.Schema) > 200_000 {
		t.Errorf("the view has %d bytes", len(tool.Schema))
	}
}

func TestTool_Arguments(t *testing.T) {
	tool := rebuilt(t, `{"name":"n","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["path"],"additionalProperties":false,"properties":{
		"path":{"type":"string","pattern":"^(?!/etc).*$"},"count":{"type":"integer","minimum":1},"tags":{"type":"array","items":{"enum":["a","b"]}},"big":{"type":"integer"},"we ird":{"type":"object","properties":{"$in":{"type":"string"}}}}}}`)
	var weird, in string
	for short, own := range tool.renamed {
		if own == "we ird" {
			weird = short
		} else {
			in = short
		}
	}
	for name, c := range map[string]struct{ in, want string }{
		"plain":       {`{"path":"x","count":2}`, `{"count":2,"path":"x"}`},
		"a large one": {`{"path":"<&>","big":12345678901234567890}`, `{"big":12345678901234567890,"path":"<&>"}`},
		"renamed":     {`{"path":"x","` + weird + `":{"` + in + `":"y"}}`, `{"path":"x","we ird":{"$in":"y"}}`},
		"twice":       {`{"path":1,"path":"x"}`, `{"path":"x"}`},
	} {
		got, err := tool.Arguments(json.RawMessage(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for in, words := range map[string]string{
		``:                                "missing property 'path'",
		`null`:                            "missing property 'path'",
		`{}`:                              "missing property 'path'",
		`[]`:                              "one JSON object",
		`{"path":"x"} {}`:                 "one JSON object",
		`{"path"`:                         "not valid JSON",
		`{"path":7}`:                      "path: got number, want string",
		`{"path":"x","count":0}`:          "count: minimum: got 0, want 1",
		`{"path":"x","other":1}`:          "additional properties 'other' not allowed",
		`{"path":"x","tags":["a","zzz"]}`: "tags.1: value must be one of 'a', 'b'",
	} {
		if got, err := tool.Arguments(json.RawMessage(in)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %s, %v; want %q", in, got, err, words)
		}
	}
	var none Tool
	if got, err := none.Arguments(nil); err != nil || string(got) != "{}" {
		t.Errorf("without a schema: %s, %v", got, err)
	}
}
