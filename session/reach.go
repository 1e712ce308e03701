package session

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Reach is how far a command goes, as far as its words tell.
type Reach string

const (
	ReachNone    Reach = ""        // it is no command
	ReachReads   Reach = "reads"   // every part is a known reader of what lies inside
	ReachWorks   Reach = "works"   // it may do whatever confinement leaves open
	ReachNetwork Reach = "network" // it needs the network by its nature
	ReachOutside Reach = "outside" // it says itself that it reaches outside
	ReachUnread  Reach = "unread"  // it cannot be parsed
)

// Reaches lists every reach.
var Reaches = []Reach{ReachNone, ReachReads, ReachWorks, ReachNetwork, ReachOutside, ReachUnread}

// Scope is what a command's words are held against. The functions look at names only, never at what files hold.
type Scope struct {
	Cwd    string
	Inside []string                 // directories that may be changed, links resolved
	Real   func(path string) string // an absolute path with its links resolved
	Secret func(path string) bool   // named like something that holds keys
	// Obeyed tells whether programs run or obey a file by itself; nil for none.
	Obeyed func(path string) bool
	// Expand lists the files that a pattern of the shell names right now, by absolute path; nil for none.
	Expand func(pattern string) []string
}

// Reach says how far a command goes, and what in it decided.
func (f CommandFacts) Reach(s Scope) (Reach, string) {
	if f.Unread {
		return ReachUnread, "it cannot be parsed"
	}
	if why := f.outside(&s); why != "" {
		return ReachOutside, why
	}
	for _, p := range f.Parts {
		if needsNetwork(p.Words) {
			return ReachNetwork, p.String()
		}
	}
	if f.Hidden != "" {
		return ReachWorks, f.Hidden
	}
	if len(f.Parts) == 0 || !f.Plain {
		return ReachWorks, "it is more than commands with plain words"
	}
	for _, p := range f.Parts {
		if p.Inner || !s.reads(p) {
			return ReachWorks, p.String()
		}
	}
	for _, w := range f.Writes {
		if !nowhere(w) {
			return ReachWorks, "> " + w.Text
		}
	}
	for _, w := range f.Inputs {
		if !w.Static || !s.inside(w.Text) {
			return ReachWorks, "< " + w.Text
		}
	}
	return ReachReads, ""
}

// nowhere tells whether a redirection writes no file.
func nowhere(w CommandWord) bool {
	return w.Static && slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr"}, w.Text)
}

// outside finds what a command says itself of leaving its place. It follows changes of folder.
func (f CommandFacts) outside(s *Scope) string {
	for _, p := range f.Parts {
		if why := s.leaves(p); why != "" {
			return why
		}
	}
	for _, w := range f.Writes {
		if w.Static && !nowhere(w) && s.forbids(w.Text) {
			return "> " + w.Text
		}
	}
	for _, w := range f.Inputs {
		if s.Secret(w.Text) || s.expandsToSecret(w) {
			return "< " + w.Text + " (it may hold secrets)"
		}
	}
	return ""
}

// expandsToSecret tells whether the shell may make a name of a word that holds keys.
func (s *Scope) expandsToSecret(w CommandWord) bool {
	return !w.Static && s.Expand != nil && strings.ContainsAny(w.Text, "*?[") && slices.ContainsFunc(s.Expand(s.absolute(w.Text)), s.Secret)
}

// services talk to something that is not confined with them, or ask for more rights.
var services = []string{"sudo", "doas", "su", "pkexec", "runuser", "docker", "podman", "nerdctl", "lxc", "systemctl", "systemd-run", "service", "loginctl",
	"crontab", "at", "batch", "dbus-send", "busctl", "gdbus", "tmux", "screen", "xdg-open", "open", "osascript", "launchctl", "mount", "umount", "insmod",
	"modprobe", "reboot", "shutdown", "poweroff", "halt", "chroot", "nsenter", "unshare", "bwrap", "iptables", "nft", "useradd", "usermod", "passwd", "chsh",
	"killall", "pkill", "kill", "skill", "renice", "wall", "write", "mail", "sendmail", "gpg", "secret-tool", "security", "pass", "op"}

// writers change the files that their words name.
var writers = []string{"rm", "mv", "cp", "tee", "touch", "mkdir", "rmdir", "ln", "install", "chmod", "chown", "chgrp", "truncate", "dd", "shred", "unlink", "rsync",
	"mkfifo", "mknod", "split", "csplit", "patch", "unzip", "tar", "sponge", "setfacl", "mktemp"}

// leaves says what part of a command reaches outside.
func (s *Scope) leaves(p CommandPart) string {
	if len(p.Words) == 0 || !p.Words[0].Static {
		return ""
	}
	program := path.Base(p.Words[0].Text)
	switch {
	case slices.Contains(services, program):
		return p.String()
	case program == "cd" || program == "pushd":
		return s.enters(p)
	}
	write := slices.Contains(writers, program)
	for _, w := range p.Words[1:] {
		if s.expandsToSecret(w) {
			return p.String() + " (" + w.Text + " names a file that may hold secrets)"
		}
		for _, name := range names(w.Text) {
			if s.Secret(name) {
				return p.String() + " (" + name + " may hold secrets)"
			}
			if write && w.Static && s.forbids(name) {
				return p.String()
			}
		}
	}
	return ""
}

