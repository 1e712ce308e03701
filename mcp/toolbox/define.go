package toolbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strings"

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

// secrets are the values that must not be shown: every environment value, and arguments that may be one.
func (s Server) secrets() []string {
	var out []string
	for _, e := range s.Env {
		if _, v, _ := strings.Cut(e, "="); len(v) >= 6 { // shorter ones would hide half of every text
			out = append(out, v)
		}
	}
	shown := masked(s.Args)
	for i, a := range s.Args {
		if shown[i] == a {
			continue
		}
		if _, v, ok := strings.Cut(a, "="); ok && strings.HasPrefix(a, "-") {
			a = v
		}
		out = append(out, a)
	}
	return out
}

// veil hides what is plainly a secret of this server in what it answers: the values of variables and arguments that are named like one.
// Other values (a directory, a log level) are what a tool works with and stay.
func (s Server) veil() *strings.Replacer {
	var pairs []string
	add := func(v string) {
		if len(v) >= 8 {
			pairs = append(pairs, v, hidden)
		}
	}
	for _, e := range s.Env {
		if name, v, _ := strings.Cut(e, "="); secretFlag.MatchString(name) {
			add(v)
		}
	}
	bare := Server{Args: s.Args}
	for _, v := range bare.secrets() {
		add(v)
	}
	return strings.NewReplacer(pairs...)
}

// veiled is an answer without the secrets of its server. The digest stays that of the answer as it came.
func veiled(r *strings.Replacer, a client.Answer) client.Answer {
	a.Raw = json.RawMessage(r.Replace(string(a.Raw)))
	a.Text, a.User = r.Replace(a.Text), r.Replace(a.User)
	return a
}

var (
	secretFlag = regexp.MustCompile(`(?i)(key|token|secret|passw|auth|credential|bearer|cookie|header)`)
	secretText = regexp.MustCompile(`(?i)(://[^/@\s]+:[^/@\s]+@|bearer\s|^sk-|^gh[a-z]_|^xox)`)
)

const hidden = "***"

// masked replaces arguments that may hold a secret: the value of a flag that names one, and texts that look like one.
func masked(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		name, value, assigned := strings.Cut(a, "=")
		switch {
		case assigned && value != "" && secretFlag.MatchString(name):
			out[i] = name + "=" + hidden
		case secretText.MatchString(a):
			out[i] = hidden
		case i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=") && secretFlag.MatchString(args[i-1]) && !strings.HasPrefix(a, "-"):
			out[i] = hidden
		default:
			out[i] = a
		}
	}
	return out
}
