package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Each mistake is named with its file, its line, its key, what is wrong and what to write.
func TestParse_MistakesSayWhatToWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string // "LINE KEY|MESSAGE|WRITE"
	}{
		"a letter wrong":            {"[mcp]\n\nauthorty = \"full\"\n", []string{"3 mcp.authorty|is not a setting|write mcp.authority"}},
		"two letters swapped":       {"[recovery]\nstall_secodns = 5\n", []string{"2 recovery.stall_secodns|is not a setting|write recovery.stall_seconds"}},
		"a table wrong":             {"[mpc]\nauthority = \"read\"\ntrusted = []\n", []string{"1 mpc|is not a setting|write mcp"}},
		"in the wrong table":        {"park_minutes = 5\n", []string{"1 park_minutes|is not a setting|write permissions.park_minutes"}},
		"nothing like it":           {"[recovery]\nxyzzy = 1\n", []string{"2 recovery.xyzzy|is not a setting|the settings of recovery are auto, stall_seconds"}},
		"no such table":             {"[qqqqqqqq]\n", []string{"1 qqqqqqqq|is not a setting|the tables are model, models, goals, mcp, permissions, sandbox, fetch, sessions, limits, recovery, instructions"}},
		"a member of a setting":     {"[recovery.stall_seconds]\nx = 1\n", []string{"1 recovery.stall_seconds|is a table|write stall_seconds = 900", "2 recovery.stall_seconds.x|is not a setting|leave it out"}},
		"a table as a value":        {"mcp = 3\n", []string{"1 mcp|is a whole number|write it as a table, [mcp], with authority, trusted, limits, servers"}},
		"within a server":           {"[mcp.servers.x]\ncomand = \"a\"\n", []string{"2 mcp.servers.x.comand|is not a setting|write mcp.servers.x.command"}},
		"a quoted name":             {"[mcp.servers.\"a.b\"]\ncommand = 5\n", []string{"2 mcp.servers.\"a.b\".command|is a whole number|write command = \"npx\""}},
		"inline":                    {"[mcp]\nservers = { x = { comand = \"a\" } }\n", []string{"2 mcp.servers.x.comand|is not a setting|write mcp.servers.x.command"}},
		"an argument":               {"[mcp.servers.x]\ncommand = \"a\"\nargs = [\n  \"b\",\n  5,\n]\n", []string{"3 mcp.servers.x.args|holds a whole number|write args = [\"-y\", \"PACKAGE\"]"}},
		"a variable":                {"[mcp.servers.x]\ncommand = \"a\"\n[mcp.servers.x.env]\nPORT = 80\n", []string{"4 mcp.servers.x.env.PORT|is a whole number|write a text in double quotes"}},
		"no command":                {"[mcp.servers.x]\nargs = []\n", []string{"2 mcp.servers.x|has no command|write command = \"PROGRAM\" in it, or disabled = true"}},
		"negative":                  {"[mcp.limits]\nidle_seconds = -1\n", []string{"2 mcp.limits.idle_seconds|is below 0|write a whole number from 0 on, in seconds"}},
		"too much":                  {"permissions.park_minutes = 1e9\n", []string{"1 permissions.park_minutes|is above 10080|write a number from 0 to 10080, in minutes"}},
		"no number":                 {"permissions.park_minutes = nan\n", []string{"1 permissions.park_minutes|is below 0|write a number from 0 to 10080, in minutes"}},
		"not one of them":           {"mcp.authority = \"all\"\n", []string{"1 mcp.authority|is \"all\"|want read, goals or full"}},
		"a relative directory":      {"mcp.trusted = [\"src\"]\n", []string{"1 mcp.trusted|names \"src\", which is not an absolute path|write each directory from / on"}},
		"no such wire":              {"model.openai_api = \"completions\"\n", []string{"1 model.openai_api|is \"completions\"|want chat or responses"}},
		"no such dialect":           {"model.openai_dialect = \"klingon\"\n", []string{"1 model.openai_dialect|is \"klingon\"|want openai, azure, mistral, openrouter, ollama, lmstudio, vllm or plain"}},
		"an address":                {"model.openai_base_url = \"localhost:1\"\n", []string{"1 model.openai_base_url|is not an address|write it from http:// or https:// on"}},
		"a key in an address":       {"model.openai_base_url = \"https://a:secret@x\"\n", []string{"1 model.openai_base_url|holds more than an address|write no user, question mark or # in it"}},
		"a date":                    {"recovery.stall_seconds = 2020-01-01\n", []string{"1 recovery.stall_seconds|is a date or time|write stall_seconds = 900"}},
		"a list of tables":          {"[[mcp]]\nauthority = \"read\"\n", []string{"1 mcp[0]|is a list of tables|write it once, [mcp]"}},
		"a rule without a verdict":  {"[[permissions.rules]]\nverdict = \"deny\"\ntool = \"shell\"\n\n[[permissions.rules]]\nprefix = \"a\"\n", []string{"5 permissions.rules[1]|has no verdict|write verdict = \"allow\", \"ask\" or \"deny\" in it"}},
		"a rule about nothing":      {"[[permissions.rules]]\n", []string{"1 permissions.rules[0]|has no verdict|write verdict = \"allow\", \"ask\" or \"deny\" in it"}},
		"a rule about two things":   {"permissions.rules = [\n  { verdict = \"deny\", prefix = \"a\", path = \"b\" },\n]\n", []string{"1 permissions.rules[0]|does not say what it covers|write one of command, prefix, path, host, server and tool in it, or server and tool"}},
		"a rule that allows a tool": {"[[permissions.rules]]\nverdict = \"allow\"\ntool = \"shell\"\n", []string{"1 permissions.rules[0]|allows a built-in tool whatever it does|write command, prefix, path or host instead, or name the server of an external tool"}},
		"no runs at all":            {"limits.working = 0\n", []string{"1 limits.working|is below 1|write a whole number from 1 to 1000, in runs"}},
		"figures of nothing":        {"[[models]]\nname = \"openai/x\"\n", []string{"1 models[0]|says nothing of its models|write a figure in it, for example context_tokens = 131072"}},
		"figures without a name":    {"[[models]]\nimages = false\n", []string{"1 models[0]|has no name|write name = \"PROVIDER/NAME\" in it"}},
		"a model without provider":  {"[[models]]\nname = \"x\"\nimages = false\n", []string{"2 models[0].name|is \"x\"|write PROVIDER/NAME, for example \"openai/gpt-*\""}},
		"a name without a model":    {"[model]\nname = \"openai/\"\n", []string{"2 model.name|is \"openai/\"|write PROVIDER/NAME, for example openai/NAME"}},
		"a name without a provider": {"[model]\nname = \"gpt-4o\"\n", []string{"2 model.name|is \"gpt-4o\"|write PROVIDER/NAME, for example openai/gpt-4o"}},
		"models of any provider":    {"[[models]]\nname = \"*/x\"\nimages = false\n", []string{"2 models[0].name|is \"*/x\"|write PROVIDER/NAME, for example \"openai/gpt-*\""}},
		"a model twice":             {"[[models]]\nname = \"openai/x\"\nimages = false\n\n[[models]]\nname = \"openai/X\"\nimages = true\n", []string{"5 models[1]|names the models of line 1 again|write all figures of a name in one table"}},
		"a window of nothing":       {"[[models]]\nname = \"openai/x\"\ncontext_tokens = 0\n", []string{"3 models[0].context_tokens|is below 1|write a whole number from 1 to 1000000000000, in tokens"}},
		"more out than in":          {"[[models]]\nname = \"openai/x\"\ncontext_tokens = 5\noutput_tokens = 6\n", []string{"1 models[0]|lets an answer be longer than all they hold|write output_tokens of at most context_tokens"}},
		"a price below nothing":     {"[[models]]\nname = \"openai/x\"\nprice_input = -0.1\n", []string{"3 models[0].price_input|is below 0|write a number from 0 to 1000000, in currency units for a million tokens"}},
		"a currency of nothing":     {"[[models]]\nname = \"openai/x\"\nimages = true\ncurrency = \"EUR\"\n", []string{"1 models[0]|has a currency and no price|write price_input or price_output in it, or leave the currency out"}},
		"no currency":               {"[[models]]\nname = \"openai/x\"\nprice_input = 1\ncurrency = \"euro\"\n", []string{"4 models[0].currency|is \"euro\"|write three capital letters, for example EUR"}},
		"no way to think":           {"[[models]]\nname = \"openai/x\"\nreasoning = \"low,,High\"\n", []string{"3 models[0].reasoning|is \"low,,High\"|write none, budget, effort, or levels such as low, medium, high"}},
		"a figure's name wrong":     {"[[models]]\nname = \"openai/x\"\ncontext_token = 5\n", []string{"3 models[0].context_token|is not a setting|write models[0].context_tokens"}},
		"one table of models":       {"[models]\nname = \"openai/x\"\n", []string{"1 models|is one table|write it as an entry of a list, [[models]]"}},
		"several":                   {"a = 1\n[recovery]\nstall_seconds = \"x\"\n", []string{"1 a|is not a setting|the tables are model, models, goals, mcp, permissions, sandbox, fetch, sessions, limits, recovery, instructions", "3 recovery.stall_seconds|is a text|write stall_seconds = 900"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("here.toml", []byte(tc.text), false)
			var all Errors
			if !errors.As(err, &all) {
				t.Fatalf("error %v", err)
			}
			var got []string
			for _, e := range all {
				got = append(got, fmt.Sprintf("%d %s|%s|%s", e.Line, e.Key, e.Message, e.Write))
				if s := e.Error(); !strings.Contains(s, fmt.Sprintf("here.toml, line %d: %s", e.Line, e.Key)) || !strings.Contains(s, e.Write) {
					t.Errorf("the sentence is %s", s)
				}
			}
			if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// What is no TOML at all, or says a thing twice, has a line too.
func TestParse_SyntaxHasItsLine(t *testing.T) {
	for text, line := range map[string]int{"[mcp\n": 1, "[mcp]\nauthority = \"read\"\nauthority = \"full\"\n": 3, "[mcp]\n\n\nx = \n": 4, "[mcp]\n[mcp]\n": 2} {
		_, err := Parse("here.toml", []byte(text), false)
		var e *Error
		if !errors.As(err, &e) || e.Line != line || !strings.Contains(e.Message, "TOML") {
			t.Errorf("%q: %v, want line %d", text, err, line)
		}
	}
}

// A value that may be a secret is in no error.
func TestParse_ErrorsHoldNoSecret(t *testing.T) {
	_, err := Parse("here.toml", []byte("[mcp.servers.x]\ncommand = \"a\"\nenv = [\"hunter2hunter2\"]\n"), false)
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "line 3: mcp.servers.x.env is a list") {
		t.Errorf("error %v", err)
	}
}

// A project's file may not hold what is the user's alone; that is refused and not passed over.
func TestParse_ProjectMayNotSetWhatIsTheUsers(t *testing.T) {
	for _, k := range Keys() {
		_, err := Parse("p.toml", example(k), true)
		var e *Error
		refused := errors.As(err, &e) && strings.Contains(e.Message, "cannot be set by a project")
		if refused != (k.Project == Never) || !refused && err != nil {
			t.Errorf("%s (%s): %v", k.Path, k.Project, err)
		}
	}
	for _, key := range []string{"mcp.authority", "mcp.trusted", "model.openai_base_url", "model.openai_api", "model.openai_dialect", "model.anthropic_base_url", "model.name"} {
		if k, _ := find(strings.Split(key, ".")); k == nil || k.Project != Never {
			t.Errorf("a project may set %s", key)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, k := range Keys() {
		f.Add(example(k))
	}
	f.Add([]byte("[[a.b]]\nc = [{d = 1}, {e = {}}]\n[a.b.c]\n\"x.y\".z = 0x1F\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, project := range []bool{false, true} {
			file, err := Parse("f", b, project)
			var all Errors
			if err != nil && (!errors.As(err, &all) || len(all) == 0 || file.Exists || len(file.Values) > 0) {
				t.Fatalf("%v, %+v", err, file)
			}
			for _, e := range all {
				if strings.Contains(e.Message, "tell a maintainer") || e.Line < 0 || e.Line > 1+strings.Count(string(b), "\n") {
					t.Fatalf("%+v", e)
				}
			}
			if err == nil {
				Settings(file, file, Given{Getenv: func(string) (string, bool) { return "", false }})
				Merge(file, file)
			}
		}
	})
}
