package session

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// readLines are command lines of every shape, for the table of what is read out of them.
var readLines = []string{"git push", "  go   test\t-run 'A B' ", `g\it push`, `"git" 'push'`, "$x push", "${x}git push", "`echo git` push", "$'\\x67it' push", "ls *.go",
	"echo a{b,c}", "ls ~", "/usr/bin/gi? push", "a; b && c || d | e", "a & b", "a\nb", "(a; b)", "{ a; b; }", "if a; then b; fi", "for f in x; do a $f; done", "! a",
	"f() { a; }; f", "A=b c", "PATH=. c", "export A=b", "export PATH=.", "a > b 2>&1 <c", "a >$x", "a &> b", "a <<< b", "cat <<EOF\nx\nEOF", "sh <<EOF\ngit push\nEOF",
	"sh <<EOF\n$x\nEOF", "sh <<'EOF'\ng\\it push\nEOF", "bash <<< 'git push'", "echo git push | sh", "sh script", "bash <(echo a)", "sh -c 'a; b'", `sh -c "$x"`,
	"bash -lc a", "eval a b", "eval $x", "trap a EXIT", ". ./a", "source /dev/stdin", "env A=b c d", "env -S 'c d'", "env -u A -C / c", "env PATH=. c", "sudo -u a b c",
	"sudo -s", "nice -n 5 a", "nohup a", "time -p a", "timeout -k 5 9 a b", "timeout --signal KILL 9 a", "command -p a", "exec -a x b", "setsid a", "stdbuf -oL a",
	"xargs a", "xargs -n 1 -I {} a {}", "find . -name x", `find . -exec a b \;`, "find . -execdir a {} +", "find . $x", "git -C d push", "git -c a=b push",
	"git --exec-path=. push", "git rebase -x a b", "python3 -c a", "python3 a.py", "python -", "perl -ne a", "node -e a", "awk a b", "sed s/a/b/ c", "ssh h a", "busybox sh",
	"alias a=b", "echo $(a; b)", `echo "$(a)"`, "echo ${x:-$(a)}", "cat <(a)", "[[ -n $(a) ]]", "(( x = $(a) ))", "case x in x) a;; esac", "a 'b", "a )", "", "# a", "a\rb", "a \x00b",
	strings.Repeat("eval ", 12) + "a"}

func TestReadFacts(t *testing.T) {
	var out strings.Builder
	for _, line := range readLines {
		f := ReadFacts(line)
		var parts []string
		for _, p := range f.Parts {
			inner := ""
			if p.Inner {
				inner = "·"
			}
			parts = append(parts, inner+p.String())
		}
		fmt.Fprintf(&out, "%-44q plain=%-5v %q", line, f.Plain, parts)
		if len(f.Writes)+len(f.Inputs) > 0 {
			fmt.Fprintf(&out, " writes=%v reads=%v", f.Writes, f.Inputs)
		}
		if f.Hidden != "" || f.Unread {
			fmt.Fprintf(&out, " hidden=%q unread=%v", f.Hidden, f.Unread)
		}
		out.WriteString("\n")
	}
	golden(t, "facts.golden", out.String())
}

// at is the scope of a session in /w, where nothing is a link.
var at = Scope{Cwd: "/w", Inside: []string{"/w", "/tmp"}, Real: filepath.Clean,
	Secret: func(p string) bool { return strings.HasSuffix(p, ".env") || strings.Contains(p, ".ssh/") }}

