package security_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// commands of a terminal, and what turns or hides a line, as they would stand in the bytes of a JSON text.
var hidden = []string{"\x1b", `\u001b`, "\u202e", `\u202e`, "\u009b", `\u009b`, "\u200b", `\u200b`}

// A question shows what happens: nothing in a command hides a part of it.
func TestAttack_QuestionThatHides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mark := filepath.Join(w.dir, "mark")
	for _, c := range []string{"touch " + mark + "\x1b[2K\x1b[1Gls", "touch " + mark + "; #\rls -l", "ls #\u202e touch", "echo \u200b\u009b2Ja", "ls\ntouch " + mark} {
		w.will(tool("shell", m{"command": c}))
	}
	w.will(tool("write", m{"path": "a\x1b[2K\nb\u202e.txt", "content": "x"}), tool("sh\x1b[2Kell", m{}))
	a, id := w.attack("ask")
	asked := w.asked()
	if len(asked) != 6 {
		t.Fatalf("the user was asked %d times: %+v", len(asked), asked)
	}
	for _, q := range asked {
		for _, h := range append(hidden, "\r", "\n") {
			if strings.Contains(q.Title, h) {
				t.Errorf("the question %q holds %q", q.Title, h)
			}
		}
	}
	for i, want := range []string{`touch ` + mark + `\x1b[2K\x1b[1Gls`, `; #\rls -l`, `ls #\u{202e} touch`, `echo \u{200b}\x9b2Ja`, "ls ⏎ touch " + mark, `a\x1b[2K\nb\u{202e}.txt`} {
		if !strings.Contains(asked[i].Title, want) {
			t.Errorf("question %d is %q, want %q in it", i, asked[i].Title, want)
		}
	}
	for _, u := range a.Updates(id) {
		if strings.Contains(string(u), `"title":"sh\u001b`) {
			t.Errorf("the title of a tool is %s", u)
		}
	}
	w.absent(mark, "a command that was refused")
}

// What a command prints reaches the editor and the model without what a terminal would obey.
func TestAttack_OutputThatCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.work, "evil.txt", "a\x1b]52;c;cm0gLXJmIH4=\x07b\x1b]0;title\x1b\\c\x1b[31md\x1b[6ne\x9b2Jf\x00g\x08h\n")
	w.choose = func(ask) string { return "allow_once" }
	w.will(tool("shell", m{"command": "cat evil.txt"}))
	w.will(tool("shell", m{"command": "cat evil.txt", "pty": true}))
	a, _ := w.attack("ask")
	if r := w.results(); len(r) != 2 || !strings.Contains(r[0], "abcde") {
		t.Errorf("the results are %q", r)
	}
	for _, out := range w.outputs(a) {
		for _, h := range []string{"\x1b", `\u001b`, `\u0007`, `\u0008`, `\u0000`, "cm0gLXJmIH4="} {
			if strings.Contains(out, h) {
				t.Errorf("%q is in %.300s", h, out)
			}
		}
	}
}

// What the command line prints of a session controls no terminal.
func TestAttack_ListingThatCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start()
	evil := filepath.Join(w.work, "dir\x1b[2J\u202e")
	if err := os.Mkdir(evil, 0o755); err != nil {
		t.Fatal(err)
	}
	id := w.open(a, evil)
	w.ended(a, a.Prompt(id, "title\x1b]0;owned\x07\x1b[2J\u202erest"))
	_ = a.CloseInput()
	for _, args := range [][]string{{"sessions", "list"}, {"sessions", "show", id}, {"doctor"}, {"ps"}, {"effects"}, {"goals"}} {
		out := w.run(evil, args...)
		for _, h := range []string{"\x1b", "\x07", "\u202e"} {
			if strings.Contains(out, h) {
				t.Errorf("holdfast %v prints %q in %.500q", args, h, out)
			}
		}
	}
}
