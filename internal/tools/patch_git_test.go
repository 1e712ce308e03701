package tools

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/session"
)

// stricter are the reasons for which a patch is refused that git applies.
var stricter = []string{"is changed twice by the patch", "has no line of the file in it", "every file is as it wants it", "within 1000 lines", "is read-only", "hold a NUL"}

// Random patches over random files, made by git, onto files that have changed a little since, sometimes damaged: what git applies is applied
// with the same bytes and modes, and what git refuses is refused. Two things differ, and are checked: line ends that the patch does not
// spell as the file does are left out of account, and some patches are refused for a reason of ours.
func TestPatch_SameAsGitApply(t *testing.T) {
	rounds, seed := 80, uint64(time.Now().UnixNano())
	if s := os.Getenv("TOOLS_PATCH_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed, rounds = n, 1
	}
	if s := os.Getenv("TOOLS_PATCH_ROUNDS"); s != "" {
		rounds, _ = strconv.Atoi(s)
	}
	w := gitWorld{t: t, repo: t.TempDir(), ours: t.TempDir(), theirs: t.TempDir()}
	w.git(w.repo, "init", "-q")
	count := map[string]int{}
	for i := range rounds {
		s := seed + uint64(i)
		w.r = rand.New(rand.NewPCG(s, 1))
		how := w.round()
		count[how]++
		if t.Failed() {
			t.Fatalf("seed %d: TOOLS_PATCH_SEED=%d go test ./internal/tools -run SameAsGitApply", s, s)
		}
	}
	t.Logf("from seed %d: %v", seed, count)
	if rounds >= 80 && (count["applied"] < rounds/4 || count["refused"] < rounds/40) {
		t.Errorf("too little was tried: %v", count)
	}
}

// file is one file of a random tree.
type file struct {
	text string
	exec bool
}

type files map[string]file

func (f files) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(&b, "%q %q %v; ", name, f[name].text, f[name].exec)
	}
	return b.String()
}

type gitWorld struct {
	t                  *testing.T
	r                  *rand.Rand
	repo, ours, theirs string
}

func (w *gitWorld) git(dir string, args ...string) string {
	w.t.Helper()
	out, err := w.try(dir, "", args...)
	if err != nil {
		w.t.Fatalf("git %v: %v %s", args, err, out)
	}
	return out
}

func (w *gitWorld) try(dir, in string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "-c", "core.fileMode=true", "-c", "gc.auto=0"}, args...)...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(in)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)}
	out, err := cmd.Output()
	var ee *exec.ExitError
	if errors.As(err, &ee) {
		return string(ee.Stderr), err
	}
	return string(out), err
}

func (w *gitWorld) pick(n int) bool { return w.r.IntN(n) == 0 }

// text is a few lines of few kinds, so that a hunk may fit in more than one place.
func (w *gitWorld) text() string {
	var b strings.Builder
	end := "\n"
	if w.pick(6) {
		end = "\r\n"
	}
	for range w.r.IntN(24) {
		b.WriteString(w.line())
		if b.WriteString(end); w.pick(60) {
			end = "\r\n"
		}
	}
	if w.pick(5) {
		b.WriteString("open end")
	}
	return b.String()
}

func (w *gitWorld) line() string {
	return []string{"alpha", "beta", "gamma", "", "  indented", "\ttab", "é€😀", "-- minus", "++ plus", "@@ -1 +1 @@", "diff --git a/x b/x", "trailing  ", fmt.Sprint(w.r.IntN(1000))}[w.r.IntN(13)]
}

var names = []string{"a", "b.txt", "dir/c", "dir/sub/d", "with space", "tab\there", "ünï", `quo"te`, "b", "dir/b/b", "x b/x", "new"}

func (w *gitWorld) tree() files {
	out := files{}
	for range 1 + w.r.IntN(4) {
		out[names[w.r.IntN(len(names)-1)]] = file{w.text(), w.pick(5)}
	}
	delete(out, "") // nothing is named so
	return conflictFree(out)
}

// conflictFree leaves out files whose folder is a file.
func conflictFree(f files) files {
	for name := range f {
		for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
			delete(f, dir)
		}
	}
	return f
}

// change edits some lines.
func (w *gitWorld) change(text string, times int) string {
	lines := strings.SplitAfter(text, "\n")
	for range times {
		i := w.r.IntN(len(lines))
		switch w.r.IntN(4) {
		case 0:
			lines = slices.Insert(lines, i, w.line()+"\n")
		case 1:
			lines = slices.Delete(lines, i, min(i+1+w.r.IntN(2), len(lines)))
		case 2:
			lines[i] = w.line() + lines[i][len(strings.TrimRight(lines[i], "\r\n")):]
		case 3:
			lines = slices.Insert(lines, i, w.line()+"\n", w.line()+"\n")
		}
		if len(lines) == 0 {
			return ""
		}
	}
	return strings.Join(lines, "")
}

