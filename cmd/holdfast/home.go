package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"sync"

	"github.com/rs/zerolog"

	"holdfast/internal/secret"
)

// homeDir is the state directory. The user's home comes from the user database: editors pass very different environments, and there
// must be one store.
func homeDir() (string, error) {
	if h := os.Getenv("HOLDFAST_HOME"); h != "" {
		if !filepath.IsAbs(h) {
			return "", fmt.Errorf("HOLDFAST_HOME is %q; it must be an absolute path", h)
		}
		return filepath.Clean(h), nil
	}
	home := userHome()
	if home == "" {
		return "", errors.New("the user database names no home directory; set HOLDFAST_HOME to a directory of your own")
	}
	return filepath.Join(home, ".local", "state", "holdfast"), nil
}

// userHome is the home directory of the user database, or "".
func userHome() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.HomeDir
}

// ownPlaces are the folders beside the state directory that no tool may use: where the user's configuration is looked for.
func ownPlaces() []string {
	home := userHome()
	if home == "" {
		return nil
	}
	return []string{filepath.Join(home, ".config", "holdfast")}
}

// openLog returns the log: a private file in the state directory, or nothing. HOLDFAST_LOG sets the level; errors are always kept.
func openLog(home string) (zerolog.Logger, io.Closer) {
	level, err := zerolog.ParseLevel(os.Getenv("HOLDFAST_LOG"))
	if err != nil || level == zerolog.NoLevel {
		level = zerolog.ErrorLevel
	}
	f := &lazyFile{path: filepath.Join(home, "log.jsonl"), mask: secretsOf(home).mask}
	zerolog.ErrorHandler = func(error) {} // editors show what is on the standard error as an error; a full disk is told by what cannot be stored
	return zerolog.New(f).Level(level).With().Timestamp().Int("pid", os.Getpid()).Logger(), f
}

// lazyFile opens its file at the first write: a process without anything to say leaves no log, and a state directory that cannot be
// written is reported by the store, not by the log.
type lazyFile struct {
	path string
	mask *secret.Masker

	mu  sync.Mutex // several goroutines log
	f   *os.File
	off bool
}

func (l *lazyFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil && !l.off {
		f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|noFollow, 0o600)
		if err != nil {
			l.off = true
		}
		l.f = f
	}
	if l.off {
		return len(p), nil
	}
	if _, err := l.f.WriteString(l.mask.Text(string(p))); err != nil { // one line, whole
		return 0, err
	}
	return len(p), nil
}

func (l *lazyFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	return l.f.Close()
}
