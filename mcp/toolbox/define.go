package toolbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"

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
			out = append(out, inside(v)...)
		}
	}
	shown := masked(s.Args)
	for i, a := range s.Args {
		if shown[i] == a {
			continue
		}
		out = append(out, a)
		out = append(out, inside(a)...)
		if at := strings.IndexAny(a, "=:"); at > 0 {
			out = append(out, strings.TrimSpace(a[at+1:]))
		}
	}
	return out
}

// inside finds secrets within a value: the password of an address, the credential behind a scheme.
func inside(v string) (out []string) {
	for _, re := range []*regexp.Regexp{passwordIn, schemeIn} {
		for _, m := range re.FindAllStringSubmatch(v, -1) {
			out = append(out, m[1])
		}
	}
	return out
}

// veil hides what is plainly a secret of this server in what it answers, however the answer writes it.
func (s Server) veil() *strings.Replacer {
	seen := map[string]bool{}
	var forms []string
	add := func(v string) {
		if len(v) >= 8 && !seen[v] {
			seen[v] = true
			forms = append(forms, v)
		}
	}
	for _, v := range s.named() {
		add(v)
		for _, form := range escaped(v) {
			add(form)
		}
		for line := range strings.Lines(v) {
			add(strings.TrimSpace(line))
		}
	}
	slices.SortStableFunc(forms, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, v := range forms {
		pairs = append(pairs, v, hidden)
	}
	return strings.NewReplacer(pairs...)
}

// escaped is a value as it may stand inside a JSON text: with and without the escapes that are a matter of taste.
func escaped(v string) []string {
	var plain, ascii, all strings.Builder
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return nil
	}
	short := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(plain.String()), `"`), `"`)
	for _, r := range short {
		switch {
		case r > 0xFFFF:
			a, b := utf16.EncodeRune(r)
			fmt.Fprintf(&ascii, `\u%04x\u%04x`, a, b)
			fmt.Fprintf(&all, `\u%04x\u%04x`, a, b)
		case r > 0x7E:
			fmt.Fprintf(&ascii, `\u%04x`, r)
			fmt.Fprintf(&all, `\u%04x`, r)
		case r == '<' || r == '>' || r == '&':
			ascii.WriteRune(r)
			fmt.Fprintf(&all, `\u%04x`, r)
		default:
			ascii.WriteRune(r)
			all.WriteRune(r)
		}
	}
	html, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return []string{short, ascii.String(), all.String(), string(html[1 : len(html)-1])}
}

// veiled is an answer without the secrets of its server. The digest stays that of the answer as it came.
func veiled(r *strings.Replacer, a client.Answer) client.Answer {
	a.Raw = json.RawMessage(r.Replace(string(a.Raw)))
	a.Text, a.User = r.Replace(a.Text), r.Replace(a.User)
	return a
}

var (
	// secretName is what names a secret, as a variable, a flag or a header.
	secretName = regexp.MustCompile(`(?i)(key|token|secret|passw|passphrase|pwd|auth|credential|bearer|cookie|header|signature|dsn|(^|[-_])(pat|pass|sig)($|[-_]))`)
	// secretText is what looks like one by itself.
	secretText = regexp.MustCompile(`(?i)(://[^/@\s]*:[^/@\s]+@|\b(bearer|basic)\s|^sk-|^gh[a-z]_|^github_pat_|^xox|^AKIA|-----BEGIN)`)
	word       = regexp.MustCompile(`^-{0,2}[A-Za-z_][\w.-]*$`)
	passwordIn = regexp.MustCompile(`://[^/@\s:]*:([^/@\s]+)@`)
	schemeIn   = regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+(\S+)`)
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
