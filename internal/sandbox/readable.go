package sandbox

import (
	"os"
	"path/filepath"
	"slices"
)

// readable lists what may be read so that everything may, except what is hidden: a rule of Landlock holds for all that is below a path, so
// the folders that lead to a hidden place are not named themselves, but what else is in them. It returns folders and files apart.
func readable(hidden []string) (dirs, files []string) {
	if len(hidden) == 0 {
		return []string{"/"}, nil
	}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return // what cannot be listed cannot be opened one by one
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			switch {
			case slices.ContainsFunc(hidden, func(h string) bool { return within(h, path) }):
			case e.IsDir() && slices.ContainsFunc(hidden, func(h string) bool { return within(path, h) }):
				walk(path)
			case e.IsDir():
				dirs = append(dirs, path)
			case e.Type()&os.ModeSymlink == 0:
				files = append(files, path)
			}
		}
	}
	walk("/")
	return dirs, files
}
