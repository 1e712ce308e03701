package session

import (
	"net"
	"net/netip"
	"strings"
)

// HostRule covers fetches from the hosts that a pattern names: one host, "*." and a domain for every name below it, or "*". A port may follow.
func HostRule(pattern string) (Rule, bool) {
	pattern = strings.ToLower(strings.TrimSpace(pattern))
	name, port := hostPort(pattern)
	rest := strings.TrimPrefix(name, "*.")
	_, ip := netip.ParseAddr(strings.Trim(name, "[]"))
	word := rest != "" && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" && !strings.HasPrefix(rest, ".") && !strings.HasSuffix(rest, ".")
	return Rule{Kind: RuleHost, Tool: "fetch", Value: pattern}, (name == "*" || word || ip == nil) && strings.Trim(port, "0123456789") == ""
}

// namesHost holds a host, as an address is written down, against the pattern of a rule. Without a port an allowing rule is for the usual ones
// only, every other one for all.
func namesHost(pattern, host string, strict bool) bool {
	name, port := hostPort(pattern)
	have, at := hostPort(host)
	if have == "" || at != port && (strict || port != "") {
		return false
	}
	if domain, below := strings.CutPrefix(name, "*."); below {
		return domain != "" && strings.HasSuffix(have, "."+domain) && len(have) > len(domain)+1
	}
	return name == "*" || name == have
}

// hostPort parts a host from its port, "" when it has none. An IPv6 address keeps its brackets.
func hostPort(s string) (host, port string) {
	h, p, err := net.SplitHostPort(s)
	if err != nil {
		return s, ""
	}
	if strings.Contains(h, ":") {
		h = "[" + h + "]"
	}
	return h, p
}
