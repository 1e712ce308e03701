package session

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// part takes in one command, and what it runs in turn as far as its words say so. A command that runs others in a way that is not known
// here hides them.
func (r *factReader) part(p CommandPart, redirs []*syntax.Redirect) {
	if r.depth++; len(r.facts.Parts) >= maxParts || r.depth > 2*maxNested {
		r.hide("too many commands, or too deep in each other")
	}
	defer func() { r.depth-- }()
	if r.depth > 2*maxNested || len(r.facts.Parts) >= maxParts {
		return
	}
	r.facts.Parts = append(r.facts.Parts, p)
	if len(p.Words) == 0 {
		return
	}
	if !p.Words[0].Static {
		r.hide("the program's name is not plain")
		return
	}
	program, args := path.Base(p.Words[0].Text), p.Words[1:]
	switch {
	case shells[program]:
		r.shell(args, redirs)
	case program == "eval":
		r.joined(args, "eval")
	case program == "trap" && len(args) > 1:
		r.joined(args[:1], "trap")
	case program == "." || program == "source":
		r.sourced(args, redirs)
	case program == "find":
		r.find(args)
	case program == "git":
		r.git(args)
	case runners[program] != nil:
		r.behind(program, args, *runners[program])
	case program == "alias" || program == "hash" || program == "enable" || program == "complete":
		r.hide(program + " gives names another meaning")
	case hiders[program]:
		r.hide(program + " runs other programs")
	default:
		r.coded(program, args)
	}
}

var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "ash": true, "zsh": true, "ksh": true, "mksh": true, "fish": true, "rbash": true}

// hiders run what their arguments, their input or a file say, in a way of their own.
var hiders = map[string]bool{"parallel": true, "ssh": true, "su": true, "runuser": true, "script": true, "expect": true, "screen": true, "tmux": true,
	"watch": true, "entr": true, "busybox": true, "toybox": true, "chroot": true, "nsenter": true, "unshare": true, "bwrap": true, "firejail": true, "docker": true,
	"podman": true, "kubectl": true, "flock": true, "strace": true, "ltrace": true, "gdb": true, "vim": true, "vi": true, "ex": true, "ed": true, "emacs": true,
	"less": true, "more": true, "man": true, "at": true, "batch": true, "crontab": true, "systemd-run": true, "mapfile": true, "readarray": true, "bind": true,
	"coproc": true, "socat": true, "nc": true, "ncat": true, "m4": true, "rsync": true, "tar": true, "zip": true, "scp": true, "sftp": true, "gawk": true,
	"awk": true, "mawk": true, "nawk": true, "dc": true, "bc": true, "sqlite3": true, "psql": true, "mysql": true, "openssl": true, "hg": true, "svn": true, "sed": true, "gsed": true}

// runner is how a program takes the command that it runs: behind its options and some operands.
type runner struct {
	valued   string   // short options with a value of their own
	long     []string // long options whose value is the next word
	operands int      // words in front of the command
	assigns  bool     // assignments may stand in front of it
	stdin    bool     // more words of the command come from the input
	strange  string   // short options that turn it into something else
}

var runners = map[string]*runner{
	"command": {}, "builtin": {}, "exec": {valued: "a"}, "nohup": {}, "setsid": {}, "time": {valued: "fo", long: []string{"format", "output"}},
	"env":     {valued: "uC", long: []string{"unset", "chdir"}, assigns: true, strange: "S"},
	"nice":    {valued: "n", long: []string{"adjustment"}},
	"ionice":  {valued: "cnpPu", long: []string{"class", "classdata"}, strange: "pPu"},
	"chrt":    {valued: "TPD", operands: 1, strange: "pm"},
	"taskset": {operands: 1, strange: "p"},
	"timeout": {valued: "ks", long: []string{"kill-after", "signal"}, operands: 1},
	"stdbuf":  {valued: "ioe", long: []string{"input", "output", "error"}},
	"sudo": {valued: "ACDghpRrTtUu", assigns: true, strange: "els",
		long: []string{"user", "group", "host", "prompt", "chdir", "chroot", "role", "type", "other-user", "close-from", "command-timeout"}},
	"doas":  {valued: "aCu", strange: "sC"},
	"xargs": {valued: "aEdIiLlnPs", long: []string{"arg-file", "delimiter", "eof", "replace", "max-lines", "max-args", "max-procs", "max-chars", "process-slot-var"}, stdin: true},
}

