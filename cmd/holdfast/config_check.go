package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/internal/config"
)

// checkedFile is what 'config check' says of one file.
type checkedFile struct {
	Path     string          `json:"path"`
	Exists   bool            `json:"exists"`
	Mistakes []*config.Error `json:"mistakes"`
}

func configCheck() *cobra.Command {
	var project bool
	cmd := &cobra.Command{Use: "check [FILE]", Short: "Check a configuration file and name every mistake",
		Long: "Check FILE, or without one your own configuration and the project's of this directory. A file whose path ends in " + config.ProjectFile + "\n" +
			"is checked as a project's, which may set less. Nothing is started and nothing is changed.\n\nExit codes: 0 no mistakes; 1 there are some.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{errors.New("it takes one file at most")}
			}
			return nil
		}}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all, err := checked(args, project)
		if err != nil {
			return err
		}
		asJSON, _ := cmd.Flags().GetBool("json") // it is defined below
		out, code := cmd.OutOrStdout(), exitOK
		for _, f := range all {
			if len(f.Mistakes) > 0 {
				code = exitFailed
			}
			if !asJSON {
				f.print(out)
			}
		}
		if asJSON {
			e := json.NewEncoder(out)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			if err := e.Encode(all); err != nil {
				return err
			}
		}
		if code != exitOK {
			return exitError{code}
		}
		return nil
	}
	cmd.Flags().BoolVar(&project, "project", false, "check it as a project's file, whatever its name")
	jsonFlag(cmd)
	return cmd
}

// checked reads the files that were named, or those that would be used here.
func checked(args []string, project bool) ([]checkedFile, error) {
	if len(args) == 1 {
		path, err := filepath.Abs(args[0])
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("there is no file %s", line(path, 300))
		}
		f, err := config.ReadAs(path, project || strings.HasSuffix(filepath.ToSlash(path), "/"+config.ProjectFile))
		return []checkedFile{{path, true, mistakes(usable(f, err))}}, nil
	}
	home, err := homeDir()
	if err != nil {
		return nil, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	user, uerr := config.Read(config.Path(home, userHome()))
	p, err := config.FindProject(cwd)
	if err != nil {
		return nil, err
	}
	all := []checkedFile{{user.Path, user.Exists || uerr != nil, mistakes(usable(user, uerr))}}
	if p.Exists() {
		all = append(all, checkedFile{p.File.Path, true, mistakes(usable(p.File, p.Err))})
	}
	return all, nil
}

// usable is what is wrong with a file, its rules looked at as well.
func usable(f config.File, err error) error {
	if wrong := ruleMistakes(f); err == nil && len(wrong) > 0 {
		return wrong
	}
	return err
}

func (f checkedFile) print(w io.Writer) {
	switch {
	case !f.Exists:
		_, _ = fmt.Fprintf(w, "%s: there is none\n", f.Path)
	case len(f.Mistakes) == 0:
		_, _ = fmt.Fprintf(w, "%s: no mistakes\n", f.Path)
	}
	for _, m := range f.Mistakes {
		where := f.Path
		if m.Line > 0 {
			where = fmt.Sprintf("%s:%d", f.Path, m.Line) // as compilers write it: editors jump there
		}
		_, _ = fmt.Fprintf(w, "%s: %s\n", where, line(m.Sentence(), 400))
	}
}
