package config

import "strings"

// Heading of the table of settings in docs/configuration.md.
var Heading = []string{"Key", "Type", "Unit", "Default", "Since", "Overruled by", "A project", "Effect", "Counts from"}

// Rows is that table.
func Rows() (rows [][]string) {
	for i := range keys {
		k := &keys[i]
		kind := string(k.Type)
		if len(k.OneOf) > 0 {
			kind += ": " + alternatives(k.OneOf)
		}
		if k.Max > 0 {
			kind += ", at most " + plain(k.Max)
		}
		var over []string
		if k.Env != "" {
			over = append(over, "`"+k.Env+"`")
		}
		if k.Flag != "" {
			over = append(over, "`"+k.Flag+"`")
		}
		rows = append(rows, []string{"`" + k.shown() + "`", kind, k.Unit, k.Default, k.Since, strings.Join(over, ", then "), string(k.Project), k.Effect + ".", k.Counts})
	}
	return rows
}

// shown writes a name that the file chooses as such.
func (k *Key) shown() string { return strings.ReplaceAll(k.Path, "*", "NAME") }

// Markdown is the table as the document holds it.
func Markdown() string {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	line(Heading)
	b.WriteString(strings.Repeat("|---", len(Heading)) + "|\n")
	for _, r := range Rows() {
		line(r)
	}
	return b.String()
}
