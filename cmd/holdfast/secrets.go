package main

import (
	"os"
	"strings"
	"sync"

	"holdfast/internal/keys"
	"holdfast/internal/provider"
	"holdfast/internal/secret"
	"holdfast/mcp/toolbox"
)

// secrets are what this process must not show: one masker, used at every border, and the keys that setup has kept.
type secrets struct {
	mask *secret.Masker
	keys *keys.Store
}

// newSecrets knows what the environment and the configuration hold. Keys of setup become known with their first use, which is before
// anything could show them; those in the file at once.
func newSecrets(home string) *secrets {
	s := &secrets{mask: secret.New(secret.Environ(os.Environ(), provider.SecretEnv)...), keys: openKeys(home)}
	if home == "" {
		return s
	}
	if c, err := settings(home); err == nil {
		s.mask.Add(toolbox.Secrets(configured(c))...)
	}
	if list, err := s.keys.List(); err == nil {
		for _, e := range list {
			if e.Where == keys.InFile {
				s.getenv(keys.Variables[e.Provider])
			}
		}
	}
	return s
}

// openKeys finds the keys of a state directory. HOLDFAST_KEYRING=off leaves the system's keyring alone.
func openKeys(home string) *keys.Store {
	ring := keys.System()
	if os.Getenv("HOLDFAST_KEYRING") == "off" {
		ring = nil
	}
	return keys.Open(home, ring)
}

// getenv is the environment, with the kept keys where it has none. What cannot be read is absent: doctor says why.
func (s *secrets) getenv(name string) string {
	v := os.Getenv(name)
	if strings.TrimSpace(v) == "" {
		for p, variable := range keys.Variables {
			if variable == name {
				v, _, _ = s.keys.Get(p)
			}
		}
	}
	if provider.SecretEnv(name) {
		s.mask.Add(v)
	}
	return v
}

var (
	secretsMu   sync.Mutex
	secretsHere = map[string]*secrets{}
)

// secretsOf are the secrets of this process for a state directory: one for all its borders.
func secretsOf(home string) *secrets {
	secretsMu.Lock()
	defer secretsMu.Unlock()
	s := secretsHere[home]
	if s == nil {
		s = newSecrets(home)
		secretsHere[home] = s
	}
	return s
}
