package keys

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Keyring is the system's own store of secrets.
type Keyring interface {
	Set(service, user, secret string) error
	Get(service, user string) (string, error)
	Delete(service, user string) error
}

// Store are the keys of one state directory.
type Store struct {
	home string
	ring Keyring // nil where there is none

	mu   sync.Mutex
	seen map[string]string // what the keyring has answered
}

// Entry is a key without its value.
type Entry struct {
	Provider string `json:"provider"`
	Where    string `json:"where"`
}

type kept struct {
	Where string `json:"where"`
	Key   string `json:"key,omitempty"` // in the file only
}

type document struct {
	Keys map[string]kept `json:"keys"`
}

// Open returns the keys of a state directory; nothing is read yet. ring is nil for no keyring.
func Open(home string, ring Keyring) *Store {
	return &Store{home: home, ring: ring, seen: map[string]string{}}
}

// Path is the file that says where the keys are.
func Path(home string) string { return filepath.Join(home, "keys.json") }

// service names this state directory's keys in a keyring that all of them share.
func (s *Store) service() string { return "holdfast:" + s.home }

// longest is more than any key is long.
const longest = 8 << 10

// Check says what is wrong with a key, without a part of it.
func Check(key string) error {
	switch {
	case key == "":
		return errors.New("the key is empty")
	case len(key) < 8:
		return errors.New("the key is too short to be one: at least 8 characters are expected")
	case len(key) > longest:
		return fmt.Errorf("the key has more than %d characters", longest)
	case strings.ContainsFunc(key, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar }):
		return errors.New("the key holds white space or control characters")
	}
	return nil
}

// Set keeps a key. where is InKeyring, InFile, or "" for the keyring and, should that not work, the file. It returns where the key is, and why
// it is not in the keyring.
func (s *Store) Set(provider, key, where string) (place string, why error, err error) {
	if Variables[provider] == "" {
		return "", nil, fmt.Errorf("there is no provider %q; known are %s", provider, strings.Join(Providers(), " and "))
	}
	if err := Check(key); err != nil {
		return "", nil, err
	}
	d, err := s.load()
	if err != nil {
		return "", nil, err
	}
	entry := kept{Where: InFile, Key: key}
	if where != InFile {
		if why = s.toRing(provider, key); why == nil {
			entry = kept{Where: InKeyring}
		} else if where == InKeyring {
			return "", nil, fmt.Errorf("the system's keyring cannot be used: %w", why)
		}
	}
	if old := d.Keys[provider]; old.Where == InKeyring && entry.Where == InFile && s.ring != nil {
		_ = bounded(func() error { return s.ring.Delete(s.service(), provider) }) // the file is what counts from now on
	}
	d.Keys[provider] = entry
	s.remember(provider, "")
	return entry.Where, why, s.save(d)
}

func (s *Store) toRing(provider, key string) error {
	if s.ring == nil {
		return errors.New("there is none here; --store file keeps the key in a private file")
	}
	return bounded(func() error {
		if err := s.ring.Set(s.service(), provider, key); err != nil {
			return err
		}
		if got, err := s.ring.Get(s.service(), provider); err != nil || got != key {
			return errors.New("it does not give back what it was given")
		}
		return nil
	})
}

// Get returns a key, "" when none is kept.
func (s *Store) Get(provider string) (key, where string, err error) {
	d, err := s.load()
	if err != nil {
		return "", "", err
	}
	e, ok := d.Keys[provider]
	switch {
	case !ok:
		return "", "", nil
	case e.Where == InFile:
		return e.Key, InFile, nil
	}
	if key := s.remember(provider, "?"); key != "" {
		return key, InKeyring, nil
	}
	if s.ring == nil {
		return "", InKeyring, fmt.Errorf("the key of %s is in the system's keyring, and there is none here: run 'holdfast setup' again", provider)
	}
	err = bounded(func() (err error) { key, err = s.ring.Get(s.service(), provider); return err })
	if err != nil {
		return "", InKeyring, fmt.Errorf("the key of %s is in the system's keyring, which does not give it out (%w): unlock it, or run 'holdfast setup' again",
			provider, err)
	}
	s.remember(provider, key)
	return key, InKeyring, nil
}

// remember keeps what the keyring answered; "?" only asks.
func (s *Store) remember(provider, key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key != "?" {
		s.seen[provider] = key
	}
	return s.seen[provider]
}

// Remove forgets a key; false when there was none.
func (s *Store) Remove(provider string) (bool, error) {
	d, err := s.load()
	if err != nil {
		return false, err
	}
	e, ok := d.Keys[provider]
	if !ok {
		return false, nil
	}
	if e.Where == InKeyring && s.ring != nil {
		if err := bounded(func() error { return s.ring.Delete(s.service(), provider) }); err != nil {
			return false, fmt.Errorf("remove the key of %s from the system's keyring: %w", provider, err)
		}
	}
	delete(d.Keys, provider)
	s.remember(provider, "")
	return true, s.save(d)
}

// List names the keys that are kept.
func (s *Store) List() ([]Entry, error) {
	d, err := s.load()
	out := []Entry{}
	for _, p := range slices.Sorted(maps.Keys(d.Keys)) {
		out = append(out, Entry{p, d.Keys[p].Where})
	}
	return out, err
}

// Providers lists whom a key can be kept for.
func Providers() []string { return slices.Sorted(maps.Keys(Variables)) }

func (s *Store) load() (document, error) {
	d := document{Keys: map[string]kept{}}
	path := Path(s.home)
	f, err := openPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	defer func() { _ = f.Close() }()
	if err := json.NewDecoder(f).Decode(&d); err != nil { // the cause might repeat a part of it
		return document{Keys: map[string]kept{}}, fmt.Errorf("%s cannot be read: remove it and run 'holdfast setup' again", path)
	}
	if d.Keys == nil {
		d.Keys = map[string]kept{}
	}
	return d, nil
}

// save replaces the file, which is never open to others, not for a moment.
func (s *Store) save(d document) error {
	path := Path(s.home)
	if len(d.Keys) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", path, err)
		}
		return nil
	}
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return errors.New("encode the keys")
	}
	f, err := os.CreateTemp(s.home, ".keys-*") // 0600, under a name that nobody can foresee
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // best effort after a failure
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// patience is how long a keyring may take: it may be asking a person who is not there.
const patience = 20 * time.Second

// bounded gives up on a keyring that does not answer. What it was asked ends by itself or with the process.
func bounded(ask func() error) error {
	done := make(chan error, 1)
	go func() { done <- ask() }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		return errors.New("it does not answer")
	}
}
