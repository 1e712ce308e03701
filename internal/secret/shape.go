package secret

import (
	"bytes"
	"strings"
)

// class is a set of bytes.
type class [256]bool

func classOf(chars string) (c class) {
	for i := range len(chars) {
		c[chars[i]] = true
	}
	return c
}

const (
	digits = "0123456789"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lowers = "abcdefghijklmnopqrstuvwxyz"
	alnum  = digits + upper + lowers
)

var (
	isAlnum  = classOf(alnum)
	isWord   = classOf(alnum + "_-")
	isUpper  = classOf(digits + upper)
	isToken  = classOf(alnum + "._~+/=-")
	isBase64 = classOf(alnum + "+/=")
	isPEM    = classOf(alnum + "+/= \t\r\n:,\\-")
)

// token is a kind of key: a reserved beginning and a body of so many bytes of a class.
type token struct {
	prefix   string
	body     *class
	min, max int
	random   bool // the body holds a long run of letters and digits with a digit in it, as words do not
}

const longToken = 512

// tokens are what issuers of keys use. Their documentation names these beginnings so that scanners can find them.
var tokens = []token{
	{"sk-", &isWord, 20, longToken, true}, // OpenAI, Anthropic, OpenRouter, DeepSeek and others
	{"sk_live_", &isWord, 16, longToken, false},
	{"sk_test_", &isWord, 16, longToken, true},
	{"rk_live_", &isWord, 16, longToken, false},
	{"whsec_", &isWord, 24, longToken, true},
	{"ghp_", &isAlnum, 36, 255, false},
	{"gho_", &isAlnum, 36, 255, false},
	{"ghu_", &isAlnum, 36, 255, false},
	{"ghs_", &isAlnum, 36, 255, false},
	{"ghr_", &isAlnum, 36, 255, false},
	{"github_pat_", &isWord, 22, 255, false},
	{"glpat-", &isWord, 20, 255, false},
	{"AKIA", &isUpper, 16, 16, false},
	{"ASIA", &isUpper, 16, 16, false},
	{"xoxb-", &isWord, 10, longToken, false},
	{"xoxp-", &isWord, 10, longToken, false},
	{"xoxa-", &isWord, 10, longToken, false},
	{"xoxr-", &isWord, 10, longToken, false},
	{"xoxs-", &isWord, 10, longToken, false},
	{"xapp-", &isWord, 20, longToken, true},
	{"AIza", &isWord, 35, 35, false},
	{"ya29.", &isWord, 20, longToken, false},
	{"npm_", &isAlnum, 36, 36, false},
	{"hf_", &isAlnum, 34, 40, false},
	{"gsk_", &isAlnum, 40, 80, false},
	{"pypi-AgE", &isWord, 50, longToken, false},
	{"xai-", &isAlnum, 60, 100, false},
	{"dop_v1_", &isAlnum, 64, 64, false},
}

const pemBegin = "-----BEGIN "

// Bounds of what is held back until it is decided.
const (
	maxJWT = 8 << 10
	maxPEM = 16 << 10
	// LookBack is how much of what stands before a place may matter to it.
	LookBack = 48
)

var shapeStart = func() (s [256]bool) {
	for _, t := range tokens {
		s[t.prefix[0]] = true
	}
	s['e'], s['-'] = true, true
	return s
}()

// shapeNext are the bytes with which a shape goes on, by the first one. Most words are told apart by two bytes.
var shapeNext = func() (s [256][256]bool) {
	for _, t := range tokens {
		s[t.prefix[0]][t.prefix[1]] = true
	}
	s['e']['y'], s['-']['-'] = true, true
	return s
}()

// shape looks for a text with the shape of a key at a place. Only the LookBack bytes before it matter.
func shape(b []byte, i int, last bool) (int, verdict) {
	rest := b[i:]
	if b[i] == '-' {
		return pem(rest, last)
	}
	if !boundary(b, i) {
		return 0, no
	}
	if opened(b, i) {
		if n, v := named(b, i, last); v != no {
			return n, v
		}
	}
	for _, t := range tokens {
		if t.prefix[0] != b[i] {
			continue
		}
		if n, v := t.match(rest, last); v != no {
			return n, v
		}
	}
	if b[i] == 'e' {
		return jwt(rest, last)
	}
	return 0, no
}

// maybe tells cheaply whether a shape may begin at a place.
func maybe(b []byte, i int) bool {
	switch {
	case b[i] == '-':
		return i+1 == len(b) || b[i+1] == '-'
	case i == 0 || !isWord[b[i-1]] || escaping[b[i-1]]:
		return shapeStart[b[i]] && (i+1 == len(b) || shapeNext[b[i]][b[i+1]]) || opened(b, i)
	}
	return false
}

// escaping are letters with which an escape may end.
var escaping = classOf("nrtmK")

// boundary tells whether a word may begin at a place: behind no letter, digit or dash, unless those belong to an escape.
func boundary(b []byte, i int) bool {
	if i == 0 || !isWord[b[i-1]] {
		return true
	}
	if i >= 2 && b[i-2] == '\\' && strings.IndexByte("nrt", b[i-1]) >= 0 {
		return true
	}
	if b[i-1] != 'm' && b[i-1] != 'K' {
		return false
	}
	for k := i - 2; k >= 0 && k >= i-16; k-- { // a colour
		switch c := b[k]; {
		case c == '[':
			return k > 0 && b[k-1] == 0x1b
		case c != ';' && (c < '0' || c > '9'):
			return false
		}
	}
	return false
}

