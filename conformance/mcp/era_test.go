package mcp_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Every handshake that a client of the older era may ask for, and what it gets.
func TestEra_Handshakes(t *testing.T) {
	w := newWorld(t, nil)
	for asked, want := range map[string]string{"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18",
		"2025-11-25": "2025-11-25", "2026-07-28": "2025-11-25", "1999-01-01": "2025-11-25"} {
		c := w.raw()
		var r struct {
			ProtocolVersion string
			Capabilities    map[string]json.RawMessage
			ServerInfo      struct{ Name, Version string }
		}
		decode(t, c.hello(asked), &r)
		if r.ProtocolVersion != want || r.ServerInfo.Name != "holdfast" || r.ServerInfo.Version == "" {
			t.Errorf("%s: %+v", asked, r)
		}
		if len(r.Capabilities) != 1 || string(r.Capabilities["tools"]) != "{}" {
			t.Errorf("%s: capabilities %s", asked, r.Capabilities)
		}
		c.must("list_goals", object{}, nil)
		for _, m := range c.Log() {
			if m.Method != "" {
				t.Errorf("%s: it sent %s", asked, m.Raw)
			}
		}
	}
}

// The dialogue of each era, byte for byte apart from ids and times.
func TestEra_Transcripts(t *testing.T) {
	meta := object{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": object{},
		"io.modelcontextprotocol/clientInfo": object{"name": "conformance", "version": "1"}}
	modern := func(params object) object { params["_meta"] = meta; return params }
	plain := func(params object) object { return params }
	for era, with := range map[string]func(object) object{"legacy": plain, "modern": modern} {
		t.Run(era, func(t *testing.T) {
			w := newWorld(t, nil)
			c := w.raw("--trust", w.work)
			var b strings.Builder
			say := func(method string, params object) {
				t.Helper()
				line := encode(object{"jsonrpc": "2.0", "id": 0, "method": method, "params": with(params)})
				m := c.Await(c.Begin(method, with(params)))
				fmt.Fprintf(&b, "> %s\n< %s\n\n", line, m.Raw)
			}
			if era == "legacy" {
				say("initialize", object{"protocolVersion": "2025-11-25", "capabilities": object{}, "clientInfo": object{"name": "conformance", "version": "1"}})
				c.Notify("notifications/initialized", nil)
				say("ping", object{})
			} else {
				say("server/discover", object{})
				say("subscriptions/listen", object{"notifications": object{"toolsListChanged": true}})
			}
			tool := func(name string, args object) { t.Helper(); say("tools/call", object{"name": name, "arguments": args}) }
			tool("create_goal", object{"cwd": w.work, "objective": "Produce out.txt.", "idempotencyKey": "k"})
			tool("list_goals", object{"limit": 1})
			tool("list_sessions", object{})
			tool("get_goal", object{"goalId": "none"})
			tool("get_goal", object{"goal": "none"})
			tool("settle_effect", object{"effectId": "e", "happened": true})
			tool("nothing", object{})
			say("resources/list", object{})
			for _, m := range c.Log() {
				if m.Method != "" {
					fmt.Fprintf(&b, "< %s\n", m.Raw)
				}
			}
			golden(t, era+".golden", scrub(w, b.String()))
		})
	}
}

// The tools as a client sees them are a contract: names, words, schemas, hints.
func TestEra_Tools(t *testing.T) {
	w := newWorld(t, nil)
	c := w.serve()
	var b strings.Builder
	for _, tool := range c.tools() {
		in, err := json.MarshalIndent(tool.InputSchema, "  ", "  ")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s: %s\n  %s\n  hints: %s\n  input: %s\n  output: %s\n\n", tool.Name, tool.Title, tool.Description, encode(tool.Annotations), in, tool.OutputSchema)
	}
	golden(t, "tools.golden", b.String())
	for _, tool := range c.tools() {
		if len(tool.Annotations) != 4 {
			t.Errorf("%s has the hints %v", tool.Name, tool.Annotations)
		}
		for what, schema := range map[string]json.RawMessage{"input": tool.InputSchema, "output": tool.OutputSchema} {
			var s object
			decode(t, schema, &s)
			if s["type"] != "object" || s["additionalProperties"] != false {
				t.Errorf("%s: the %s schema is %v", tool.Name, what, s)
			}
		}
		if len(tool.Name) > 40 || tool.Title == "" || tool.Description == "" {
			t.Errorf("%+v", tool)
		}
	}
}

var (
	uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	rpcID = regexp.MustCompile(`"id":\d+`)
	built = regexp.MustCompile(`"version":"[^"]+"`)
)

func scrub(w *world, s string) string {
	s = strings.ReplaceAll(s, w.work, "/work")
	seen := map[string]string{}
	s = uuids.ReplaceAllStringFunc(s, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprint("<id ", len(seen)+1, ">")
		}
		return seen[id]
	})
	s = built.ReplaceAllString(times.ReplaceAllString(s, "<time>"), `"version":"<version>"`)
	return rpcID.ReplaceAllString(s, `"id":0`)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; look at the difference after: go test ./conformance/mcp -update\n%s", path, got)
	}
}

// The document names every tool.
func TestDocument_NamesEveryTool(t *testing.T) {
	doc, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range newWorld(t, nil).serve().tools() {
		if !strings.Contains(string(doc), "| `"+tool.Name+"` |") {
			t.Errorf("docs/mcp.md has no %s", tool.Name)
		}
	}
}
