package session

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// CommandFacts is what can be read out of a command line without running it: the commands in it, wherever they stand, and what stands in
// the way of reading it. It is found by a parser alone; nothing of the line is ever expanded or looked up.
type CommandFacts struct {
	Parts  []CommandPart
	Writes []CommandWord // targets of redirections that write
	Inputs []CommandWord // of those that read
	// Plain: nothing but commands with plain words, joined by && || | ; or newlines.
	Plain bool
	// Hidden says in a word why some of what would run is not in Parts; "" when all of it is.
	Hidden string
	// Unread: the line as a whole cannot be parsed.
	Unread bool
}

// CommandPart is one command of a line.
type CommandPart struct {
	Words []CommandWord
	Inner bool // it is run by another part: behind a wrapper, or in a text that one of them runs
}

// CommandWord is one word of a command.
type CommandWord struct {
	Text   string // without quotes; of a word that is not static only what stands there literally
	Static bool   // the shell hands on exactly Text
}

// Static are the words of a part, nil unless all of them are static.
func (p CommandPart) Static() []string {
	out := make([]string, 0, len(p.Words))
	for _, w := range p.Words {
		if !w.Static {
			return nil
		}
		out = append(out, w.Text)
	}
	return out
}

// String shows a part as it is named in an explanation.
func (p CommandPart) String() string {
	var out []string
	for _, w := range p.Words {
		if out = append(out, w.Text); !w.Static {
			out[len(out)-1] += "…"
		}
	}
	return strings.Join(out, " ")
}

// maxNested bounds texts in texts: a command that runs a command that runs a command.
const maxNested = 8

// What is longer or holds more commands is not read to its end.
const (
	maxLine  = 16 << 10
	maxParts = 200
)

// ReadFacts reads a command line.
func ReadFacts(line string) CommandFacts {
	r := &factReader{facts: CommandFacts{Plain: true}}
	r.text(line, false)
	r.facts.Plain = r.facts.Plain && r.facts.Hidden == "" && !r.facts.Unread
	return r.facts
}

// factReader collects facts over a line and the texts in it that are run as well.
type factReader struct {
	facts CommandFacts
	depth int
}

// hide notes why something cannot be read; the first reason is kept.
func (r *factReader) hide(why string) {
	if r.facts.Hidden == "" {
		r.facts.Hidden = why
	}
}

// text reads a line, or a text that a command of it runs.
func (r *factReader) text(line string, inner bool) {
	if r.depth++; r.depth > 2*maxNested {
		r.hide("commands too deep in commands")
		return
	}
	defer func() { r.depth-- }()
	if len(line) > maxLine {
		r.facts.Unread = true
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil || strings.ContainsAny(line, "\x00\r") { // shells disagree on these
		r.facts.Unread = true
	}
	if file == nil {
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		r.node(n, inner)
		return true
	})
}

func (r *factReader) node(n syntax.Node, inner bool) {
	switch n := n.(type) {
	case *syntax.Stmt:
		r.stmt(n, inner)
	case *syntax.BinaryCmd:
		r.facts.Plain = r.facts.Plain && (n.Op == syntax.AndStmt || n.Op == syntax.OrStmt || n.Op == syntax.Pipe)
	case *syntax.FuncDecl:
		r.facts.Plain = false
		r.part(CommandPart{Words: []CommandWord{{Text: "function", Static: true}, {Text: name(n.Name), Static: true}}, Inner: inner}, nil)
	case *syntax.DeclClause:
		r.facts.Plain = false
		r.decl(n, inner)
	case *syntax.Assign:
		r.facts.Plain = false
		if n.Name != nil && commandVariables[n.Name.Value] {
			r.hide("the variable " + n.Name.Value + " decides what runs")
		}
	case *syntax.Redirect:
		r.redirect(n)
	case nil, *syntax.File, *syntax.CallExpr, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted:
	default:
		r.facts.Plain = false // substitutions, loops, conditions, groups and all that is not known here
	}
}

func name(l *syntax.Lit) string {
	if l == nil {
		return ""
	}
	return l.Value
}

