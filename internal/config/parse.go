package config

import (
	"errors"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// entry is one value, or the head of a table, as it stands in a file.
type entry struct {
	path []string
	line int
	head bool // a table's name alone
	v    any  // string, bool, int64, float64, []any, or other
}

// other is a value of a type that no setting has.
type other struct{ what string }

// reader walks through the syntax of a file that is known to be valid TOML.
type reader struct {
	p     unstable.Parser
	ends  []int          // offsets of the line ends
	lists map[string]int // how many tables of a list there were
	out   []entry
}

// parse returns what a file holds, in its order; or the one place where it is not TOML.
func parse(path string, b []byte) ([]entry, Errors) {
	var all map[string]any
	if err := toml.Unmarshal(b, &all); err != nil {
		return nil, Errors{syntax(path, err)}
	}
	r := &reader{lists: map[string]int{}}
	for i, c := range b {
		if c == '\n' {
			r.ends = append(r.ends, i)
		}
	}
	r.p.Reset(b)
	var table []string
	for r.p.NextExpression() {
		n := r.p.Expression()
		switch n.Kind {
		case unstable.Table, unstable.ArrayTable:
			var line int
			table, line = r.name(n)
			table = r.numbered(table, n.Kind == unstable.ArrayTable)
			r.out = append(r.out, entry{path: table, line: line, head: true})
		case unstable.KeyValue:
			r.pair(table, n)
		}
	}
	if err := r.p.Error(); err != nil {
		return nil, Errors{syntax(path, err)}
	}
	return r.out, nil
}

func syntax(path string, err error) *Error {
	e := &Error{Path: path, Message: "it cannot be read as TOML", Write: "write NAME = VALUE under [TABLE], and texts in double quotes"}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		e.Line, _ = bad.Position()
		e.Message = "this is not TOML: " + clip(strings.TrimPrefix(bad.Error(), "toml: "))
	}
	return e
}

// name is a dotted key and its line.
func (r *reader) name(n *unstable.Node) (path []string, line int) {
	it := n.Key()
	for it.Next() {
		if k := it.Node(); line == 0 {
			line = r.line(int(k.Raw.Offset))
		}
		path = append(path, string(it.Node().Data))
	}
	return path, line
}

func (r *reader) line(offset int) int { return sort.SearchInts(r.ends, offset) + 1 }

// numbered writes the entry of a list of tables that a head opens, or lies in.
func (r *reader) numbered(path []string, opens bool) []string {
	out := slices.Clone(path)
	for i := range out {
		name := strings.Join(out[:i+1], "\x00")
		if opens && i == len(out)-1 {
			r.lists[name]++
		}
		if n := r.lists[name]; n > 0 {
			out[i] += "[" + strconv.Itoa(n-1) + "]"
		}
	}
	return out
}

// pair takes one NAME = VALUE; tables within the value are taken apart.
func (r *reader) pair(table []string, n *unstable.Node) {
	name, line := r.name(n)
	r.value(append(slices.Clone(table), name...), line, n.Value())
}

func (r *reader) value(path []string, line int, n *unstable.Node) {
	switch n.Kind {
	case unstable.InlineTable:
		r.out = append(r.out, entry{path: path, line: line, head: true})
		it := n.Children()
		for it.Next() {
			r.pair(path, it.Node())
		}
	case unstable.Array:
		if c := n.Child(); c != nil && c.Kind == unstable.InlineTable {
			it := n.Children()
			for i := 0; it.Next(); i++ {
				within := slices.Clone(path)
				within[len(within)-1] += "[" + strconv.Itoa(i) + "]"
				r.value(within, line, it.Node())
			}
			return
		}
		r.out = append(r.out, entry{path: path, line: line, v: scalar(n)})
	default:
		r.out = append(r.out, entry{path: path, line: line, v: scalar(n)})
	}
}

func scalar(n *unstable.Node) any {
	digits := strings.ReplaceAll(string(n.Data), "_", "")
	switch n.Kind {
	case unstable.String:
		return string(n.Data)
	case unstable.Bool:
		return string(n.Data) == "true"
	case unstable.Integer:
		if v, err := strconv.ParseInt(digits, 0, 64); err == nil {
			return v
		}
	case unstable.Float:
		if v, err := strconv.ParseFloat(digits, 64); err == nil {
			return v
		}
	case unstable.Array:
		list := []any{}
		it := n.Children()
		for it.Next() {
			list = append(list, scalar(it.Node()))
		}
		return list
	case unstable.InlineTable:
		return other{"a table"}
	}
	return other{"a date or time"}
}

// dotted writes a path as a file would.
func dotted(path []string) string {
	out := make([]string, len(path))
	for i, s := range path {
		if out[i] = s; !bare(s) {
			out[i] = strconv.Quote(s)
		}
	}
	return strings.Join(out, ".")
}

func bare(s string) bool {
	return s != "" && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789_-[]") == ""
}
