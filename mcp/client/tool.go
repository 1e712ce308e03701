package client

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Tool is one tool of a server.
type Tool struct {
	Exposed     string // towards the model; legal for every provider
	Server      string
	Name        string // the server's own
	Title       string
	Description string
	Raw         json.RawMessage // the whole definition as received
	Hash        string          // sha256 over name, description, schemas and annotations
	Schema      json.RawMessage // what the provider is given
	Hints       map[string]bool // the server's own claims; for display only

	check   *checker
	output  *checker          // nil without an output schema
	renamed map[string]string // property keys of Schema that the server knows under another name
}

type definition struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema"`
	Annotations json.RawMessage `json:"annotations"`
	Execution   struct {
		Tasks string `json:"taskSupport"`
	} `json:"execution"`
}

const longestDescription = 2 << 10

// Rebuild makes a Tool from its definition and the name of its server, which need not be here.
func Rebuild(server string, raw json.RawMessage) (Tool, error) {
	var d definition
	if err := json.Unmarshal(raw, &d); err != nil {
		return Tool{}, errors.New("its definition cannot be read")
	}
	if d.Name == "" {
		return Tool{}, errors.New("it has no name")
	}
	if d.Execution.Tasks == "required" {
		return Tool{}, errors.New("it can only be called as a task, which is not supported")
	}
	t := Tool{Exposed: Exposed(server, d.Name), Server: server, Name: d.Name, Title: clean(d.Title, 200), Raw: bytes.Clone(raw), Hints: hints(d.Annotations)}
	v, err := providerView(d.Input)
	if err != nil {
		return Tool{}, err
	}
	t.Schema, t.renamed = v.schema, v.renamed
	t.Description = clean(d.Description, longestDescription) + v.rules
	t.check = &checker{raw: d.Input}
	if len(d.Output) > 0 {
		t.output = &checker{raw: d.Output}
	}
	t.Hash = hash(d)
	return t, nil
}

// hash does not depend on the order or the spelling of a definition.
func hash(d definition) string {
	h := sha256.New()
	for _, part := range []any{d.Name, d.Description, d.Input, d.Output, d.Annotations} {
		h.Write(canonical(part))
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// canonical sorts keys and keeps numbers as they are written.
func canonical(v any) []byte {
	if raw, ok := v.(json.RawMessage); ok {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		v = nil
		_ = d.Decode(&v) // it was decoded before; absent is null
	}
	b, _ := json.Marshal(v) // of decoded JSON
	return b
}

func hints(raw json.RawMessage) map[string]bool {
	var all map[string]any
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	h := map[string]bool{}
	for name, v := range all {
		if b, ok := v.(bool); ok {
			h[name] = b
		}
	}
	return h
}

// clean bounds a text and drops what nobody can see.
func clean(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0xE0000 && r <= 0xE007F || r >= 0x202A && r <= 0x202E {
			return -1
		}
		return r
	}, s)
	if len(s) > n {
		return head(s, n) + " [...]"
	}
	return s
}

const longestName = 64

// Exposed is the name of a tool towards the model. It depends on nothing but the two names, so that approvals and caches stay valid
// whatever other servers there are; where something had to be changed, or two pairs of names could meet, a hash keeps them apart.
func Exposed(server, tool string) string {
	s, t := legal(server), legal(tool)
	same := s == server && t == tool && !strings.Contains(s+t, "__") && !strings.HasSuffix(s, "_") && !strings.HasPrefix(t, "_")
	name := "mcp__" + s + "__" + t
	if same && len(name) <= longestName {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	suffix := "_" + hex.EncodeToString(sum[:4])
	if len(name)+len(suffix) > longestName {
		s = s[:min(len(s), 24)]
		name = "mcp__" + s + "__" + t
	}
	return name[:min(len(name), longestName-len(suffix))] + suffix
}

func legal(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

// Arguments checks what the model wants to send against the server's own schema, and gives the server its own names back. The error is
// for the model; nothing was sent.
func (t Tool) Arguments(args json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(args)) == 0 || bytes.Equal(bytes.TrimSpace(args), []byte("null")) {
		args = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	object, ok := v.(map[string]any)
	if !ok || d.More() {
		return nil, errors.New("the arguments have to be one JSON object")
	}
	if len(t.renamed) > 0 {
		object = restore(object, t.renamed).(map[string]any)
	}
	if t.check != nil {
		if err := t.check.validate(object); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(object); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// restore gives renamed keys their own names back, at every depth.
func restore(v any, renamed map[string]string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if own, ok := renamed[k]; ok {
				k = own
			}
			out[k] = restore(e, renamed)
		}
		return out
	case []any:
		for i := range v {
			v[i] = restore(v[i], renamed)
		}
	}
	return v
}