// reachLines are command lines by how far they go.
var reachLines = map[Reach][]string{
	ReachReads: {"ls", "ls -la src", "cat a b", "cat a | wc -l && pwd", "cat a 2>/dev/null", "head -n 5 <a", "grep -rn 'x y' src", "find . -name '*.go'", "sort a | uniq -c",
		"cat /w/a", "cd src && ls", "echo hello", "[ -f a ]", "test -f a || echo no"},
	ReachWorks: {"go build ./...", "make", "npm test", "cargo build", "git status", "git commit -m x", "echo x > a", "cat $x", "cat *", "ls ~", "./cat a", "/tmp/ls", "sort -o a b",
		"sort -ro a b", "sort --out=a b", "find . -delete", "find . -exec cat {} +", "uniq a b", "tree -o a", "rg --pre cat x", "grep -R x .", "tail -f a", "date -s x",
		"cat /etc/passwd", "cat ../x", "grep x --file=/etc/passwd", "cat < /etc/passwd", "A=b ls", "ls &", "ls; f() { a; }", "cat <<EOF\nx\nEOF", "echo $(ls)", "rm -rf build", "rm a",
		"cp a b", "mv a /tmp/b", "python3 -c 'x'", "awk x", "sed -i s/a/b/ c", "timeout 5 ls", "env ls", "xargs ls", "sh -c ls", "", "# only words", "file -C a", "du -L a",
		"go install ./...", "npm run build", "git -c a=b status", "git log", "tar xf a", "python3 a.py"},
	ReachNetwork: {"curl x", "git push", "git -C d fetch", "ls && git pull", "go get x", "go mod tidy", "go install x@latest", "npm install", "npm --silent ci", "npx x", "pip install x",
		"pip3.12 install x", "python3 -m pip install x", "cargo fetch", "apt-get install x", "sh -c 'curl x'", "timeout 9 git clone x", "xargs curl", "echo $(curl x)", "rsync a h:b", "yarn",
		"find . -exec curl {} +"},
	ReachOutside: {"sudo ls", "docker ps", "systemctl stop x", "crontab a", "rm -rf /", "rm -rf ../x", "cp a /etc/b", "tee /etc/x", "echo x > /etc/x", "echo x >> ../x", "cd / && ls", "cd",
		"cd -", "cd $x && ls", "cd .. && rm -rf x", "cd src && rm -rf ../../x", "touch .git/hooks/x", "echo x > .git/config", "cat .env", "cat /home/u/.ssh/id", "grep x < .env", "kill 1",
		"sh -c 'rm -rf /etc'", "dd if=a of=/etc/x", "env rm /etc/x", "ln -s /etc x"},
	ReachUnread: {"ls 'a", "ls )", "if true; then", "a\rb", "a \x00b", "sh -c \"ls 'a\""},
}

func TestReach(t *testing.T) {
	for want, lines := range reachLines {
		for _, line := range lines {
			if got, why := ReadFacts(line).Reach(at); got != want || got != ReachReads && got != ReachNone && why == "" {
				t.Errorf("%q: %q because of %q, want %q", line, got, why, want)
			}
		}
	}
}

// What the shell would make of a pattern is looked at by name, and so is what programs obey when it is changed.
func TestReach_PatternsAndObeyed(t *testing.T) {
	s := at
	s.Expand = func(p string) []string {
		if ok, _ := filepath.Match(p, "/w/a.env"); ok {
			return []string{"/w/a.env"}
		}
		return nil
	}
	s.Obeyed = func(p string) bool { return strings.Contains(p, ".vscode/") }
	for line, want := range map[string]Reach{"cat *.txt": ReachWorks, "cat *.en*": ReachOutside, "cat < ?.en?": ReachOutside, "grep x [ab].env": ReachOutside, "cat .vscode/a": ReachReads,
		"tee .vscode/a": ReachOutside, "echo x >> .vscode/a": ReachOutside} {
		if got, why := ReadFacts(line).Reach(s); got != want {
			t.Errorf("%q: %q because of %q, want %q", line, got, why, want)
		}
	}
	if got := ReadFacts("cd src && mv -f a ../b; cat c; tee 'd e' --output=f $x").Touched(s); !slices.Equal(got, []string{"/w/src/a", "/w/b", "/w/src/d e", "/w/src/f"}) {
		t.Errorf("touched: %q", got)
	}
}

// A link inside leads where it points to.
func TestReach_FollowsLinks(t *testing.T) {
	s := at
	s.Real = func(p string) string { return strings.Replace(filepath.Clean(p), "/w/link", "/home", 1) }
	for line, want := range map[string]Reach{"cat link/a": ReachWorks, "cat src/../link/a": ReachWorks, "cat lin": ReachReads, "rm link/a": ReachOutside, "echo > link/a": ReachOutside,
		"cd link && ls": ReachOutside} {
		if got, why := ReadFacts(line).Reach(s); got != want {
			t.Errorf("%q: %q because of %q, want %q", line, got, why, want)
		}
	}
}

// However a line is nested, it is read in the end, and what is too much is not taken for harmless.
func TestReadFacts_IsBounded(t *testing.T) {
	for _, piece := range []string{"(", "$(", "$((", "`", "{ ", "((", "find -exec ", "eval ", "sh -c '", "${x:-", "\"", "if ", "case x in ", "a;", "<(", "[[ ", "$[", "xargs ", "<<A\n", "f() "} {
		for _, n := range []int{100, maxLine / len(piece)} {
			line := strings.Repeat(piece, n)
			if reach, _ := ReadFacts(line).Reach(at); reach == ReachReads {
				t.Errorf("%d times %q is a reader", n, piece)
			}
			if strings.HasPrefix(piece, "$(") || piece == "(" {
				_, _ = ReadFacts(line + "ls" + strings.Repeat(")", n)).Reach(at)
			}
		}
	}
	if f := ReadFacts("ls " + strings.Repeat("a", maxLine)); !f.Unread {
		t.Error("a line without end is read")
	}
}

