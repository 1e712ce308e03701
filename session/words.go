package session

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// CommandLine is a shell command as far as it can be read without running it.
type CommandLine struct {
	// Parts are the words of each command that the line may run, without quotes: around operators, in groups and in substitutions.
	// A redirection is left out with its target.
	Parts [][]string
	// Simple: the line is one command of plain words. It expands nothing but file names, and it has no assignment, redirection,
	// substitution or operator; so its first words say what is run.
	Simple bool
}

// ReadCommand reads a command line. What it cannot read for certain is never Simple.
func ReadCommand(line string) CommandLine {
	r := &commandReader{text: []rune(line), simple: true}
	r.read()
	simple := r.simple && len(r.parts) == 1
	if simple {
		first := r.parts[0][0]
		simple = !strings.Contains(first, "=") && !slices.Contains(leading, first)
	}
	return CommandLine{Parts: r.parts, Simple: simple}
}

// leading are words in front of a command that do not say what is run.
var leading = []string{"!", "{", "}", "if", "then", "else", "elif", "while", "until", "do", "time", "exec", "command", "builtin", "eval", "nohup",
	"sudo", "env", "nice", "[[", "case", "for", "select", "function", "coproc"}

// Program drops the assignments and words in front of a command that do not say what is run.
func Program(words []string) []string {
	for len(words) > 0 {
		name, _, assigned := strings.Cut(words[0], "=")
		if !slices.Contains(leading, words[0]) && (!assigned || strings.ContainsAny(name, "/-. ")) {
			break
		}
		words = words[1:]
	}
	return words
}

// begins tells whether a command's words begin with others. A program may be named with or without its path.
func begins(words, with []string) bool {
	if len(with) == 0 || len(words) < len(with) {
		return false
	}
	first := words[0] == with[0] || !strings.Contains(with[0], "/") && path.Base(words[0]) == with[0]
	return first && slices.Equal(words[1:len(with)], with[1:])
}

// mentions tells whether the words stand in a line one behind the other, whatever is quoted: as the command of another shell, behind
// xargs, or only as a text. Nothing here can tell these apart.
func mentions(line string, words []string) bool {
	flat := strings.FieldsFunc(strings.NewReplacer(`'`, "", `"`, "", `\`, "").Replace(line), func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("$`(){}<>;|&", r)
	})
	for i := range flat {
		if begins(flat[i:], words) {
			return true
		}
	}
	return false
}

// commandReader goes over a line once, rune by rune.
type commandReader struct {
	text   []rune
	at     int
	parts  [][]string
	part   []string
	word   []rune
	inWord bool
	drop   bool   // the next word is the target of a redirection
	nest   []rune // closing runes of the double quotes and substitutions around
	simple bool
}

func (r *commandReader) read() {
	for r.at < len(r.text) {
		c := r.text[r.at]
		r.at++
		if len(r.nest) > 0 && r.nest[len(r.nest)-1] == '"' {
			r.quoted(c)
		} else {
			r.bare(c)
		}
	}
	r.endPart()
	r.simple = r.simple && len(r.nest) == 0
}

// bare reads outside of double quotes.
func (r *commandReader) bare(c rune) {
	switch c {
	case ' ', '\t':
		r.endWord()
	case '\'':
		r.single(false)
	case '"':
		r.nest, r.inWord = append(r.nest, '"'), true
	case '\\':
		r.simple = false
		r.escaped()
	case '$':
		r.dollar()
	case '`':
		r.backtick()
	case '<', '>':
		r.simple = false
		if r.inWord && strings.Trim(string(r.word), "0123456789") == "" {
			r.word, r.inWord = nil, false // the number of a descriptor
		}
		r.endWord()
		for r.at < len(r.text) && strings.ContainsRune("<>&|-", r.text[r.at]) {
			r.at++
		}
		r.drop = true
	case ';', '&', '|', '\n', '(', ')':
		r.simple = false
		r.endPart()
		if c == ')' && len(r.nest) > 0 && r.nest[len(r.nest)-1] == ')' {
			r.nest = r.nest[:len(r.nest)-1]
		}
	case '#':
		if r.inWord {
			r.add(c)
			return
		}
		r.simple = false
		for r.at < len(r.text) && r.text[r.at] != '\n' {
			r.at++
		}
	default:
		r.add(c)
	}
}

// quoted reads inside double quotes.
func (r *commandReader) quoted(c rune) {
	switch c {
	case '"':
		r.nest = r.nest[:len(r.nest)-1]
	case '\\':
		r.simple = false
		r.escaped()
	case '$':
		r.simple = false
		if r.next() == '(' {
			r.dollar()
		} else {
			r.add(c)
		}
	case '`':
		r.backtick()
	default:
		r.add(c)
	}
}

func (r *commandReader) dollar() {
	r.simple = false
	switch r.next() {
	case '(':
		r.at++
		r.endPart()
		r.nest = append(r.nest, ')')
	case '\'':
		r.at++
		r.single(true)
	default:
		r.add('$')
	}
}

func (r *commandReader) backtick() {
	r.simple = false
	r.endPart()
	if i := slices.Index(r.nest, '`'); i >= 0 {
		r.nest = r.nest[:i]
	} else {
		r.nest = append(r.nest, '`')
	}
}

// single reads up to the closing single quote.
func (r *commandReader) single(escapes bool) {
	r.inWord = true
	for r.at < len(r.text) {
		c := r.text[r.at]
		r.at++
		if c == '\'' {
			return
		}
		if escapes && c == '\\' {
			r.escaped()
			continue
		}
		r.add(c)
	}
	r.simple = false // it is not closed
}

func (r *commandReader) escaped() {
	if r.at >= len(r.text) {
		return
	}
	if c := r.text[r.at]; c != '\n' {
		r.add(c)
	}
	r.at++
}

func (r *commandReader) next() rune {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *commandReader) add(c rune) {
	if unicode.IsControl(c) {
		r.simple = false
	}
	r.word, r.inWord = append(r.word, c), true
}

func (r *commandReader) endWord() {
	if r.inWord && !r.drop {
		r.part = append(r.part, string(r.word))
	}
	r.drop = r.drop && !r.inWord
	r.word, r.inWord = nil, false
}

func (r *commandReader) endPart() {
	r.endWord()
	r.drop = false
	if len(r.part) > 0 {
		r.parts = append(r.parts, r.part)
	}
	r.part = nil
}

// DirectoryMissing says what work waits for whose directory is gone.
func DirectoryMissing(cwd string) string {
	return Diagnostics[CodeDirectoryMissing].Sentence + " (" + cwd + ") Put it back and open the session again, or begin a new session in another directory."
}
