package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Spec is what a command is confined to. Paths are absolute.
type Spec struct {
	Writable []string `json:"writable"` // folders, and everything below them
	Hidden   []string `json:"hidden"`   // files and folders that cannot be read or written
	Network  bool     `json:"network"`  // the command may use it

	Own bool `json:"own"` // set by Wrap: the command gets a network of its own
}

// Wall is what confines commands on this system.
type Wall struct {
	Name      string // "landlock", "bubblewrap", or "" for none
	ABI       int    // of Landlock
	Reason    string // without a wall: why, in one sentence
	Namespace bool   // commands can get a network of their own, in which only the loopback is
	program   string // of bubblewrap
}

// ErrNone: nothing here can confine a command.
var ErrNone = errors.New("commands cannot be confined here")

// hiddenName is the argument under which this binary is the helper.
const hiddenName = "__confine"

// Command is what is started in the place of argv.
type Command struct {
	Argv []string
	// OwnNetwork asks for a new user and network namespace around the command.
	OwnNetwork bool
}

// Wrap confines argv. self is this binary.
func (w Wall) Wrap(self string, s Spec, argv []string) (Command, error) {
	switch w.Name {
	case "landlock":
		s.Own = !s.Network && w.Namespace
		spec, err := json.Marshal(s)
		if err != nil {
			return Command{}, fmt.Errorf("confine a command: %w", err)
		}
		return Command{append([]string{self, hiddenName, string(spec)}, argv...), s.Own}, nil
	case "bubblewrap":
		return Command{append(w.bubble(s), argv...), false}, nil
	}
	return Command{}, fmt.Errorf("%w: %s", ErrNone, w.Reason)
}

// bubble is the start of a command line of bubblewrap. Later binds lie over earlier ones: what may be written inside a hidden place comes last.
func (w Wall) bubble(s Spec) []string {
	args := []string{w.program, "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--unshare-pid", "--proc", "/proc"}
	inHidden := func(dir string) bool {
		return slices.ContainsFunc(s.Hidden, func(h string) bool { return within(h, dir) })
	}
	for _, dir := range s.Writable {
		if !inHidden(dir) {
			args = append(args, "--bind-try", dir, dir)
		}
	}
	for _, p := range s.Hidden {
		info, err := os.Lstat(p)
		switch {
		case err != nil: // nothing to hide
		case info.IsDir():
			args = append(args, "--tmpfs", p)
			for _, dir := range s.Writable {
				if within(p, dir) {
					args = append(args, "--bind-try", dir, dir)
				}
			}
			args = append(args, "--remount-ro", p)
		default:
			args = append(args, "--ro-bind", os.DevNull, p)
		}
	}
	if !s.Network {
		args = append(args, "--unshare-net")
	}
	return append(args, "--")
}

// Limits says in words what the wall does not do.
func (w Wall) Limits() string {
	switch {
	case w.Name == "":
		return w.Reason
	case w.Name == "landlock" && !w.Namespace && w.ABI < 4:
		return "the network stays open: this kernel cannot close it"
	case w.Name == "landlock" && !w.Namespace && w.ABI < udpABI:
		return "the network is closed for TCP only, the loopback included"
	case w.Name == "landlock":
		return "sockets of local services that lie in the file system stay reachable"
	}
	return ""
}

// Confines tells whether the folders can be written without opening the state directory to the command.
func Confines(stateDir string, writable []string) error {
	for _, dir := range writable {
		if within(dir, stateDir) || within(stateDir, dir) {
			return fmt.Errorf("%w: the state directory lies in %s", ErrNone, dir)
		}
	}
	return nil
}

// within tells whether path is dir or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// Temporary lists the folders for temporary files that an environment names, and the usual ones.
func Temporary(env []string) []string {
	dirs := []string{"/tmp", "/var/tmp", "/dev/shm"}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if (name == "TMPDIR" || name == "TMP" || name == "TEMP") && filepath.IsAbs(value) && !slices.Contains(dirs, value) {
			dirs = append(dirs, filepath.Clean(value))
		}
	}
	return slices.DeleteFunc(dirs, func(d string) bool { info, err := os.Stat(d); return err != nil || !info.IsDir() })
}

// secretPlaces are where programs of a user keep keys, below the home directory.
var secretPlaces = []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker/config.json", ".netrc", ".git-credentials", ".npmrc", ".pypirc",
	".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".password-store", ".local/share/keyrings", ".mozilla", ".config/google-chrome",
	".config/chromium", ".cargo/credentials.toml", ".cargo/credentials", ".terraform.d/credentials.tfrc.json", ".vault-token"}

// Secrets lists the places below a home directory that a confined command cannot read.
func Secrets(home string) []string {
	var list []string
	for _, p := range secretPlaces {
		path := filepath.Join(home, p)
		if _, err := os.Lstat(path); err == nil {
			list = append(list, path)
		}
	}
	return list
}
