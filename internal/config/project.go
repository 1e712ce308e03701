package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ProjectFile is where a project's configuration is, within its directory.
const ProjectFile = ".holdfast/config.toml"

// Project is what a directory brings along, as it is right now. Nothing of it counts before the user trusts this digest for this directory.
type Project struct {
	Dir  string // without links; the directory that is trusted, and in which the project's servers run
	File File   // of a file with mistakes only the path
	Err  error  // Errors
	// Programs are files of the project that its configuration starts, relative to Dir. They are part of the digest.
	Programs []string
	Digest   string // "" when there is no file, or none that can be used
}

// Exists tells whether there is a file, whatever it is worth.
func (p Project) Exists() bool { return p.File.Exists || p.Err != nil }

// FindProject looks for a configuration in a directory and in those above it up to the repository's top, and takes the nearest. Links are
// resolved first; no file is read through a link that leads out of the project.
func FindProject(cwd string) (Project, error) {
	dir, err := filepath.Abs(cwd)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return Project{}, fmt.Errorf("find the directory: %w", err)
	}
	top := Top(dir)
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ProjectFile)); err == nil {
			return ReadProject(at), nil
		}
		if at == top || at == filepath.Dir(at) {
			return Project{Dir: top}, nil
		}
	}
}

// Top is the top of the repository that a directory lies in, or the directory itself.
func Top(dir string) string {
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
	}
	return dir
}

// ReadProject reads the configuration of one directory, given without links.
func ReadProject(dir string) Project {
	p := Project{Dir: dir, File: File{Path: filepath.Join(dir, ProjectFile)}}
	root, err := os.OpenRoot(dir)
	if err != nil {
		p.Err = Errors{unreadable(p.File.Path)}
		return p
	}
	defer func() { _ = root.Close() }()
	b, err := within(root, ProjectFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p
	case err != nil:
		e := unreadable(p.File.Path)
		e.Write = "it must be a file inside the project, and no link out of it"
		p.Err = Errors{e}
		return p
	}
	if p.File, p.Err = Parse(p.File.Path, b, true); p.Err != nil {
		return p
	}
	h := sha256.New()
	part := func(name string, content []byte) {
		_, _ = fmt.Fprintf(h, "%d %s %d ", len(name), name, len(content)) // a hash takes everything
		_, _ = h.Write(content)
	}
	part(ProjectFile, b)
	for _, name := range p.named() {
		if sum := digestOf(root, name); sum != nil {
			p.Programs = append(p.Programs, name)
			part(name, sum)
		}
	}
	p.Digest = hex.EncodeToString(h.Sum(nil))
	return p
}

// within reads a small regular file of a root.
func within(root *os.Root, name string) ([]byte, error) {
	f, err := regular(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, MaxSize+1))
}

// regular opens a file that is one: opening a pipe would wait for its writer.
func regular(root *os.Root, name string) (*os.File, error) {
	st, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return root.OpenFile(name, os.O_RDONLY|nonblock, 0)
}

// named are the paths in the project that its servers' commands and arguments name, sorted.
func (p Project) named() (names []string) {
	for _, s := range p.File.Config.MCP.Servers {
		for _, word := range append([]string{s.Command}, s.Args...) {
			if rel, ok := inside(p.Dir, word); ok && !slices.Contains(names, rel) {
				names = append(names, rel)
			}
		}
	}
	slices.Sort(names)
	return names
}

// inside is a word as a path within dir. A server's own flag may carry one behind an equals sign.
func inside(dir, word string) (string, bool) {
	if _, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(word, "-") {
		word = value
	}
	if word == "" || strings.ContainsRune(word, 0) {
		return "", false
	}
	if filepath.IsAbs(word) {
		rel, err := filepath.Rel(dir, word)
		if err != nil {
			return "", false
		}
		word = rel
	}
	word = filepath.Clean(word)
	return word, filepath.IsLocal(word)
}

// mostOfProgram bounds how much of a program is read; of what is longer, the beginning and the length count.
const mostOfProgram = 64 << 20

// digestOf is a digest of a file in the project, nil when there is none of that name.
func digestOf(root *os.Root, name string) []byte {
	f, err := regular(root, name)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, mostOfProgram))
	if err != nil {
		return nil
	}
	if st, err := f.Stat(); err == nil && n == mostOfProgram {
		_, _ = fmt.Fprint(h, st.Size())
	}
	return h.Sum(nil)
}