// behind reads the command behind a program that runs it.
func (r *factReader) behind(program string, args []CommandWord, how runner) {
	left := how.operands
	for len(args) > 0 {
		w := args[0]
		if !w.Static {
			r.hide("what " + program + " runs is not plain")
			return
		}
		opt := strings.HasPrefix(w.Text, "-") && w.Text != "-"
		switch name, _, inline := strings.Cut(strings.TrimPrefix(w.Text, "--"), "="); {
		case w.Text == "--":
		case strings.HasPrefix(w.Text, "--"):
			if program == "env" && strings.HasPrefix("split-string", name) {
				r.hide("env splits a text into a command")
				return
			}
			if !inline && has(how.long, name) && len(args) > 1 {
				args = args[1:]
			}
		case opt:
			if strings.ContainsAny(w.Text, how.strange) {
				r.hide(program + " " + w.Text + " runs something else")
				return
			}
			if last := w.Text[len(w.Text)-1]; strings.IndexByte(how.valued, last) >= 0 && len(args) > 1 {
				args = args[1:]
			}
		case how.assigns && strings.Contains(w.Text, "="):
			if n, _, _ := strings.Cut(w.Text, "="); commandVariables[n] {
				r.hide("the variable " + n + " decides what runs")
			}
		case left > 0:
			left--
		default:
			if how.stdin {
				r.hide("more words come from the input of " + program)
			}
			r.part(CommandPart{Words: args, Inner: true}, nil)
			return
		}
		args = args[1:]
	}
	if how.stdin {
		r.hide("the words come from the input of " + program)
	}
}

// has tells whether a list has a name, or one that it shortens.
func has(list []string, name string) bool {
	for _, l := range list {
		if name != "" && strings.HasPrefix(l, name) {
			return true
		}
	}
	return false
}

// shell reads what a shell is told to run: a text, a here-document, or a file, which is looked at elsewhere.
func (r *factReader) shell(args []CommandWord, redirs []*syntax.Redirect) {
	for i, w := range args {
		switch {
		case !w.Static:
			r.hide("what the shell runs is not plain")
			return
		case strings.HasPrefix(w.Text, "--"), w.Text == "-", strings.HasPrefix(w.Text, "+"):
			if w.Text == "--rcfile" || w.Text == "--init-file" || w.Text == "--init-command" {
				r.hide("the shell reads another file first")
			}
		case strings.HasPrefix(w.Text, "-") && strings.Contains(w.Text, "c"):
			rest := args[i+1:]
			for len(rest) > 0 && rest[0].Static && strings.HasPrefix(rest[0].Text, "-") {
				rest = rest[1:]
			}
			if len(rest) == 0 {
				return
			}
			r.joined(rest[:1], "the shell")
			return
		case strings.HasPrefix(w.Text, "-"):
			if strings.HasSuffix(w.Text, "o") || strings.HasSuffix(w.Text, "O") || strings.Contains(w.Text, "s") {
				r.hide("the shell reads its input or has other options")
			}
		default:
			if strings.HasPrefix(w.Text, "/dev/") || strings.HasPrefix(w.Text, "/proc/") {
				r.hide("the shell reads its input")
			}
			return // a file
		}
	}
	r.input(redirs)
}

// input reads the commands that a shell gets on its standard input.
func (r *factReader) input(redirs []*syntax.Redirect) {
	for _, d := range redirs {
		var text string
		ok := false
		switch {
		case d.Op == syntax.WordHdoc && d.Word != nil:
			w := word(d.Word)
			text, ok = w.Text, w.Static
		case d.Hdoc != nil:
			text, ok = literal(d.Hdoc)
		}
		if ok {
			r.text(text, true)
			return
		}
	}
	r.hide("the shell reads its input")
}

