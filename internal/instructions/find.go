package instructions

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Names are the files that are looked for in each directory, in this order.
var Names = []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md", ".cursorrules", ".windsurfrules"}

// Limits of reading.
const (
	MostFiles   = 32        // files that are used
	mostLevels  = 64        // directories from the top of a repository down to a session's
	mostOfOne   = 256 << 10 // bytes of one file that are read
	DefaultSize = 64 << 10  // bytes of all together
)

// File is one instruction file.
type File struct {
	Path string // as it is told to the model and the user
	Size int64
	Used int    // bytes of the text that are used; set by Fit
	Left string // why it is left out, "" when it is not
	text string // made harmless
}

// Place is where instructions are looked for: every directory from Top down to Dir, both absolute and without links.
type Place struct {
	Top, Dir string
	Only     []string // names to look for; nil for Names
}

// Find reads what the places hold, in their order and from the top down: what is nearest to the work comes last. A text that was found
// before is left out.
func Find(places []Place) (files []File) {
	seen := map[string]bool{}
	done := map[string]bool{}
	for _, p := range places {
		for _, dir := range p.levels() {
			if done[dir] {
				continue
			}
			done[dir] = true
			for _, f := range inDirectory(p, dir) {
				if f.Left == "" && seen[f.text] {
					f.Left = "another file says the same"
				}
				if f.Left == "" && len(seen) == MostFiles {
					f.Left = "there are too many of them"
				}
				if f.Left == "" {
					seen[f.text] = true
				}
				files = append(files, f)
			}
		}
	}
	return files
}

// levels lists the directories of a place from the top down.
func (p Place) levels() (dirs []string) {
	for at := p.Dir; len(dirs) < mostLevels; at = filepath.Dir(at) {
		dirs = append(dirs, at)
		if at == p.Top || at == filepath.Dir(at) {
			break
		}
	}
	slices.Reverse(dirs)
	return dirs
}

// inDirectory looks into one directory. Links may lead anywhere within the place's top.
func inDirectory(p Place, dir string) (files []File) {
	rel, err := filepath.Rel(p.Top, dir)
	if err != nil {
		return nil
	}
	root, err := os.OpenRoot(p.Top)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	names := p.Only
	if names == nil {
		names = Names
	}
	for _, name := range names {
		f := File{Path: filepath.Join(dir, name)}
		inside := filepath.Join(rel, filepath.FromSlash(name))
		if _, err := root.Lstat(inside); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		text, size, err := read(root, inside)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			f.Left = "its link leads nowhere"
		case err != nil:
			f.Left = "it cannot be read here: it is no file, or a link out of the project"
		default:
			f.Size, f.text = size, harmless(text)
			if f.text == "" {
				f.Left = "it is empty"
			}
		}
		files = append(files, f)
	}
	return files
}

// read takes the beginning of a regular file: opening a pipe would wait for its writer.
func read(root *os.Root, name string) (string, int64, error) {
	st, err := root.Stat(name)
	if err != nil {
		return "", 0, err
	}
	if !st.Mode().IsRegular() {
		return "", 0, errors.New("not a regular file")
	}
	f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, mostOfOne))
	return string(b), st.Size(), err
}
