package toolbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strings"

	"holdfast/internal/secret"
	"holdfast/mcp/client"
	"holdfast/session"
)

// Server is the definition of a stdio server, with its secret values.
type Server struct {
	Name    string
	Command string
	Args    []string
	Env     []string // NAME=value
}

// Client is the definition for the one who runs it in a directory.
func (s Server) Client(dir string) client.Config {
	return client.Config{Name: s.Name, Command: s.Command, Args: s.Args, Env: s.Env, Dir: dir, Secrets: s.secrets()}
}

// digest is a keyed hash over the whole definition.
func (s Server) digest(key []byte) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("toolbox: a definition of strings cannot fail to encode: " + err.Error())
	}
	h := hmac.New(sha256.New, key)
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil))
}

// stored is what the store keeps of a definition.
func (s Server) stored(key []byte) session.ServerDef {
	d := session.ServerDef{Name: s.Name, Command: s.Command, Args: masked(s.Args), Digest: s.digest(key), Env: []string{}}
	for _, e := range s.Env {
		name, _, _ := strings.Cut(e, "=")
		d.Env = append(d.Env, name)
	}
	return d
}

// secrets are the values that a server's own output must not show: every environment value, and what of its arguments may be one.
func (s Server) secrets() []string {
	out := s.named()
	for _, e := range s.Env {
		if _, v, _ := strings.Cut(e, "="); len(v) >= 6 { // shorter ones would hide half of every text
			out = append(out, v)
		}
	}
	return out
}

// named are the values that are plainly secrets: of variables and arguments that are named like one, and of addresses with a password in
// them. Other values (a directory, a log level) are what a tool works with.
func (s Server) named() []string {
	var out []string
	for _, e := range s.Env {
		name, v, _ := strings.Cut(e, "=")
		if secretName.MatchString(name) {
			out = append(out, v)
		} else {
			out = append(out, secret.Inside(v)...)
		}
	}
	return append(out, s.arguments()...)
}

// everywhere are the values that are hidden at every border of this process, not only in what the server answers.
func (s Server) everywhere() []string { return append(secret.Server(s.Env), s.arguments()...) }

// Secrets are the secret values of definitions.
func Secrets(servers []Server) (out []string) {
	for _, s := range servers {
		out = append(out, s.everywhere()...)
	}
	return out
}

// arguments are what of the arguments may be a secret.
func (s Server) arguments() (out []string) {
	shown := masked(s.Args)
	for i, a := range s.Args {
		if shown[i] == a {
			continue
		}
		out = append(out, a)
		out = append(out, secret.Inside(a)...)
		if at := strings.IndexAny(a, "=:"); at > 0 {
			out = append(out, strings.TrimSpace(a[at+1:]))
		}
	}
	return out
}

// veil hides what is plainly a secret of this server in what it answers, however the answer writes it.
func (s Server) veil() *secret.Masker { return secret.New(s.named()...) }

// veiled is an answer without the secrets of its server. The digest stays that of the answer as it came.
func veiled(a client.Answer, masks ...*secret.Masker) client.Answer {
	for _, m := range masks {
		a.Raw = json.RawMessage(m.Text(string(m.JSON(a.Raw))))
		a.Text, a.User = m.Text(a.Text), m.Text(a.User)
	}
	return a
}

var (
	// secretName is what names a secret, as a variable, a flag or a header.
	secretName = regexp.MustCompile(`(?i)(key|token|secret|passw|passphrase|pwd|auth|credential|bearer|cookie|header|signature|dsn|(^|[-_])(pat|pass|sig)($|[-_]))`)
	// secretText is what looks like one by itself.
	secretText = regexp.MustCompile(`(?i)(://[^/@\s]*:[^/@\s]+@|\b(bearer|basic)\s|^sk-|^gh[a-z]_|^github_pat_|^xox|^AKIA|-----BEGIN)`)
	word       = regexp.MustCompile(`^-{0,2}[A-Za-z_][\w.-]*$`)
)

const hidden = "***"

// masked replaces arguments that may hold a secret: the value of a flag, variable or header that is named like one, and texts that look
// like one.
func masked(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		at := strings.IndexAny(a, "=:")
		flag := i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=")
		switch {
		case at > 0 && at < len(a)-1 && word.MatchString(a[:at]) && secretName.MatchString(a[:at]):
			out[i] = a[:at+1] + hidden
		case secretText.MatchString(a):
			out[i] = hidden
		case flag && secretName.MatchString(args[i-1]) && !strings.HasPrefix(a, "-"):
			out[i] = hidden
		default:
			out[i] = a
		}
	}
	return out
}
