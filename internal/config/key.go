package config

import (
	"slices"
	"strings"
)

// Type of a setting's value.
type Type string

// Types.
const (
	Text    Type = "text"
	Whole   Type = "whole number"
	Number  Type = "number"
	Switch  Type = "true or false"
	Texts   Type = "list of texts"
	Strings Type = "table of texts" // names the file chooses, each with a text
)

// Scope says what a project's file may do with a setting.
type Scope string

// Scopes.
const (
	Never    Scope = "never"         // the user's alone, however much the project is trusted
	Narrower Scope = "only narrower" // whichever of the two allows less counts
	Adds     Scope = "adds"          // comes on top of the user's; under the same name the user's counts
)

// Key is one setting. The zero values of the optional members mean that there is nothing to say.
type Key struct {
	Path    string // segments joined by dots; "*" is a name, "name[]" an entry of a list of tables
	Type    Type
	Unit    string
	Default string // as docs and listings print it
	Env     string // variable that overrules the files
	Flag    string // flag that overrules the variable
	Project Scope
	Since   string // first version that knows it
	Effect  string // one sentence, without a full stop
	Counts  string // from when a change counts
	Example string // TOML value, for "what to write"
	Secret  bool   // values are never shown
	AddsTo  bool   // variable and flag add to the files instead of overruling them

	OneOf    []string                             // the texts there are
	Min, Max float64                              // of numbers; Max 0 means none
	Check    func(v any) (wrong, write string)    // what Type and the members above cannot say; "" when it is right
	Narrow   func(user, project any) (narrow any) // with Narrower: the one of the two that allows less; user is nil when it is not set
}

// segments of the key's path.
func (k *Key) segments() []string { return strings.Split(k.Path, ".") }

// last is the name of the key within its table.
func (k *Key) last() string { return k.Path[strings.LastIndexByte(k.Path, '.')+1:] }

// tables are the areas, in the order of the documents. An area's file holds its own list.
var tables = [][]Key{modelKeys, figureKeys, goalKeys, mcpKeys, permissionKeys, sandboxKeys, fetchKeys, sessionKeys, limitKeys, recoveryKeys, instructionKeys}

// Keys lists every setting there is.
func Keys() []Key { return slices.Concat(tables...) }

// keys is the same, for those who look one up.
var keys = Keys()

// find returns the key that a path in a file names, and how many segments of the path it took.
func find(path []string) (*Key, int) {
	for i := range keys {
		seg := keys[i].segments()
		if len(path) >= len(seg) && matches(seg, path[:len(seg)]) && (len(path) == len(seg) || keys[i].Type == Strings && len(path) == len(seg)+1) {
			return &keys[i], len(seg)
		}
	}
	return nil, 0
}

// matches compares segments of a table path with those of a file.
func matches(pattern, path []string) bool {
	return slices.EqualFunc(pattern, path, func(p, s string) bool {
		if name, list := strings.CutSuffix(p, "[]"); list {
			at := strings.LastIndexByte(s, '[')
			return at > 0 && s[:at] == name
		}
		return p == "*" || p == s
	})
}

// below lists what may follow a path in a file, and which of it are lists of tables.
func below(path []string) (names []string, lists map[string]bool, free bool) {
	lists = map[string]bool{}
	for i := range keys {
		seg := keys[i].segments()
		if len(seg) <= len(path) || !matches(seg[:len(path)], path) {
			continue
		}
		name, list := strings.CutSuffix(seg[len(path)], "[]")
		if name == "*" {
			free = true
			continue
		}
		if lists[name] = list; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, lists, free
}