// hide is one way to run a command without saying so at the start of the line.
type hide func(line string) string

// quoted is a line as one word of a shell.
func quoted(line string) string { return "'" + strings.ReplaceAll(line, "'", `'\''`) + "'" }

var hides = map[string]hide{
	"chain":          func(l string) string { return "true; " + l },
	"and":            func(l string) string { return "true && " + l },
	"newline":        func(l string) string { return "true\n" + l },
	"pipe":           func(l string) string { return "true | " + l },
	"background":     func(l string) string { return "true & " + l },
	"substitution":   func(l string) string { return "echo \"$(" + l + "\n)\"" },
	"group":          func(l string) string { return "{ " + l + "\n}" },
	"subshell":       func(l string) string { return "( " + l + "\n)" },
	"process":        func(l string) string { return "cat <( " + l + "\n)" },
	"condition":      func(l string) string { return "if true; then " + l + "\nfi" },
	"loop":           func(l string) string { return "for i in 1; do " + l + "\ndone" },
	"function":       func(l string) string { return "f() { " + l + "\n}; f" },
	"sh -c":          func(l string) string { return "sh -c " + quoted(l) },
	"bash -lc":       func(l string) string { return "bash -lc " + quoted(l) },
	"eval":           func(l string) string { return "eval " + quoted(l) },
	"here-document":  func(l string) string { return "sh <<'END_OF_IT'\n" + l + "\nEND_OF_IT" },
	"here-string":    func(l string) string { return "bash <<< " + quoted(l) },
	"printed":        func(l string) string { return "printf %s " + quoted(l) + " | sh" },
	"encoded":        func(string) string { return "echo bm8gd29yZAo= | base64 -d | sh" },
	"env":            func(l string) string { return "env A=b sh -c " + quoted(l) },
	"sudo":           func(l string) string { return "sudo -u root sh -c " + quoted(l) },
	"timeout":        func(l string) string { return "timeout -k 1 9 sh -c " + quoted(l) },
	"nice":           func(l string) string { return "nice -n 5 sh -c " + quoted(l) },
	"nohup":          func(l string) string { return "nohup sh -c " + quoted(l) },
	"time":           func(l string) string { return "time sh -c " + quoted(l) },
	"exec":           func(l string) string { return "exec sh -c " + quoted(l) },
	"command":        func(l string) string { return "command sh -c " + quoted(l) },
	"xargs":          func(l string) string { return "echo x | xargs -n 1 sh -c " + quoted(l) },
	"find":           func(l string) string { return "find . -exec sh -c " + quoted(l) + ` \;` },
	"ssh":            func(l string) string { return "ssh localhost " + quoted(l) },
	"git alias":      func(l string) string { return "git -c alias.x=" + quoted("!"+l) + " x" },
	"python":         func(string) string { return `python3 -c "import os; os.system(chr(110)+'o word')"` },
	"awk":            func(string) string { return `awk 'BEGIN { system("n" "o word") }'` },
	"variable":       func(string) string { return "x=no; $x word" },
	"ansi":           func(string) string { return `$'\x6eo' word` },
	"backslash":      func(string) string { return `n\o word` },
	"quotes":         func(string) string { return `n""o 'word'` },
	"glob":           func(string) string { return "/usr/bin/n? word" },
	"brace":          func(string) string { return "{no,word}" },
	"argument":       func(string) string { return "no $x" },
	"assignment":     func(l string) string { return "A=b " + l },
	"path":           func(string) string { return "/opt/bin/no word" },
	"trap":           func(l string) string { return "trap " + quoted(l) + " EXIT" },
	"busybox":        func(l string) string { return "busybox sh -c " + quoted(l) },
	"cut off":        func(l string) string { return l + "\n(" },
	"env -S":         func(l string) string { return "env -S " + quoted(l) },
	"alias":          func(string) string { return "alias x=no; x word" },
	"read in":        func(l string) string { return ". <(echo " + quoted(l) + ")" },
	"watch":          func(l string) string { return "watch " + quoted(l) },
	"IFS":            func(string) string { return "no${IFS}word" },
	"default value":  func(string) string { return "${x:-no} word" },
	"continued line": func(string) string { return "n\\\no word" },
}

