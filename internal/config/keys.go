package config

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
)

const first = "0.1.0"

// From when a change counts.
const (
	atStart   = "the next start of a Holdfast process"
	atSession = "the next session of a new process"
	atRequest = "the next turn"
	atCall    = "the next start of a Holdfast process, a project's from the next call"
	atClient  = "the next start of 'holdfast mcp'"
)

var modelKeys = []Key{
	{Path: "model.name", Type: Text, Default: "the default of the provider whose key is set", Env: "HOLDFAST_MODEL", Flag: "--model", Project: Never, Since: first,
		Effect: "The model, as `PROVIDER/NAME`", Counts: atStart, Example: `"anthropic/NAME"`, Check: modelName},
	{Path: "model.max_tokens", Type: Whole, Unit: "tokens", Default: "the provider's", Env: "HOLDFAST_MAX_TOKENS", Project: Never, Since: first,
		Effect: "How long one answer may become; 0 is the default", Counts: atStart, Example: "8192"},
	{Path: "model.reasoning_effort", Type: Text, Default: "the model's own", Env: "HOLDFAST_REASONING_EFFORT", Project: Never, Since: first,
		Effect: "How much models think, in their own levels, where a session does not say it; those that cannot reason are told nothing", Counts: atStart,
		Example: `"high"`, Check: level},
	{Path: "model.openai_base_url", Type: Text, Default: "OpenAI's own", Env: "OPENAI_BASE_URL", Project: Never, Since: first,
		Effect: "Where `openai/NAME` is asked, for servers that speak the same protocol; the key goes there", Counts: atStart,
		Example: `"http://127.0.0.1:11434/v1"`, Check: address},
	{Path: "model.openai_api", Type: Text, Default: "chat", Env: "HOLDFAST_OPENAI_API", Project: Never, Since: first,
		Effect: "The protocol in which `openai/NAME` is asked: chat completions or responses", Counts: atStart, Example: `"responses"`,
		OneOf: []string{"chat", "responses"}},
	{Path: "model.openai_dialect", Type: Text, Default: "that of the address", Env: "HOLDFAST_OPENAI_DIALECT", Project: Never, Since: first,
		Effect: "How the server wants to be asked by chat completions, where its address does not say it", Counts: atStart, Example: `"vllm"`,
		OneOf: []string{"openai", "azure", "mistral", "openrouter", "ollama", "lmstudio", "vllm", "plain"}},
	{Path: "model.anthropic_base_url", Type: Text, Default: "Anthropic's own", Env: "ANTHROPIC_BASE_URL", Project: Never, Since: first,
		Effect: "Where `anthropic/NAME` is asked; the key goes there", Counts: atStart, Example: `"https://gateway.example"`, Check: address},
}

var goalKeys = []Key{
	{Path: "goals.review_model", Type: Text, Default: "the model that the goal works with", Project: Never, Since: first,
		Effect: "The model that reviews goals, as `PROVIDER/NAME`: asked at its provider's address with that provider's key", Counts: atStart,
		Example: `"openai/NAME"`, Check: reviewModel},
}

// reviewModel checks a model that is asked beside the process's own: no script.
func reviewModel(v any) (wrong, write string) {
	if kind, _, _ := strings.Cut(v.(string), "/"); strings.EqualFold(kind, "scripted") {
		return "names a script", "write PROVIDER/NAME, or leave it out: a script that works reviews too"
	}
	return modelName(v)
}