// literal is the text of a here-document in which nothing is expanded and no backslash has a meaning.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		l, ok := part.(*syntax.Lit)
		if !ok || strings.Contains(l.Value, `\`) {
			return "", false
		}
		b.WriteString(l.Value)
	}
	return b.String(), true
}

// joined reads words that are run as one text.
func (r *factReader) joined(words []CommandWord, by string) {
	var texts []string
	for _, w := range words {
		if !w.Static {
			r.hide("what " + by + " runs is not plain")
			return
		}
		texts = append(texts, w.Text)
	}
	r.text(strings.Join(texts, " "), true)
}

func (r *factReader) sourced(args []CommandWord, redirs []*syntax.Redirect) {
	if len(args) == 0 || !args[0].Static || strings.HasPrefix(args[0].Text, "/dev/") || strings.HasPrefix(args[0].Text, "/proc/") || len(redirs) > 0 {
		r.hide("what is read in is not plain")
	}
}

// find reads the commands behind -exec and its like.
func (r *factReader) find(args []CommandWord) {
	for i, w := range args {
		switch {
		case !w.Static && strings.HasPrefix(w.Text, "-"), w.Text == "" && !w.Static:
			r.hide("what find does is not plain")
			return
		case len(r.facts.Parts) >= maxParts || r.depth >= 2*maxNested:
			r.hide("too many commands, or too deep in each other")
			return
		case w.Text == "-exec" || w.Text == "-execdir" || w.Text == "-ok" || w.Text == "-okdir":
			end := i + 1
			for end < len(args) && args[end].Text != ";" && args[end].Text != "+" {
				end++
			}
			r.part(CommandPart{Words: args[i+1 : end], Inner: true}, nil)
		}
	}
}

// git reads the subcommand behind options. Some options make git run other programs.
func (r *factReader) git(args []CommandWord) {
	rest := args
	for len(rest) > 0 && strings.HasPrefix(rest[0].Text, "-") {
		o := rest[0].Text
		switch {
		case !rest[0].Static, o == "-c", strings.HasPrefix(o, "--config-env"), strings.HasPrefix(o, "--exec-path="):
			r.hide("options of git decide what it runs")
		}
		if (o == "-C" || o == "-c" || o == "--git-dir" || o == "--work-tree" || o == "--namespace" || o == "--config-env") && len(rest) > 1 {
			rest = rest[1:]
		}
		rest = rest[1:]
	}
	if len(rest) > 0 && len(rest) < len(args) {
		r.facts.Parts = append(r.facts.Parts, CommandPart{Words: append([]CommandWord{{Text: "git", Static: true}}, rest...), Inner: true})
	}
	if len(rest) > 1 {
		switch sub := rest[0].Text; sub {
		case "bisect", "rebase", "filter-branch", "submodule", "difftool", "mergetool", "config":
			r.hide("git " + sub + " can run other programs")
		}
	}
}

// coded hides what a program in another language does, when the text of it stands on the line or comes from the input.
func (r *factReader) coded(program string, args []CommandWord) {
	program = strings.TrimRight(program, "0123456789.")
	flags, ok := codeFlags[program]
	if !ok {
		return
	}
	for _, w := range args {
		if !strings.HasPrefix(w.Text, "-") && w.Static {
			return // a file, or a subcommand
		}
		if !w.Static || w.Text == "-" || strings.ContainsAny(strings.TrimLeft(w.Text, "-"), flags) {
			r.hide(program + " runs a program that stands on the line")
			return
		}
	}
	r.hide(program + " reads its program from the input")
}

// codeFlags are the short options behind which programs of other languages stand.
var codeFlags = map[string]string{"python": "cm", "pypy": "cm", "perl": "eEnpMm", "ruby": "enpr", "node": "epr", "nodejs": "epr", "deno": "e", "bun": "e",
	"php": "rBRE", "lua": "el", "luajit": "el", "Rscript": "e", "R": "e", "osascript": "e", "tclsh": "c", "guile": "c", "ghc": "e", "julia": "eE"}
