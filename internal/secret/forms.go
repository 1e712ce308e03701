package secret

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf16"
)

// forms are the spellings in which a value may stand in a text: as it is, inside JSON, in an address, in base64, and line by line.
func forms(v string) []string {
	out := append([]string{v, url.QueryEscape(v), url.PathEscape(v), base64.RawStdEncoding.EncodeToString([]byte(v))}, escaped(v)...)
	if strings.Contains(v, "\n") {
		for line := range strings.Lines(v) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") { // the first and the last line of a key are everybody's
				out = append(out, line)
			}
		}
	}
	return out
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
	out := []string{short, ascii.String(), all.String(), string(html[1 : len(html)-1])}
	if strings.Contains(v, "/") { // which some encoders escape
		out = append(out, strings.ReplaceAll(short, "/", `\/`))
	}
	if short != v { // JSON within JSON
		plain.Reset()
		if e.Encode(short) == nil {
			out = append(out, strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(plain.String()), `"`), `"`))
		}
	}
	return out
}