var mcpKeys = []Key{
	{Path: "mcp.authority", Type: Text, Default: "goals", Env: "HOLDFAST_MCP_AUTHORITY", Flag: "--authority", Project: Never, Since: first,
		Effect: "What clients of `holdfast mcp` may do", Counts: atClient, Example: `"read"`, OneOf: []string{"read", "goals", "full"}},
	{Path: "mcp.trusted", Type: Texts, Default: "none", Env: "HOLDFAST_MCP_TRUST", Flag: "--trust", AddsTo: true, Project: Never, Since: first,
		Effect: "Directories in which clients of `holdfast mcp` may start work; variable and flag add to it", Counts: atClient,
		Example: `["/home/you/src"]`, Check: absolute},
	{Path: "mcp.limits.start_seconds", Type: Whole, Unit: "seconds", Default: "60", Project: Never, Since: first,
		Effect: "From the launch of a server to its tool list; 0 is the default", Counts: atStart, Example: "60"},
	{Path: "mcp.limits.idle_seconds", Type: Whole, Unit: "seconds", Default: "120", Project: Never, Since: first,
		Effect: "How long a call may give neither an answer nor progress; 0 is the default", Counts: atStart, Example: "120"},
	{Path: "mcp.limits.call_seconds", Type: Whole, Unit: "seconds", Default: "1800", Project: Never, Since: first,
		Effect: "How long a call may take, whatever progress it reports; 0 is the default", Counts: atStart, Example: "1800"},
	{Path: "mcp.servers.*.command", Type: Text, Default: "must be given", Project: Adds, Since: first,
		Effect: "The program of a stdio server that every session has", Counts: atSession, Example: `"npx"`},
	{Path: "mcp.servers.*.args", Type: Texts, Default: "none", Project: Adds, Since: first,
		Effect: "Its arguments", Counts: atSession, Example: `["-y", "PACKAGE"]`},
	{Path: "mcp.servers.*.env", Type: Strings, Default: "none", Project: Adds, Since: first, Secret: true,
		Effect: "Variables it gets, with their values", Counts: atSession, Example: `{ NAME = "value" }`},
	{Path: "mcp.servers.*.env_from", Type: Texts, Default: "none", Project: Adds, Since: first,
		Effect: "Names of variables of Holdfast's own environment that it gets", Counts: atSession, Example: `["NAME"]`},
	{Path: "mcp.servers.*.disabled", Type: Switch, Default: "false", Project: Adds, Since: first,
		Effect: "Leaves it out without deleting it", Counts: atSession, Example: "true"},
}

var permissionKeys = []Key{
	{Path: "permissions.park_minutes", Type: Number, Unit: "minutes", Default: "30", Project: Never, Since: first, Max: 7 * 24 * 60,
		Effect: "How long a prompt stays open for a question that nobody answers; 0 is the default", Counts: atStart, Example: "30"},
	{Path: "permissions.rules[].verdict", Type: Text, Default: "must be given", Project: Adds, Since: first,
		Effect: "What a rule says of the calls it covers; refusing counts before asking, and asking before allowing", Counts: atCall, Example: `"ask"`,
		OneOf: verdicts},
	{Path: "permissions.rules[].command", Type: Text, Default: "none", Project: Adds, Since: first,
		Effect: "It covers exactly this command line", Counts: atCall, Example: `"make test"`},
	{Path: "permissions.rules[].prefix", Type: Text, Default: "none", Project: Adds, Since: first,
		Effect: "It covers commands that begin with these words", Counts: atCall, Example: `"go test"`},
	{Path: "permissions.rules[].path", Type: Text, Default: "none", Project: Adds, Since: first,
		Effect: "It covers edits of the files that the pattern names", Counts: atCall, Example: `"docs/**"`},
	{Path: "permissions.rules[].host", Type: Text, Default: "none", Project: Adds, Since: first,
		Effect: "It covers what `fetch` gets from this host, or with `*.` in front from every host of the domain", Counts: atCall, Example: `"docs.example.org"`},
	{Path: "permissions.rules[].server", Type: Text, Default: "none", Project: Adds, Since: first,
		Effect: "It covers the tools of this MCP server", Counts: atCall, Example: `"github"`},
	{Path: "permissions.rules[].tool", Type: Text, Default: "none", Project: Adds, Since: first,
		Effect: "It covers this tool: of the server that is named beside it, else a built-in one, which can be refused or asked about", Counts: atCall,
		Example: `"shell"`},
	{Path: "permissions.rules[].in", Type: Text, Default: "everywhere", Project: Never, Since: first,
		Effect: "The directory whose sessions it counts in; a project's rules count in the project", Counts: atCall, Example: `"/home/you/src"`, Check: folder},
}

var sandboxKeys = []Key{
	{Path: "sandbox.commands", Type: Text, Default: "unasked", Project: Never, Since: first,
		Effect: "Which commands are confined: all, those that nobody was asked about, or none", Counts: atStart, Example: `"always"`,
		OneOf: []string{"always", "unasked", "off"}},
	{Path: "sandbox.network", Type: Switch, Default: "false", Project: Never, Since: first,
		Effect: "Lets confined commands use the network", Counts: atStart, Example: "true"},
	{Path: "sandbox.writable", Type: Texts, Default: "none", Project: Never, Since: first,
		Effect: "Further folders that confined commands may write", Counts: atStart, Example: `["~/.cache/go-build"]`, Check: folders},
}

var fetchKeys = []Key{
	{Path: "fetch.private_hosts", Type: Texts, Default: "none", Project: Never, Since: first,
		Effect: "Hosts that `fetch` may reach although their addresses are not public: names as in the address, without a port", Counts: atStart,
		Example: `["wiki.corp.example"]`},
}

