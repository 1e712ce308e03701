package provider

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// dialect is how a server that calls itself compatible wants to be asked by chat completions. What servers do differently in their answers
// is understood from all of them (see answer.go), because versions of one server differ as much as servers do.
type dialect struct {
	name     string
	hosts    []string // "host", ".domain" or ":port" of the base URL
	newLimit bool     // the output limit is called max_completion_tokens; others know only max_tokens
	noUsage  bool     // refuses to be asked for token counts; some send them all the same
	shortIDs bool     // takes only call ids of nine letters and digits
	cacheKey bool     // looks for the beginning of a request in the cache that prompt_cache_key names; others may refuse the member
}

// dialects are the known ones. The first that fits counts; a server that none fits gets what most of them take.
var dialects = []dialect{
	{name: "openai", hosts: []string{"api.openai.com"}, newLimit: true, cacheKey: true},
	{name: "azure", hosts: []string{".openai.azure.com"}, newLimit: true, cacheKey: true},
	{name: "mistral", hosts: []string{"api.mistral.ai"}, noUsage: true, shortIDs: true},
	{name: "openrouter", hosts: []string{"openrouter.ai"}},
	{name: "ollama", hosts: []string{":11434"}},
	{name: "lmstudio", hosts: []string{":1234"}},
	{name: "vllm", hosts: []string{":8000"}},
	{name: "plain"},
}

// Dialects are the names of the known ones.
func Dialects() (names []string) {
	for _, d := range dialects {
		names = append(names, d.name)
	}
	return names
}

// dialectOf is the dialect of that name, or without one that of the address.
func dialectOf(name string, base *url.URL) (dialect, error) {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, d := range dialects {
		if d.name == name || name == "" && (len(d.hosts) == 0 || d.fits(base)) {
			return d, nil
		}
	}
	return dialect{}, fmt.Errorf("HOLDFAST_OPENAI_DIALECT is %q: the known ones are %s", clip(oneLine(name), 60), strings.Join(Dialects(), ", "))
}

func (d dialect) fits(base *url.URL) bool {
	host := strings.ToLower(base.Hostname())
	for _, h := range d.hosts {
		if h == host || h[0] == ':' && h[1:] == base.Port() || h[0] == '.' && strings.HasSuffix(host, h) {
			return true
		}
	}
	return false
}

// cacheName is the name of a conversation as the wire takes it; "" for a server that does not know the member.
func (d dialect) cacheName(conversation string) string {
	if !d.cacheKey || conversation == "" {
		return ""
	}
	name := strings.TrimPrefix(conversation, "sha256:")
	return "holdfast-" + name[:min(len(name), 40)] // the wire takes 64 characters
}

var nine = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

// callID is a call's id as the server takes it. Call and result get the same replacement.
func (d dialect) callID(id string) string {
	if !d.shortIDs {
		return wireID(id)
	}
	if nine.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:9]
}
