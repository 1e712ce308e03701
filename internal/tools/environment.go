package tools

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"holdfast/session"
)

// plainNames look like secrets and are none: places, names and addresses that commands need.
var plainNames = []string{"PWD", "OLDPWD", "SSH_AUTH_SOCK", "XAUTHORITY", "XKB_DEFAULT_LAYOUT", "SSH_ASKPASS", "GIT_ASKPASS", "SUDO_ASKPASS"}

var (
	secretName = regexp.MustCompile(`KEY|TOKEN|SECRET|PASSW|PASSPHRASE|PWD|AUTH|CREDENTIAL|COOKIE|BEARER|SIGNATURE|PRIVATE|DSN|(^|_)(PAT|PASS|PIN|SIG|OTP|JWT)($|_)`)
	// secretValue is what looks like a key by itself: an address with a password, a header, and the beginnings that services give theirs.
	secretValue = regexp.MustCompile(`(?i)(secret|passw|://[^/@\s]*:[^/@\s]+@|\b(bearer|basic)\s+\S|\b(sk|rk|pk)[-_][a-z0-9_-]{8}|\bgh[a-z]_[a-z0-9]|\bgithub_pat_|` +
		`\bglpat-|\bxox[a-z]-|\bAKIA[A-Z0-9]|\bAIza|\bnpm_[a-z0-9]{8}|\bhf_[a-z0-9]{8}|\beyJ[a-z0-9_-]+\.|-----BEGIN)`)
	// secretWord is one long word of letters and digits, as random ones are.
	secretWord = regexp.MustCompile(`^[A-Za-z0-9+_=-][A-Za-z0-9+/_=-]{15,}$`)
	letter     = regexp.MustCompile(`[A-Za-z]`)
	digit      = regexp.MustCompile(`[0-9]`)
)

// mayHoldSecret tells whether a variable may hold one. To be wrong costs a command that variable in another process; the other way costs the secret.
func mayHoldSecret(name, value string) bool {
	name = strings.ToUpper(name)
	if value == "" || slices.Contains(plainNames, name) {
		return false
	}
	if secretName.MatchString(strings.ReplaceAll(name, "AUTHOR", "")) || secretValue.MatchString(value) {
		return true
	}
	return secretWord.MatchString(value) && letter.MatchString(value) && digit.MatchString(value)
}

// Stored is an environment for commands as the store keeps it. key is that of the store; named are variables that the user treats as secrets.
func Stored(env []string, key []byte, named ...string) session.Environment {
	var vars []session.Variable
	for _, kv := range env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" {
			continue
		}
		v := session.Variable{Name: name, Value: strings.ToValidUTF8(value, "")}
		if v.Value != value || mayHoldSecret(name, value) || slices.Contains(named, name) { // what is no text could not come back as it was
			mac := hmac.New(sha256.New, key)
			mac.Write([]byte(kv))
			v = session.Variable{Name: name, Hash: hex.EncodeToString(mac.Sum(nil))}
		}
		vars = append(vars, v)
	}
	return session.NewEnvironment(vars)
}
