package provider

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMessage is the most that is kept of a provider's own words, in characters.
const maxMessage = 500

// keyLike finds keys in the spellings that providers echo, also half masked ones.
var keyLike = regexp.MustCompile(`\b(sk|rk|pk)-[A-Za-z0-9_*.\-]{6,}|(?i:bearer)\s+[A-Za-z0-9_*.\-~+/=]{6,}`)

// safe makes a provider's text fit to be shown: the credential masked first, so that no cut can leave a part of it, then one line,
// then at most maxMessage characters (I5).
func (e *endpoint) safe(text string) string {
	if isMarkup([]byte(text)) {
		return "the endpoint answered with a web page"
	}
	if key := e.config.Key; key != "" {
		text = strings.ReplaceAll(text, key, "***")
	}
	text = keyLike.ReplaceAllString(text, "***")
	return clip(oneLine(text), maxMessage)
}

// oneLine drops control characters and runs of white space.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	fields := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || !unicode.IsGraphic(r) })
	return strings.Join(fields, " ")
}

// clip cuts a text to at most n characters, the last of which then says so.
func clip(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	runes := []rune(text)
	return string(runes[:n-1]) + "…"
}

func isMarkup(body []byte) bool {
	body = bytes.ToLower(bytes.TrimLeft(body, " \t\r\n\ufeff"))
	if len(body) > 1024 {
		body = body[:1024]
	}
	return bytes.HasPrefix(body, []byte("<")) || bytes.Contains(body, []byte("<html")) || bytes.Contains(body, []byte("<!doctype"))
}
