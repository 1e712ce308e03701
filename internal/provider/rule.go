package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/session"
	"holdfast/usage"
)

// rule is one entry of a script: when it answers, and what.
type rule struct {
	when   condition
	say    string
	think  string
	calls  []scriptCall
	delay  time.Duration // before each delta, and before the end
	chunks int           // deltas that say, and think, are cut into
	finish session.Finish
	usage  usage.Tokens
	fault  *session.ModelError // ends the answer after its deltas
}

// condition holds when each of its parts holds; absent parts hold always.
type condition struct {
	user        *string
	lastResult  *string
	contains    *string
	tools       []string
	results     *int
	turnResults *int
	users       *int
	faults      *int
}

func (c condition) holds(s surveyed) bool {
	if c.user != nil && !strings.Contains(s.user, *c.user) ||
		c.lastResult != nil && (s.results == 0 || !strings.Contains(s.result, *c.lastResult)) ||
		c.contains != nil && !s.contains(*c.contains) ||
		c.results != nil && s.results != *c.results ||
		c.turnResults != nil && s.turnResults != *c.turnResults ||
		c.users != nil && s.users != *c.users ||
		c.faults != nil && s.faults != *c.faults {
		return false
	}
	for _, t := range c.tools {
		if !s.tools[t] {
			return false
		}
	}
	return true
}

// scriptCall is a tool call of a rule. Its arguments are a JSON object, or a text that is sent as it is.
type scriptCall struct {
	name   string
	object map[string]any
	text   *string
}

// args fills the templates in. Object members come out in sorted order.
func (c scriptCall) args(s surveyed) string {
	if c.text != nil {
		return s.expand(*c.text)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(eachString(c.object, s.expand)); err != nil {
		panic(fmt.Sprintf("provider: encode arguments that were parsed from JSON: %v", err))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// eachString copies a JSON value with every string in it replaced; member names stay.
func eachString(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = eachString(v[i], f)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = eachString(v[k], f)
		}
		return out
	}
	return v
}

// expand fills the templates of a text that checkTemplates accepted.
func (s surveyed) expand(text string) string {
	out, err := templates(text, func(name string) (string, bool) {
		switch name {
		case "result":
			return s.result, true
		case "user":
			return s.user, true
		case "cwd":
			return s.cwd, true
		}
		return "", false
	})
	if err != nil {
		panic(fmt.Sprintf("provider: a template was not checked: %v", err))
	}
	return out
}

func checkTemplates(text string) error {
	_, err := templates(text, func(name string) (string, bool) { return "", name == "result" || name == "user" || name == "cwd" })
	return err
}

// templates replaces ${name}; $${ stands for ${ itself. What is filled in is not searched again.
func templates(text string, value func(name string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		if i > 0 && text[i-1] == '$' {
			b.WriteString(text[:i-1] + "${")
			text = text[i+2:]
			continue
		}
		b.WriteString(text[:i])
		name, rest, ok := strings.Cut(text[i+2:], "}")
		if !ok {
			return "", errors.New(`a template "${" has no end; write $${ for the characters themselves`)
		}
		v, ok := value(name)
		if !ok {
			return "", fmt.Errorf("unknown template ${%s}: there are ${result}, ${user} and ${cwd}; write $${ for the characters themselves", clip(name, 40))
		}
		b.WriteString(v)
		text = rest
	}
}