// commandVariables decide what is run by commands that do not name it.
var commandVariables = map[string]bool{"PATH": true, "IFS": true, "ENV": true, "BASH_ENV": true, "SHELLOPTS": true, "BASHOPTS": true, "PS4": true,
	"PROMPT_COMMAND": true, "LD_PRELOAD": true, "LD_LIBRARY_PATH": true, "LD_AUDIT": true, "GIT_SSH": true, "GIT_SSH_COMMAND": true, "GIT_EDITOR": true,
	"GIT_PAGER": true, "GIT_EXTERNAL_DIFF": true, "GIT_CONFIG_COUNT": true, "GIT_CONFIG_GLOBAL": true, "GIT_EXEC_PATH": true, "GIT_ASKPASS": true,
	"GIT_PROXY_COMMAND": true, "EDITOR": true, "VISUAL": true, "PAGER": true, "SHELL": true, "NODE_OPTIONS": true, "PYTHONSTARTUP": true, "PERL5OPT": true,
	"RUBYOPT": true, "BROWSER": true, "LESSOPEN": true, "MAKEFLAGS": true, "GOFLAGS": true}

// decl reads export, declare and their like as commands of their own name.
func (r *factReader) decl(n *syntax.DeclClause, inner bool) {
	p := CommandPart{Words: []CommandWord{{Text: name(n.Variant), Static: true}}, Inner: inner}
	for _, a := range n.Args {
		w := CommandWord{}
		if a.Value != nil {
			w = word(a.Value)
		}
		if a.Name != nil {
			w.Text, w.Static = a.Name.Value+"="+w.Text, w.Static || a.Value == nil
		}
		p.Words = append(p.Words, w)
	}
	r.facts.Parts = append(r.facts.Parts, p)
}

// stmt reads one command with its redirections.
func (r *factReader) stmt(s *syntax.Stmt, inner bool) {
	if s.Background || s.Coprocess || s.Disown || s.Negated {
		r.facts.Plain = false
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	p := CommandPart{Inner: inner}
	for _, a := range call.Args {
		p.Words = append(p.Words, word(a))
	}
	r.part(p, s.Redirs)
}

// redirect sorts a redirection by what it does.
func (r *factReader) redirect(n *syntax.Redirect) {
	if n.Word == nil {
		return
	}
	w := word(n.Word)
	switch n.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		r.facts.Plain = false
	case syntax.RdrIn:
		r.facts.Inputs = append(r.facts.Inputs, w)
	case syntax.DplIn, syntax.DplOut:
		if !w.Static || strings.Trim(w.Text, "0123456789-") != "" {
			r.facts.Writes = append(r.facts.Writes, w)
		}
	default:
		r.facts.Writes = append(r.facts.Writes, w)
	}
	if n.N != nil && strings.Trim(n.N.Value, "0123456789") != "" {
		r.facts.Plain = false // the descriptor goes into a variable
	}
}

// word reads one word.
func word(w *syntax.Word) CommandWord {
	out := CommandWord{Static: true}
	var b strings.Builder
	for i, part := range w.Parts {
		if text, static := wordPart(part, i == 0); static {
			b.WriteString(text)
		} else {
			b.WriteString(text)
			out.Static = false
		}
	}
	out.Text = b.String()
	return out
}

func wordPart(part syntax.WordPart, first bool) (text string, static bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		return bare(p.Value, first)
	case *syntax.SglQuoted:
		return p.Value, !p.Dollar
	case *syntax.DblQuoted:
		static = !p.Dollar
		for _, q := range p.Parts {
			l, ok := q.(*syntax.Lit)
			if !ok {
				static = false
				continue
			}
			text += unescape(l.Value, "$`\"\\")
		}
		return text, static
	}
	return "", false
}

// bare reads what is not quoted: a backslash takes the meaning of the next character away, and some characters are patterns.
func bare(s string, first bool) (string, bool) {
	static := s == "{}" || s == "[" || s == "]" || !patterned(s, first)
	return unescape(s, ""), static
}

// patterned tells whether the shell would expand names in a word.
func patterned(s string, first bool) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '*', '?', '[', '{', '}', '!', '^':
			if s[i] != '!' && s[i] != '^' || i == 0 && len(s) > 1 {
				return true
			}
		case '~':
			if first && i == 0 || i > 0 && (s[i-1] == ':' || s[i-1] == '=') {
				return true
			}
		}
	}
	return false
}

// unescape takes out the backslashes in front of the given characters, or of any.
func unescape(s, only string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch {
		case s[i] == '\n':
		case only == "" || strings.IndexByte(only, s[i]) >= 0:
			b.WriteByte(s[i])
		default:
			b.WriteString(s[i-1 : i+1])
		}
	}
	return b.String()
}
