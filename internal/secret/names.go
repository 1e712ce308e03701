package secret

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// nameWords are parts of the names of variables that hold secrets.
var nameWords = []string{"KEY", "KEYS", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "PWD", "PASS", "CREDENTIAL", "CREDENTIALS",
	"AUTH", "PAT", "COOKIE", "DSN", "APIKEY", "BEARER", "SIGNATURE"}

// Named tells whether a variable is named like a secret.
func Named(name string) bool {
	name = strings.ToUpper(strings.TrimRight(name, "0123456789_"))
	if name == "PWD" || name == "OLDPWD" {
		return false // shells keep directories there
	}
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
		for _, w := range nameWords {
			if part == w || len(w) >= 5 && strings.HasSuffix(part, w) || w == "KEY" && strings.HasSuffix(part, "APIKEY") {
				return true
			}
		}
	}
	return false
}

// Environ are the values of an environment that are secrets: of variables that are named so, and passwords inside addresses. own tells which
// variables are secrets for certain.
func Environ(environ []string, own func(name string) bool) (out []string) {
	for _, kv := range environ {
		name, v, _ := strings.Cut(kv, "=")
		switch {
		case own != nil && own(name):
			out = append(out, v)
		case Named(name) && worth(v):
			out = append(out, v)
		}
		out = append(out, Inside(v)...)
	}
	return out
}

// Server are the values of an MCP server's environment that are secrets: those of Environ, and what looks drawn at random whatever its name.
func Server(environ []string) []string {
	out := Environ(environ, nil)
	for _, kv := range environ {
		if _, v, _ := strings.Cut(kv, "="); drawn(v) {
			out = append(out, v)
		}
	}
	return out
}

// worth refuses values that only look like secrets by the name of their variable: paths, numbers, switches and plain words. Masking them would
// take words out of every text.
func worth(v string) bool {
	v = strings.TrimSpace(v)
	if len(v) < shortest || plainWord.MatchString(v) || number.MatchString(v) {
		return false
	}
	if strings.HasPrefix(v, "~/") || strings.HasPrefix(v, "./") {
		return false
	}
	if filepath.IsAbs(v) {
		if _, err := os.Stat(v); err == nil || strings.Count(v, "/") > 2 {
			return false
		}
	}
	return true
}

// drawn tells whether a value looks drawn at random.
func drawn(v string) bool {
	return len(v) >= 16 && word.MatchString(v) && strings.ContainsAny(v, digits) && strings.ContainsAny(v, upper+lowers) && worth(v)
}

// Inside finds secrets within a value: the password of an address, the credential behind a scheme.
func Inside(v string) (out []string) {
	for _, re := range []*regexp.Regexp{passwordIn, schemeIn} {
		for _, m := range re.FindAllStringSubmatch(v, -1) {
			if worth(m[1]) {
				out = append(out, m[1])
			}
		}
	}
	return out
}

var (
	plainWord  = regexp.MustCompile(`^([a-z]{1,15}|[A-Z]{1,15}|[A-Z]?[a-z]{1,14})$`)
	number     = regexp.MustCompile(`^[0-9.:,-]{1,15}$`)
	word       = regexp.MustCompile(`^[A-Za-z0-9_+/=.-]+$`)
	passwordIn = regexp.MustCompile(`://[^/@\s:]*:([^/@\s]+)@`)
	schemeIn   = regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+(\S+)`)
)