// next is another tree made of one: edited, renamed, deleted, new files, other modes.
func (w *gitWorld) next(f files) files {
	out := maps.Clone(f)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		now := out[name]
		switch w.r.IntN(8) {
		case 0:
			delete(out, name)
			continue
		case 1:
			delete(out, name)
			name = names[w.r.IntN(len(names))]
		case 2:
			now.exec = !now.exec
		}
		if w.pick(8) {
			now.text = ""
		} else if !w.pick(4) {
			now.text = w.change(now.text, 1+w.r.IntN(4))
		}
		out[name] = now
	}
	if w.pick(4) {
		out["new"] = file{w.text(), w.pick(3)}
	}
	return conflictFree(out)
}

func (w *gitWorld) put(dir string, f files) {
	w.t.Helper()
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != ".git" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	for name, x := range f {
		path, mode := filepath.Join(dir, name), os.FileMode(0o644)
		if x.exec {
			mode = 0o755
		}
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(x.text), mode))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *gitWorld) get(dir string) files {
	b := bench{t: w.t, env: session.ToolEnv{Cwd: dir}}
	out := files{}
	for name, text := range b.tree() {
		plain := strings.TrimSuffix(name, "*")
		out[plain] = file{text, plain != name}
	}
	return out
}

// patch is what git says leads from one tree to another.
func (w *gitWorld) patch(from, to files) string {
	var trees []string
	for _, f := range []files{from, to} {
		w.put(w.repo, f)
		w.git(w.repo, "add", "-A")
		trees = append(trees, strings.TrimSpace(w.git(w.repo, "write-tree")))
	}
	args := []string{"diff-tree", "-p", "-r", "--full-index", fmt.Sprintf("-U%d", []int{3, 3, 3, 1, 0, 5}[w.r.IntN(6)])}
	if w.pick(2) {
		args = append(args, "-M40")
	}
	if w.pick(4) {
		args = append(args, "-C", "--find-copies-harder")
	}
	return w.git(w.repo, append(args, trees...)...)
}

// damage does to a patch what a careless writer does.
func (w *gitWorld) damage(patch string) string {
	lines := strings.SplitAfter(patch, "\n")
	i := w.r.IntN(len(lines))
	switch w.r.IntN(5) {
	case 0:
		lines = slices.Delete(lines, i, i+1)
	case 1:
		lines[i] = " " + w.line() + "\n"
	case 2:
		return strings.ReplaceAll(patch, "\r\n", "\n")
	case 3:
		return "Here is the patch:\n\n" + patch + "\nthat is all\n"
	case 4: // no header of git
		var out []string
		for _, l := range lines {
			if !strings.HasPrefix(l, "diff --git a/") && !strings.HasPrefix(l, "index ") {
				out = append(out, l)
			}
		}
		lines = out
	}
	return strings.Join(lines, "")
}

// round compares one patch.
func (w *gitWorld) round() string {
	from := w.tree()
	patch := w.patch(from, w.next(from))
	if patch == "" {
		return "nothing"
	}
	if w.pick(2) { // somebody else has changed a file since
		from = maps.Clone(from)
		for _, name := range slices.Sorted(maps.Keys(from)) {
			if w.pick(2) {
				from[name] = file{w.change(from[name].text, 1+w.r.IntN(3)), from[name].exec}
			}
		}
	}
	damaged := w.pick(3)
	if damaged {
		patch = w.damage(patch)
	}
	w.put(w.theirs, from)
	w.put(w.ours, from)
	said, gitErr := w.try(w.theirs, patch, "apply", "-")
	b := bench{t: w.t, env: session.ToolEnv{Cwd: w.ours, Roots: []string{w.ours}}, opt: Options{}}
	out, err := b.call("apply_patch", args{"patch": patch})
	theirs, ours := w.get(w.theirs), w.get(w.ours)
	switch {
	case gitErr == nil && err == nil:
		if !maps.Equal(theirs, ours) {
			w.t.Errorf("git made %v\nwe made %v\nof %v\nwith\n%s", theirs, ours, from, patch)
		}
		return "applied"
	case err != nil && !maps.Equal(ours, from):
		w.t.Errorf("refused, and changed all the same: %v\n%v\n%v\n%s", err, from, ours, patch)
	case gitErr != nil && err != nil:
		return "refused"
	case gitErr == nil:
		if damaged && strings.Contains(err.Error(), "The patch cannot be read: line ") {
			return "stricter: a header or a count that git overlooks"
		}
		for _, why := range stricter {
			if strings.Contains(err.Error(), why) {
				return "stricter: " + why
			}
		}
		w.t.Errorf("git applies it, we do not: %v\n%v\n%s", err, from, patch)
	default:
		if !w.sameWithoutReturns(from, ours, patch) {
			w.t.Errorf("git refuses it (%s), we do not: %s\n%v\n%v\n%s", said, out.Text, from, ours, patch)
		}
		return "line ends"
	}
	return "different"
}

// sameWithoutReturns tells whether git does the same once all lines end alike.
func (w *gitWorld) sameWithoutReturns(from, ours files, patch string) bool {
	plain := func(f files) files {
		out := files{}
		for name, x := range f {
			out[name] = file{strings.ReplaceAll(x.text, "\r\n", "\n"), x.exec}
		}
		return out
	}
	w.put(w.theirs, plain(from))
	if _, err := w.try(w.theirs, strings.ReplaceAll(patch, "\r\n", "\n"), "apply", "-"); err != nil {
		return false
	}
	return maps.Equal(plain(w.get(w.theirs)), plain(ours))
}