// enters follows a change of folder.
func (s *Scope) enters(p CommandPart) string {
	for _, w := range p.Words[1:] {
		switch {
		case !w.Static:
			return p.String() // from there on nothing can be told
		case strings.HasPrefix(w.Text, "-") && w.Text != "-":
		case w.Text == "-" || !s.inside(w.Text):
			return p.String()
		default:
			s.Cwd = s.real(w.Text)
			return ""
		}
	}
	return p.String() // home
}

// names are the paths that a word may name: all of it, or what an option has as its value.
func names(w string) []string {
	if !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") {
		return []string{w}
	}
	out := []string{}
	if _, value, ok := strings.Cut(w, "="); ok {
		out = append(out, value)
	}
	if i := strings.IndexAny(w, "/."); i > 0 {
		out = append(out, w[i:])
	}
	return out
}

// Touched are the files that programs name which change what they name, links resolved. It follows changes of folder.
func (f CommandFacts) Touched(s Scope) (out []string) {
	for _, p := range f.Parts {
		if len(p.Words) == 0 || !p.Words[0].Static {
			continue
		}
		switch program := path.Base(p.Words[0].Text); {
		case program == "cd" || program == "pushd":
			_ = s.enters(p) // where it cannot be followed, the words are taken from here
		case slices.Contains(writers, program):
			for _, w := range p.Words[1:] {
				for _, name := range names(w.Text) {
					if name != "" && w.Static && !strings.HasPrefix(name, "-") {
						out = append(out, s.real(name))
					}
				}
			}
		}
	}
	return out
}

func (s *Scope) real(name string) string { return s.Real(s.absolute(name)) }

// absolute is not cleaned: a link may come before "..".
func (s *Scope) absolute(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return s.Cwd + string(filepath.Separator) + name
}

// inside tells whether a name lies in what may be changed.
func (s *Scope) inside(name string) bool {
	real := s.real(name)
	return slices.ContainsFunc(s.Inside, func(dir string) bool { return within(dir, real) })
}

// forbids tells whether writing a name asks: it lies outside, it is git's own, or programs obey it.
func (s *Scope) forbids(name string) bool {
	if name == "" || strings.HasPrefix(name, "-") {
		return false
	}
	if !s.inside(name) || s.Obeyed != nil && s.Obeyed(name) {
		return true
	}
	return slices.ContainsFunc(strings.Split(name, "/"), func(n string) bool { return strings.EqualFold(n, ".git") })
}

// reads tells whether a part is a known reader, and all it names lies inside.
func (s *Scope) reads(p CommandPart) bool {
	words := p.Static()
	if len(words) == 0 {
		return false
	}
	harmless, known := readers[words[0]] // a name with a slash in it is another program
	if !known || harmless != nil && !harmless(words[1:]) {
		return false
	}
	for _, w := range words[1:] {
		for _, n := range names(w) {
			if !s.inside(n) {
				return false
			}
		}
	}
	return true
}

// readers are programs that only print, with what must hold of their words. Git is none of them: what it runs for a status or a diff is
// decided by files of the repository.
var readers = map[string]func(args []string) bool{
	"pwd": nil, "ls": nil, "cat": nil, "head": nil, "wc": nil, "echo": nil, "true": nil, "false": nil, "test": nil, "[": nil, "basename": nil, "dirname": nil,
	"realpath": nil, "readlink": nil, "stat": nil, "du": without("L"), "df": nil, "uname": nil, "whoami": nil, "id": nil, "nproc": nil, "tr": nil, "cut": nil,
	"nl": nil, "tac": nil, "rev": nil, "seq": nil, "expr": nil, "cmp": nil, "comm": nil, "paste": nil, "fold": nil, "md5sum": nil, "sha1sum": nil,
	"sha256sum": nil, "sha512sum": nil, "cksum": nil, "diff": without("l", "paginate"), "tail": without("fF", "follow", "retry"),
	"grep": without("R", "dereference-recursive"), "egrep": without("R", "dereference-recursive"), "fgrep": without("R", "dereference-recursive"),
	"rg":   without("Lz", "pre", "pre-glob", "hostname-bin", "follow", "search-zip"),
	"sort": without("oT", "output", "temporary-directory", "compress-program"), "tree": without("oRl", "output"), "file": without("CzZ", "compile", "uncompress"),
	"date": without("s", "set"), "uniq": oneOperand, "find": finds, "cd": nil,
}

// without refuses short options, also in a cluster, and long ones, also shortened.
func without(short string, long ...string) func([]string) bool {
	return func(args []string) bool {
		for _, a := range args {
			if name, ok := strings.CutPrefix(a, "--"); ok {
				name, _, _ = strings.Cut(name, "=")
				if has(long, name) {
					return false
				}
			} else if strings.HasPrefix(a, "-") && strings.ContainsAny(a, short) {
				return false
			}
		}
		return true
	}
}

// oneOperand refuses a second file, which would be written.
func oneOperand(args []string) bool {
	n := 0
	for _, a := range args {
		if !strings.HasPrefix(a, "-") || a == "-" {
			n++
		}
	}
	return n <= 1
}

// finds refuses what makes find run or write something, or leave through links.
func finds(args []string) bool {
	return !slices.ContainsFunc(args, func(a string) bool {
		return strings.HasPrefix(a, "-exec") || strings.HasPrefix(a, "-ok") || strings.HasPrefix(a, "-fprint") || strings.HasPrefix(a, "-files0") ||
			slices.Contains([]string{"-delete", "-fls", "-L", "-H", "-follow"}, a)
	})
}
