package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/pelletier/go-toml/v2"
)

// Config is what a file has set.
type Config struct {
	Model struct {
		Name             string `toml:"name"`
		MaxTokens        int64  `toml:"max_tokens"`
		ReasoningEffort  string `toml:"reasoning_effort"` // "" leaves it to the model
		OpenAIBaseURL    string `toml:"openai_base_url"`
		OpenAIAPI        string `toml:"openai_api"`     // "chat" (the default) or "responses"
		OpenAIDialect    string `toml:"openai_dialect"` // "" is that of the address
		AnthropicBaseURL string `toml:"anthropic_base_url"`
	} `toml:"model"`
	Goals struct {
		// ReviewModel judges goals, as PROVIDER/NAME; "" is the model that worked.
		ReviewModel string `toml:"review_model"`
	} `toml:"goals"`
	// Models are figures that count before those of the catalogue.
	Models []Model `toml:"models"`
	MCP    struct {
		// Servers are external MCP servers by name, offered to every session.
		Servers map[string]Server `toml:"servers"`
		// Trusted are directories in which MCP clients may start work.
		Trusted []string `toml:"trusted"`
		// Limits bound every external server. Zero means the default.
		Limits Limits `toml:"limits"`
		// Authority is what MCP clients may do: "read", "goals" or "full".
		Authority string `toml:"authority"`
	} `toml:"mcp"`
	Permissions Permissions `toml:"permissions"`
	Sandbox     Sandbox     `toml:"sandbox"`
	Limits      struct {
		// Working is how many runs work unattended at once, over all processes; nothing means the default, 4.
		Working *int `toml:"working"`
	} `toml:"limits"`
	Fetch struct {
		// PrivateHosts are hosts that the fetch tool may reach although their addresses are not public: names as in the address, without a port.
		PrivateHosts []string `toml:"private_hosts"`
	} `toml:"fetch"`
	Sessions struct {
		// KeepDays is after how many days a session that lies still and holds nothing open is deleted; 0, the default, is never.
		KeepDays float64 `toml:"keep_days"`
	} `toml:"sessions"`
	Recovery struct {
		// Auto is what is done by itself with work whose process is gone: "always" (the default), "attached" or "off".
		Auto string `toml:"auto"`
		// Stall is after how many seconds without activity an attempt is ended; 0 means the default, 900.
		Stall int64 `toml:"stall_seconds"`
	} `toml:"recovery"`
	Instructions struct {
		Disabled bool `toml:"disabled"`
		// MaxKiB bounds all instruction files together; 0 means the default, 64.
		MaxKiB int64 `toml:"max_kib"`
	} `toml:"instructions"`
}

// Server is one stdio MCP server.
type Server struct {
	Command string            `toml:"command"`
	Args    []string          `toml:"args"`
	Env     map[string]string `toml:"env"`
	// EnvFrom names variables of Holdfast's own environment that are passed on.
	EnvFrom  []string `toml:"env_from"`
	Disabled bool     `toml:"disabled"`
}

// Limits are whole seconds.
type Limits struct {
	Start int64 `toml:"start_seconds"` // from the launch of a server to its tool list; default 60
	Idle  int64 `toml:"idle_seconds"`  // a call without an answer and without progress; default 120
	Call  int64 `toml:"call_seconds"`  // a call, whatever progress it reports; default 1800
}

// Environ is the server's configured environment, sorted.
func (s Server) Environ(getenv func(string) (string, bool)) []string {
	var out []string
	for k, v := range s.Env {
		out = append(out, k+"="+v)
	}
	for _, k := range s.EnvFrom {
		if v, ok := getenv(k); ok {
			out = append(out, k+"="+v)
		}
	}
	slices.Sort(out)
	return out
}

// File is a configuration file that was read and holds no mistake.
type File struct {
	Path   string
	Exists bool
	Config Config
	Values []Value // in the order of the file
}

// MaxSize bounds a configuration file.
const MaxSize = 1 << 20

// Path is where the user's configuration is: in the state directory when there is one, else in the user's own place.
func Path(stateDir, userHome string) string {
	p := filepath.Join(stateDir, "config.toml")
	if _, err := os.Stat(p); err == nil || userHome == "" {
		return p
	}
	return filepath.Join(userHome, ".config", "holdfast", "config.toml")
}

// Load reads the user's configuration. No file is an empty one. An error is of the type Errors.
func Load(path string) (Config, error) {
	f, err := Read(path)
	return f.Config, err
}

// Read is Load with where each value stands. After an error the file holds nothing but its path.
func Read(path string) (File, error) { return ReadAs(path, false) }

// ReadAs is Read for those who know whose file it is.
func ReadAs(path string, project bool) (File, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return File{Path: path}, nil
	}
	if err != nil || !st.Mode().IsRegular() { // opening a pipe would wait for its writer
		return File{Path: path}, Errors{unreadable(path)}
	}
	f, err := os.Open(path)
	if err != nil {
		return File{Path: path}, Errors{unreadable(path)}
	}
	defer func() { _ = f.Close() }()
	return read(path, f, project)
}

// read takes an open file.
func read(path string, r io.Reader, project bool) (File, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return File{Path: path}, Errors{unreadable(path)}
	}
	return Parse(path, b, project)
}

// Mentions tells whether a file that cannot be used may set something in a table. In doubt it does.
func Mentions(path, table string) bool {
	f, err := os.Open(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, MaxSize))
	return err != nil || bytes.Contains(b, []byte(table))
}

func unreadable(path string) *Error {
	return &Error{Path: path, Message: "it cannot be read", Write: "check its permissions and that it is a file"}
}

// Parse takes the content of a file, with path as its name in errors. A project's file may hold less than the user's.
func Parse(path string, b []byte, project bool) (File, error) {
	if len(b) > MaxSize {
		return File{Path: path}, Errors{{Path: path, Message: fmt.Sprintf("it is larger than %d KiB", MaxSize>>10), Write: "make it smaller"}}
	}
	b = bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF")) // editors on Windows write it
	entries, errs := parse(path, b)
	if len(errs) > 0 {
		return File{Path: path}, errs
	}
	values, errs := check(path, project, entries)
	if len(errs) > 0 {
		return File{Path: path}, errs
	}
	f := File{Path: path, Exists: true, Values: values}
	d := toml.NewDecoder(bytes.NewReader(b)).DisallowUnknownFields()
	if err := d.Decode(&f.Config); err != nil { // the table and the struct disagree
		return File{Path: path}, Errors{syntax(path, err)}
	}
	return f, nil
}
