package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// module is the path that our own imports begin with.
const module = "holdfast/"

// File is one parsed source file.
type File struct {
	Path    string   // below the module's root
	Package string   // the folder, as layers.go names it
	Test    bool     // a _test.go file
	Imports []string // of ours, without the module
	fset    *token.FileSet
	syntax  *ast.File
}

// Load parses every Go file of a module, generated ones and those of other systems included.
func Load(root fs.FS) ([]File, error) {
	var files []File
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			base := path.Base(name)
			if _, err := fs.Stat(root, path.Join(name, "go.mod")); name != "." && err == nil {
				return fs.SkipDir // a module of its own
			}
			if name != "." && (base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		src, err := fs.ReadFile(root, name)
		if err != nil {
			return fmt.Errorf("read a source: %w", err)
		}
		f, err := parse(name, src)
		if err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

func parse(name string, src []byte) (File, error) {
	f := File{Path: name, Package: path.Dir(name), Test: strings.HasSuffix(name, "_test.go"), fset: token.NewFileSet()}
	var err error
	if f.syntax, err = parser.ParseFile(f.fset, name, src, parser.SkipObjectResolution); err != nil {
		return f, fmt.Errorf("parse %s: %w", name, err)
	}
	for _, spec := range f.syntax.Imports {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return f, fmt.Errorf("read an import of %s: %w", name, err)
		}
		if ours, ok := strings.CutPrefix(imp, module); ok {
			f.Imports = append(f.Imports, ours)
		}
	}
	return f, nil
}