// denied is what the policy says of a line in auto mode with a wall, when a rule of the user refuses "no word".
func denied(line string) (Ruling, string) {
	rules := []Rule{{ID: "r", Verdict: VerdictDeny, Kind: RulePrefix, Tool: "shell", Value: `["no","word"]`}}
	reach, _ := ReadFacts(line).Reach(at)
	standing, _ := Stand(rules, Subject{Session: "s", Cwd: "/w", Tool: "shell", Command: line})
	return Permit(PolicyInput{Mode: ModeAuto, Class: Unknown, Kind: KindExecute, Standing: standing, Reach: reach, Wall: true})
}

// What the user refuses runs in no disguise, and no disguise in a disguise.
func TestRule_RefusalSeesThroughDisguises(t *testing.T) {
	for outer, f := range hides {
		if ruling, rule := denied(f("no word")); ruling == Allow {
			t.Errorf("%s: %q is allowed: %s", outer, f("no word"), rule)
		}
		for inner, g := range hides {
			if line := f(g("no word")); true {
				if ruling, rule := denied(line); ruling == Allow && !loses(outer) {
					t.Errorf("%s in %s: %q is allowed: %s", inner, outer, line, rule)
				}
			}
		}
	}
	if ruling, _ := denied("yes word"); ruling != Allow {
		t.Error("what nobody refuses is not allowed either")
	}
}

// loses tells whether a disguise has words of its own in the place of those it is given.
func loses(name string) bool { f := hides[name]; return f("a") == f("b") }

// An allowing prefix carries no disguise and nothing behind it.
func TestRule_PrefixCarriesNoDisguise(t *testing.T) {
	for _, allowed := range []string{"true", "sh", "env", "find .", "xargs", "git", "timeout 9", "echo", "sudo", "python3", "bash -c", "eval", "nice", "ssh"} {
		p, ok := PrefixRule(allowed)
		if !ok {
			if allowed != "env" && allowed != "sudo" && allowed != "nice" && allowed != "eval" && allowed != "git" {
				t.Errorf("%q is no prefix", allowed)
			}
			continue
		}
		r := Rule{Verdict: VerdictAllow, Kind: RulePrefix, Session: "s", Tool: "shell", Value: p.Value}
		for name, f := range hides {
			line := f("no word")
			if r.covers(Subject{Session: "s", Tool: "shell", Command: line}) != coversNot && allowed != "ssh" {
				t.Errorf("%q carries %s: %q", allowed, name, line)
			}
		}
	}
	for prefix, line := range map[string]string{"timeout 9 make": "timeout 9 make all", "go test": "go test ./...", "find . -name": "find . -name x", "sh": "sh build.sh", "sed": "sed s/a/b/ c"} {
		p, _ := PrefixRule(prefix)
		r := Rule{Verdict: VerdictAllow, Kind: RulePrefix, Session: "s", Tool: "shell", Value: p.Value}
		if r.covers(Subject{Session: "s", Tool: "shell", Command: line}) != coversSurely {
			t.Errorf("%q does not cover %q", prefix, line)
		}
	}
}

// Any number of disguises around a refused command never ends in an allowance.
func TestRule_RefusalInGeneratedDisguises(t *testing.T) {
	var wraps []string
	for name := range hides {
		if !loses(name) {
			wraps = append(wraps, name)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		line := "no word"
		for range rapid.IntRange(1, 4).Draw(rt, "depth") {
			line = hides[rapid.SampledFrom(wraps).Draw(rt, "wrap")](line)
		}
		if ruling, rule := denied(line); ruling == Allow {
			rt.Fatalf("%q is allowed: %s", line, rule)
		}
	})
}

func FuzzCommand(f *testing.F) {
	for _, line := range readLines {
		f.Add(line)
	}
	for _, h := range hides {
		f.Add(h("no word"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		facts := ReadFacts(line)
		reach, why := facts.Reach(at)
		if facts.Unread && reach != ReachUnread {
			t.Errorf("%q cannot be parsed and is %q", line, reach)
		}
		if reach == ReachReads && (!facts.Plain || facts.Hidden != "" || strings.Contains(why, "no")) {
			t.Errorf("%q is no reader: %+v", line, facts)
		}
		if ruling, rule := denied("no word; " + line); ruling == Allow {
			t.Errorf("%q behind a refused command is allowed: %s", line, rule)
		}
		if r, ok := PrefixRule(line); ok {
			r.Verdict, r.Session, r.Tool = VerdictAllow, "s", "shell"
			if r.covers(Subject{Session: "s", Tool: "shell", Command: line}) == coversNot {
				t.Errorf("%q does not cover itself", line)
			}
			for _, more := range []string{"; no", "\nno", "&&no", "|no", " $(no)", ">f", "&"} {
				if r.covers(Subject{Session: "s", Tool: "shell", Command: line + more}) != coversNot {
					t.Errorf("%q carries %q", line, more)
				}
			}
		}
	})
}