var sessionKeys = []Key{
	{Path: "sessions.keep_days", Type: Number, Unit: "days", Default: "for ever", Project: Never, Since: first, Max: 36500,
		Effect: "After how long a session is deleted that lies still and holds nothing open; 0 is for ever", Counts: atStart, Example: "90", Check: wholeDay},
}

var limitKeys = []Key{
	{Path: "limits.working", Type: Whole, Unit: "runs", Default: "4", Project: Never, Since: first, Min: 1, Max: 1000,
		Effect: "How many runs work unattended at once, over all processes of the store", Counts: atStart, Example: "4"},
}

var recoveryKeys = []Key{
	{Path: "recovery.auto", Type: Text, Default: "always", Project: Never, Since: first,
		Effect: "What is done by itself with work whose process is gone: it goes on, it goes on once a client opens its session, or it waits for your word",
		Counts: atStart, Example: `"attached"`, OneOf: []string{"always", "attached", "off"}},
	{Path: "recovery.stall_seconds", Type: Whole, Unit: "seconds", Default: "900", Project: Never, Since: first,
		Effect: "After how long without activity an attempt is ended; 0 is the default", Counts: atStart, Example: "900"},
}

var instructionKeys = []Key{
	{Path: "instructions.disabled", Type: Switch, Default: "false", Project: Narrower, Since: first,
		Effect: "Leaves `AGENTS.md` and its like out of what the model is told", Counts: atRequest, Example: "true",
		Narrow: func(user, project any) any { return user == true || project == true }},
	{Path: "instructions.max_kib", Type: Whole, Unit: "KiB", Default: "64", Project: Narrower, Since: first, Max: 1024,
		Effect: "How much of all instruction files together the model is told; 0 is the default", Counts: atRequest, Example: "64",
		Narrow: smaller(64)},
}

// smaller takes the smaller of two whole numbers, of which 0 means the default.
func smaller(usual int64) func(user, project any) any {
	or := func(v any) int64 {
		if n, ok := v.(int64); ok && n != 0 {
			return n
		}
		return usual
	}
	return func(user, project any) any { return min(or(user), or(project)) }
}

// modelName checks that a provider is named. Which there are is for the one who asks the model.
func modelName(v any) (wrong, write string) {
	kind, name, ok := strings.Cut(v.(string), "/")
	switch {
	case !ok || kind == "" || strings.TrimSpace(name) == "":
		return "is " + strconv.Quote(clip(v.(string))), "write PROVIDER/NAME, for example openai/" + cmp.Or(strings.Trim(strings.TrimPrefix(clip(v.(string)), "openai/"), "/"), "NAME")
	case strings.EqualFold(kind, "scripted") && !filepath.IsAbs(name):
		return "names a script by a relative path", "write it from / on: it is looked for by processes in every directory"
	}
	return "", ""
}

// address checks the base URL of a provider.
func address(v any) (wrong, write string) {
	u, err := url.Parse(v.(string))
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "is not an address", "write it from http:// or https:// on"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "holds more than an address", "write no user, question mark or # in it"
	}
	return "", ""
}

// absolute checks a list of directories.
func absolute(v any) (wrong, write string) {
	for _, dir := range v.([]any) {
		if !filepath.IsAbs(dir.(string)) {
			return fmt.Sprintf("names %q, which is not an absolute path", clip(dir.(string))), "write each directory from / on"
		}
	}
	return "", ""
}

// wholeDay refuses what may have been meant as another unit.
func wholeDay(v any) (wrong, write string) {
	var days float64
	switch n := v.(type) {
	case int64:
		days = float64(n)
	case float64:
		days = n
	}
	if days > 0 && days < 1 {
		return "is less than a day", "write a number from 1 on, in days, or 0 for ever"
	}
	return "", ""
}

// bounded checks a number against the key's bounds.
func (k *Key) bounded(n float64) (wrong, write string) {
	switch {
	case math.IsNaN(n) || n < k.Min:
		wrong = "is below " + plain(k.Min)
	case math.IsInf(n, 0) || k.Max > 0 && n > k.Max:
		wrong = "is above " + plain(k.Max)
	default:
		return "", ""
	}
	write = fmt.Sprintf("write a %s from %s on", k.Type, plain(k.Min))
	if k.Max > 0 {
		write = fmt.Sprintf("write a %s from %s to %s", k.Type, plain(k.Min), plain(k.Max))
	}
	if k.Unit != "" {
		write += ", in " + k.Unit
	}
	return wrong, write
}
