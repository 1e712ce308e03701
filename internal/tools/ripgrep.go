package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/session"
)

const (
	oldestRipgrep = 13
	ripgrepProbe  = 5 * time.Second
	ripgrepLasts  = 15 * time.Second // one call of it; the search goes on without it then
	ripgrepOutput = 16 << 20
)

// ripgrep tells of files, where it is installed, that no line of them can match, so that they need not be read here. It decides nothing else: which
// files there are, what is shown and what is left out stays with the search. Only what it names for certain is believed; a file that it does not
// name, for whatever reason, is read.
type ripgrep struct {
	program string
	pattern string
}

// ripgrepFor is nil where there is none, where it cannot be told what to look for, and where it is not faster: a text that every match holds is
// found here in less time than it takes to name the files and to read the answer.
func (o Options) ripgrepFor(ctx context.Context, env session.ToolEnv, m *match) *ripgrep {
	if len(m.must) > 0 || ownGroup() == nil {
		return nil
	}
	pattern := m.looser()
	if pattern == "" {
		return nil
	}
	for _, program := range ripgrepsOn(env) {
		version, err := ripgrepVersion(ctx, program)
		if err == nil && version >= oldestRipgrep {
			return &ripgrep{program: program, pattern: pattern}
		}
		o.debug("%s is not used for searches: version %d, %v", program, version, err)
	}
	return nil
}

func (o Options) debug(format string, a ...any) {
	if o.Debug != nil {
		o.Debug(fmt.Sprintf(format, a...))
	}
}

// ripgrepsOn are the programs of that name on the PATH of commands. One that the workspace brings along is never run: neither from a folder
// that is not named in full, nor from inside a root, whatever links lead there.
func ripgrepsOn(env session.ToolEnv) (out []string) {
	list := ""
	for _, kv := range env.Env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			list = v
		}
	}
	roots := realRoots(env)
	if cwd, err := resolveLinks(env.Cwd); err == nil {
		roots = append(roots, cwd)
	}
	for _, dir := range filepath.SplitList(list) {
		if !filepath.IsAbs(dir) {
			continue
		}
		real, err := filepath.EvalSymlinks(filepath.Join(dir, "rg"))
		if err != nil {
			continue
		}
		at, err := filepath.EvalSymlinks(dir) // where the name stands, which may be a link out of the workspace
		if err != nil || within(roots, real) || within(roots, at) {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			out = append(out, real)
		}
	}
	return out
}

func within(roots []string, path string) bool {
	for _, root := range roots {
		if _, in := below(root, path); in {
			return true
		}
	}
	return false
}

// ripgrepVersions are the answers of this process, by program, size and time.
var ripgrepVersions sync.Map

// ripgrepVersion is the first number of a program's version. A program is asked once.
func ripgrepVersion(ctx context.Context, program string) (int, error) {
	info, err := os.Stat(program)
	if err != nil {
		return 0, err
	}
	key := fmt.Sprintf("%s\x00%d\x00%d", program, info.Size(), info.ModTime().UnixNano())
	if v, known := ripgrepVersions.Load(key); known {
		return v.(int), nil
	}
	ctx, cancel := context.WithTimeout(ctx, ripgrepProbe)
	defer cancel()
	out, err := runRipgrep(ctx, program, string(filepath.Separator), 4_000, "--no-config", "--version")
	version := 0
	if words := strings.Fields(string(out)); err == nil && len(words) > 1 && words[0] == "ripgrep" {
		major, _, _ := strings.Cut(words[1], ".")
		version, _ = strconv.Atoi(major)
	}
	if ctx.Err() == nil { // it has answered, or cannot
		ripgrepVersions.Store(key, version)
	}
	return version, err
}

// runRipgrep runs it with next to no environment, in a group of its own that ends with the context.
func runRipgrep(ctx context.Context, program, dir string, most int, arguments ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, []string{"LC_ALL=C"}, time.Second
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return endGroup(cmd.Process) }
	out := &limited{most: most}
	cmd.Stdout = out
	err := cmd.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out.Bytes(), err
}

// limited refuses what is too much.
type limited struct {
	bytes.Buffer
	most int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.Len()+len(b) > l.most {
		return 0, errTooMuch
	}
	return l.Buffer.Write(b)
}

var errTooMuch = errors.New("it prints more than expected")

// without finds the files right inside some folders in which no line matches. Long files are left to the search, which says what it did not see of them.
func (r *ripgrep) without(ctx context.Context, top string, folders []string) (map[string]map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, ripgrepLasts)
	defer cancel()
	arguments := []string{"--no-config", "--no-ignore", "--hidden", "--text", "--encoding", "none", "--no-mmap", "--no-messages", "--color", "never",
		"--max-depth", "1", "--max-filesize", "1000K", "--files-without-match", "--null", "--case-sensitive", "--regexp=" + r.pattern, "--"}
	for _, dir := range folders {
		arguments = append(arguments, "./"+dir)
	}
	out, err := runRipgrep(ctx, r.program, top, ripgrepOutput, arguments...)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1: every file matches
		return nil, err
	}
	found := map[string]map[string]bool{}
	for name := range bytes.SplitSeq(out, []byte{0}) {
		if len(name) == 0 {
			continue
		}
		dir, base := path.Split(path.Clean(string(name)))
		dir = path.Clean(dir)
		if found[dir] == nil {
			found[dir] = map[string]bool{}
		}
		found[dir][base] = true
	}
	return found, nil
}
