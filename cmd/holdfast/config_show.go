package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/internal/config"
	"holdfast/mcp/toolbox"
)

func configCommand() *cobra.Command {
	show := configShow()
	g := group("config", "Show what is configured and from where, check files, print the schema",
		"Show every setting that counts in this directory and where its value comes from. docs/configuration.md has all of them.",
		show, configPath(), configCheck(), configSchema())
	return g
}

// settingsDocument is what 'config show' prints.
type settingsDocument struct {
	User     sourceFile       `json:"user"`
	Project  sourceFile       `json:"project"`
	Settings []config.Setting `json:"settings"`
	// Servers says of each MCP server whose it is.
	Servers []serverPlace `json:"servers"`
}

// sourceFile is a configuration file and what holds of it.
type sourceFile struct {
	Path     string          `json:"path"`
	Exists   bool            `json:"exists"`
	Mistakes []*config.Error `json:"mistakes"`
	Trust    string          `json:"trust"` // of a project: none, unusable, untrusted, changed, revoked or trusted; "" of the user's
}

type serverPlace struct {
	Name   string `json:"name"`
	Origin string `json:"origin"` // user or project
	Counts bool   `json:"counts"`
}

// mistakes are those of a file.
func mistakes(err error) []*config.Error {
	out := []*config.Error{}
	if all, ok := err.(config.Errors); ok { // the config package returns it as it is
		out = all
	}
	return out
}

// files reads the user's configuration and the project's of this directory.
func (c *cli) files(ctx context.Context) (user config.File, uerr error, s standing, err error) {
	user, uerr = config.Read(config.Path(c.home, userHome()))
	s, err = here(ctx, c.db)
	return user, uerr, s, err
}

func (c *cli) places(user config.File, uerr error, s standing) (sourceFile, sourceFile) {
	return sourceFile{Path: user.Path, Exists: user.Exists || uerr != nil, Mistakes: mistakes(uerr)},
		sourceFile{Path: filepath.Join(s.Dir, config.ProjectFile), Exists: s.Exists(), Mistakes: mistakes(s.Err), Trust: s.state()}
}

func configShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show", Short: "Show every setting that counts here, and where it comes from", Args: noArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return reading(cmd, func(ctx context.Context, c *cli) error {
			user, uerr, s, err := c.files(ctx)
			if err != nil {
				return err
			}
			flags := map[string]string{}
			if f := cmd.Flags().Lookup("model"); f != nil && f.Changed {
				flags["--model"] = f.Value.String()
			}
			var project config.File
			if s.trusted() {
				project = s.File
			}
			d := settingsDocument{Settings: config.Settings(user, project, config.Given{Getenv: os.LookupEnv, Flags: flags, Args: toolbox.Masked}), Servers: owners(user, s)}
			d.User, d.Project = c.places(user, uerr, s)
			return c.show(d, d.print)
		})
	}
	jsonFlag(cmd)
	return cmd
}

// owners lists the MCP servers of both files.
func owners(user config.File, s standing) []serverPlace {
	out := []serverPlace{}
	for _, sv := range configured(user.Config) {
		out = append(out, serverPlace{sv.Name, config.FromUser, true})
	}
	for _, sv := range configured(s.File.Config) {
		_, taken := user.Config.MCP.Servers[sv.Name]
		out = append(out, serverPlace{sv.Name, config.FromProject, s.trusted() && !taken})
	}
	return out
}

func (p sourceFile) text() string {
	switch {
	case len(p.Mistakes) > 0:
		return fmt.Sprintf("%s is not used: line %d: %s", p.Path, p.Mistakes[0].Line, line(p.Mistakes[0].Sentence(), 300))
	case !p.Exists:
		return p.Path + " (there is none)"
	case p.Trust != "" && p.Trust != "trusted":
		return p.Path + " is " + p.Trust + ", nothing of it counts; 'holdfast trust' shows it"
	}
	return p.Path
}

func (d settingsDocument) print(w io.Writer) {
	_, _ = fmt.Fprintf(w, "user     %s\nproject  %s\n\n", d.User.text(), d.Project.text())
	var rows [][]string
	for _, s := range d.Settings {
		rows = append(rows, []string{s.Path, line(settingText(s), 80), line(originText(s.Origin), 200) + line(prefixed("; ", s.Note), 200)})
	}
	table(w, []string{"SETTING", "VALUE", "FROM"}, rows)
	rows = nil
	for _, sv := range d.Servers {
		rows = append(rows, []string{fmt.Sprintf("%q", sv.Name), sv.Origin, map[bool]string{true: "yes", false: "no"}[sv.Counts]})
	}
	if len(rows) > 0 {
		_, _ = fmt.Fprintln(w)
		table(w, []string{"MCP SERVER", "OF", "COUNTS"}, rows)
	}
}

func settingText(s config.Setting) string {
	if s.Value == nil {
		return strings.TrimSpace(s.Default + " " + unitOf(s.Default, s.Unit))
	}
	b, err := json.Marshal(s.Value)
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(b) + " " + s.Unit)
}

// unitOf leaves the unit out behind words.
func unitOf(value, unit string) string {
	if _, err := strconv.ParseFloat(value, 64); err != nil {
		return ""
	}
	return unit
}

func originText(o config.Origin) string {
	switch o.From {
	case config.FromUser, config.FromProject:
		return fmt.Sprintf("%s, %s, line %d", o.From, o.File, o.Line)
	case config.FromEnv, config.FromFlag:
		return o.From + ", " + o.Name
	}
	return o.From
}

func configPath() *cobra.Command {
	cmd := &cobra.Command{Use: "path", Short: "Print where the configuration files are, or would be", Args: noArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return reading(cmd, func(ctx context.Context, c *cli) error {
			user, uerr, s, err := c.files(ctx)
			if err != nil {
				return err
			}
			u, p := c.places(user, uerr, s)
			return c.show(map[string]sourceFile{"user": u, "project": p}, func(w io.Writer) {
				_, _ = fmt.Fprintf(w, "%s\n%s\n", u.Path, p.Path)
			})
		})
	}
	jsonFlag(cmd)
	return cmd
}

func configSchema() *cobra.Command {
	return &cobra.Command{Use: "schema", Short: "Print the JSON Schema of config.toml, for editors", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(config.Schema())
			return err
		}}
}
