package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"holdfast/internal/nearest"
)

// Value is one setting as it stands in a file.
type Value struct {
	Key  *Key
	Path string // dotted, with the names that the file chose
	Line int
	V    any // string, bool, int64, float64, []any of strings, or map[string]string

	seg []string
}

// checker collects the mistakes of one file.
type checker struct {
	path    string
	project bool
	errs    Errors
	values  []Value
	unknown map[string]bool // what was reported, so that a wrong table is one mistake
}

func (c *checker) fault(line int, key, message, write string) {
	c.errs = append(c.errs, &Error{Path: c.path, Line: line, Key: key, Message: message, Write: write})
}

// check goes through the entries of a file.
func check(path string, project bool, entries []entry) ([]Value, Errors) {
	c := &checker{path: path, project: project, unknown: map[string]bool{}}
	for _, e := range entries {
		c.entry(e)
	}
	c.complete()
	c.rules(entries)
	c.models(entries)
	slices.SortStableFunc(c.errs, func(a, b *Error) int { return a.Line - b.Line })
	return c.values, c.errs
}

func (c *checker) entry(e entry) {
	k, n := find(e.path)
	switch {
	case k == nil:
		c.notASetting(e)
	case e.head && k.Type == Strings && len(e.path) == n: // its names follow
	case e.head || len(e.path) == n && k.Type == Strings:
		c.fault(e.line, dotted(e.path), "is "+kind(e), "write "+k.asExample())
	case c.project && k.Project == Never:
		c.fault(e.line, dotted(e.path), "cannot be set by a project", "write it in your own config.toml, or leave it out")
	case len(e.path) > n:
		s, ok := e.v.(string)
		if !ok {
			c.fault(e.line, dotted(e.path), "is "+kind(e), "write a text in double quotes")
			return
		}
		c.named(k, e, n, s)
	default:
		if wrong, write := k.judge(e.v); wrong != "" {
			c.fault(e.line, dotted(e.path), wrong, write)
			return
		}
		c.values = append(c.values, Value{k, dotted(e.path), e.line, e.v, e.path})
	}
}

// named adds a text to a table of texts.
func (c *checker) named(k *Key, e entry, n int, s string) {
	at := dotted(e.path[:n])
	for i := range c.values {
		if c.values[i].Path == at {
			c.values[i].V.(map[string]string)[e.path[n]] = s
			return
		}
	}
	c.values = append(c.values, Value{k, at, e.line, map[string]string{e.path[n]: s}, e.path[:n]})
}

// complete looks for what must be given.
func (c *checker) complete() {
	type server struct {
		line            int
		command, silent bool
	}
	servers, order := map[string]*server{}, []string{}
	for _, v := range c.values {
		if !strings.HasPrefix(v.Key.Path, "mcp.servers.*.") {
			continue
		}
		name := dotted(v.seg[:3])
		if servers[name] == nil {
			servers[name], order = &server{line: v.Line}, append(order, name)
		}
		s := servers[name]
		switch v.Key.last() {
		case "command":
			s.command = s.command || strings.TrimSpace(v.V.(string)) != ""
		case "disabled":
			s.silent = v.V.(bool)
		}
	}
	for _, name := range order {
		if s := servers[name]; !s.command && !s.silent && !c.reported(name) {
			c.fault(s.line, name, "has no command", `write command = "PROGRAM" in it, or disabled = true`)
		}
	}
}

// reported tells whether something in a table is wrong already.
func (c *checker) reported(table string) bool {
	return slices.ContainsFunc(c.errs, func(e *Error) bool { return strings.HasPrefix(e.Key, table+".") })
}

// notASetting reports a name that the table does not know, with the nearest one it knows.
func (c *checker) notASetting(e entry) {
	for n, s := range e.path {
		names, lists, free := below(e.path[:n])
		name, entry := s, false
		if at := strings.LastIndexByte(s, '['); at > 0 && slices.Contains(names, s[:at]) {
			name, entry = s[:at], true
		}
		message, write := "is not a setting", ""
		switch known := slices.Contains(names, name); {
		case known && entry && !lists[name]:
			message, write = "is a list of tables", "write it once, ["+dotted(append(slices.Clone(e.path[:n]), name))+"]"
		case known && !entry && lists[name]:
			message, write = "is one table", "write it as an entry of a list, [["+dotted(e.path[:n+1])+"]]"
		case known || free:
			continue
		default:
			write = c.nearest(e.path[:n], s, names)
		}
		if at := dotted(e.path[:n+1]); !c.unknown[at] {
			c.unknown[at] = true
			c.fault(e.line, at, message, write)
		}
		return
	}
	if names, _, _ := below(e.path); e.head {
		return // a table whose settings follow, or are all left out
	} else if len(names) > 0 {
		c.fault(e.line, dotted(e.path), "is "+kind(e), fmt.Sprintf("write it as a table, [%s], with %s", dotted(e.path), strings.Join(names, ", ")))
		return
	}
	c.fault(e.line, dotted(e.path), "is not a setting", "leave it out")
}

// nearest says what was likely meant.
func (c *checker) nearest(table []string, name string, names []string) string {
	if best := nearest.Of(name, names); best != "" {
		return "write " + dotted(append(slices.Clone(table), best))
	}
	for _, k := range keys { // the right name in the wrong table
		if k.last() == name && !strings.Contains(k.Path, "*") && !strings.Contains(k.Path, "[]") {
			return "write " + k.Path
		}
	}
	switch {
	case len(names) == 0:
		return "leave it out"
	case len(table) == 0:
		return "the tables are " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("the settings of %s are %s", dotted(table), strings.Join(names, ", "))
}

// judge says what is wrong with a value, and what to write.
func (k *Key) judge(v any) (wrong, write string) {
	write = "write " + k.asExample()
	bad := func() (string, string) { return "is " + kind(entry{v: v}), write }
	switch k.Type {
	case Text:
		s, ok := v.(string)
		if !ok {
			return bad()
		}
		if len(k.OneOf) > 0 && s != "" && !slices.Contains(k.OneOf, s) {
			return "is " + strconv.Quote(clip(s)), "want " + alternatives(k.OneOf)
		}
		if s == "" {
			return "", ""
		}
	case Whole:
		n, ok := v.(int64)
		if !ok {
			return bad()
		}
		if wrong, write := k.bounded(float64(n)); wrong != "" {
			return wrong, write
		}
	case Number:
		n, ok := v.(float64)
		if i, whole := v.(int64); whole {
			n, ok = float64(i), true
		}
		if !ok {
			return bad()
		}
		if wrong, write := k.bounded(n); wrong != "" {
			return wrong, write
		}
	case Switch:
		if _, ok := v.(bool); !ok {
			return bad()
		}
	case Texts:
		list, ok := v.([]any)
		if !ok {
			return bad()
		}
		for _, e := range list {
			s, ok := e.(string)
			if !ok {
				return "holds " + kind(entry{v: e}), write
			}
			if len(k.OneOf) > 0 && !slices.Contains(k.OneOf, s) {
				return "holds " + strconv.Quote(clip(s)), "want " + alternatives(k.OneOf)
			}
		}
	}
	if k.Check != nil {
		return k.Check(v)
	}
	return "", ""
}

// asExample is what a file could say.
func (k *Key) asExample() string { return k.last() + " = " + k.Example }

// kind says what a value is without showing it.
func kind(e entry) string {
	if e.head {
		return "a table"
	}
	switch v := e.v.(type) {
	case string:
		return "a text"
	case bool:
		return "true or false"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case []any:
		return "a list"
	case other:
		return v.what
	}
	return "something else"
}

func alternatives(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