func begins(b []byte, prefix string, last bool) verdict {
	if len(b) >= len(prefix) {
		if string(b[:len(prefix)]) == prefix {
			return yes
		}
		return no
	}
	if !last && prefix[:len(b)] == string(b) {
		return more
	}
	return no
}

// run counts the bytes of a class from a place on, up to one above a limit. Its end is decided when a byte behind it was seen.
func run(b []byte, from int, c *class, limit int, last bool) (int, verdict) {
	n := 0
	for from+n < len(b) && n <= limit && c[b[from+n]] {
		n++
	}
	if from+n == len(b) && n <= limit && !last {
		return n, more
	}
	return n, yes
}

func (t token) match(b []byte, last bool) (int, verdict) {
	if v := begins(b, t.prefix, last); v != yes {
		return 0, v
	}
	n, v := run(b, len(t.prefix), t.body, t.max, last)
	if v == more {
		return 0, more
	}
	body := b[len(t.prefix) : len(t.prefix)+n]
	if n < t.min || n > t.max || t.random && !random(body) {
		return 0, no
	}
	return len(t.prefix) + n, yes
}

// random tells whether there is a part of at least ten letters and digits that holds both: words joined by dashes are no key.
func random(body []byte) bool {
	for _, part := range bytes.FieldsFunc(body, func(r rune) bool { return r == '-' || r == '_' }) {
		if len(part) >= 10 && bytes.ContainsAny(part, digits) && bytes.ContainsAny(part, upper+lowers) {
			return true
		}
	}
	return false
}

// jwt matches three parts in base64 with dots between them, of which the first two are JSON objects.
func jwt(b []byte, last bool) (int, verdict) {
	at := 0
	for part, least := range []int{8, 4, 16} {
		if part < 2 {
			if v := begins(b[at:], "eyJ", last); v != yes {
				return 0, v
			}
		}
		n, v := run(b, at, &isWord, maxJWT-at, last)
		switch {
		case v == more:
			return 0, more
		case n < least || at+n > maxJWT:
			return 0, no
		}
		at += n
		if part == 2 {
			return at, yes
		}
		if at == len(b) || b[at] != '.' {
			return 0, no
		}
		if at++; at == len(b) && !last {
			return 0, more
		}
	}
	return 0, no
}

// pem matches a private key from its first line to its last, or as far as it goes.
func pem(b []byte, last bool) (int, verdict) {
	if v := begins(b, pemBegin, last); v != yes {
		return 0, v
	}
	head := len(pemBegin)
	for head < len(b) && head < 64 && b[head] != '-' {
		head++
	}
	if head == len(b) && head < 64 && !last {
		return 0, more
	}
	if !strings.Contains(string(b[:head]), "PRIVATE KEY") {
		return 0, no
	}
	if v := begins(b[head:], "-----", last); v != yes {
		return 0, v
	}
	at, line, longest := head+5, 0, 0
	for ; at < maxPEM; at++ {
		if at == len(b) {
			if !last {
				return 0, more
			}
			break
		}
		if b[at] == '-' {
			switch begins(b[at:], "-----END ", last) {
			case more:
				return 0, more
			case yes:
				return pemEnd(b, at, longest, last)
			}
		}
		if !isPEM[b[at]] {
			break
		}
		if line++; !isBase64[b[at]] {
			line = 0
		}
		longest = max(longest, line)
	}
	if longest < 24 { // only spoken of
		return 0, no
	}
	return at, yes
}

func pemEnd(b []byte, at, longest int, last bool) (int, verdict) {
	if longest < 24 {
		return 0, no
	}
	for k := at + len("-----END "); k < at+64; k++ {
		if k == len(b) {
			if !last {
				return 0, more
			}
			return k, yes
		}
		if b[k] == '-' {
			n, v := run(b, k, &dash, 5, last)
			if v == more {
				return 0, more
			}
			return k + min(n, 5), yes
		}
	}
	return at, yes
}

var dash = classOf("-")

// opened tells whether what stands before a place announces a credential.
func opened(b []byte, i int) bool {
	if i < 7 || !isToken[b[i]] {
		return false
	}
	return parts[b[i-1]] && announced(b, i) != nil
}

// parts are what may stand between an announcement and the credential.
var parts = classOf(" =:\"'\t")

type announcement struct {
	word     string
	min, max int
}

var announcements = []announcement{{"bearer", 20, 4096}, {"authorization: basic", 16, 4096}, {"secret_access_key", 40, 40}, {"secretaccesskey", 40, 40}}

// lastOf are the last letters of the announcements.
var lastOf = classOf("rRcCyY")

func announced(b []byte, i int) *announcement {
	end := i
	for end > 0 && i-end < 8 && parts[b[end-1]] {
		end--
	}
	if end < 6 || !lastOf[b[end-1]] || !isAlnum[b[end-2]] {
		return nil
	}
	before := lower(b, end, 24)
	for k := range announcements {
		if strings.HasSuffix(before, announcements[k].word) {
			return &announcements[k]
		}
	}
	return nil
}

// named matches a credential that the words before it announce.
func named(b []byte, i int, last bool) (int, verdict) {
	a := announced(b, i)
	n, v := run(b, i, &isToken, a.max, last)
	if v == more {
		return 0, more
	}
	body := b[i : i+n]
	if n < a.min || n > a.max || !bytes.ContainsAny(body, digits) || !bytes.ContainsAny(body, upper+lowers) {
		return 0, no
	}
	return n, yes
}
