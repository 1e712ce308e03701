package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// checker validates arguments against a server's own schema, which is prepared at the first use. A schema that cannot be prepared checks
// nothing: the server will.
type checker struct {
	raw  json.RawMessage
	once sync.Once
	own  *jsonschema.Schema
}

// unreachable refuses to load anything.
type unreachable struct{}

func (unreachable) Load(url string) (any, error) { return nil, errors.New("not fetched: " + url) }

// lenient is a pattern of another dialect of regular expressions: it is left to the server.
type lenient string

func (l lenient) MatchString(string) bool { return true }
func (l lenient) String() string          { return string(l) }

func pattern(s string) (jsonschema.Regexp, error) {
	if re, err := regexp.Compile(s); err == nil {
		return re, nil
	}
	return lenient(s), nil
}

func (c *checker) prepare() {
	if len(c.raw) == 0 || string(c.raw) == "null" {
		return
	}
	doc, err := decode(c.raw)
	if err != nil {
		return
	}
	if o, ok := doc.(object); ok { // an unknown dialect is read as the newest
		if d, ok := o["$schema"].(string); ok && !strings.Contains(d, "json-schema.org/") {
			delete(o, "$schema")
		}
	}
	k := jsonschema.NewCompiler()
	k.UseLoader(unreachable{})
	k.UseRegexpEngine(pattern)
	const here = "tool:///input"
	if k.AddResource(here, doc) != nil {
		return
	}
	if own, err := k.Compile(here); err == nil {
		c.own = own
	}
}

var english = message.NewPrinter(language.English)

// check says whether a decoded value fits.
func (c *checker) check(v any) error {
	c.once.Do(c.prepare)
	if c.own == nil {
		return nil
	}
	return c.own.Validate(v)
}

// validate returns a sentence that tells the model what to change.
func (c *checker) validate(args map[string]any) error {
	err := c.check(args)
	var v *jsonschema.ValidationError
	if err == nil || !errors.As(err, &v) {
		return err
	}
	var found []string
	explain(v, &found)
	if len(found) > 5 {
		found = append(found[:5], fmt.Sprintf("and %d more", len(found)-5))
	}
	return fmt.Errorf("the arguments do not fit the tool's schema, so nothing was sent: %s", strings.Join(found, "; "))
}

// explain lists the innermost complaints, each once.
func explain(v *jsonschema.ValidationError, found *[]string) {
	if len(v.Causes) > 0 {
		if _, choice := v.ErrorKind.(*kind.OneOf); choice {
			*found = append(*found, place(v)+"exactly one of several forms has to fit")
		}
		for _, c := range v.Causes {
			explain(c, found)
		}
		return
	}
	text := clean(place(v)+v.ErrorKind.LocalizedString(english), 300)
	if !slices.Contains(*found, text) {
		*found = append(*found, text)
	}
}

func place(v *jsonschema.ValidationError) string {
	if len(v.InstanceLocation) == 0 {
		return ""
	}
	return head(strings.Join(v.InstanceLocation, "."), 200) + ": "
}
