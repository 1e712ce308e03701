package catalogue

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed models.json
var embedded []byte

// file is models.json.
type file struct {
	Written  string            `json:"written"`
	Currency string            `json:"currency"`
	Sources  map[string]string `json:"sources"` // of each kind of figure, in general terms
	Models   []fileModel       `json:"models"`
}

// fileModel is an entry as the file has it; what is absent is unknown.
type fileModel struct {
	Provider  string      `json:"provider"`
	Name      string      `json:"name"`
	Also      []string    `json:"also"`
	Dated     bool        `json:"dated"`
	Released  string      `json:"released"`
	Context   *int64      `json:"context_tokens"`
	Output    *int64      `json:"output_tokens"`
	Images    *bool       `json:"images"`
	Tools     *bool       `json:"tools"`
	Reasoning *Reasoning  `json:"reasoning"`
	Prices    *filePrices `json:"prices"`
}

type filePrices struct {
	Input      *int64 `json:"input"`
	Cached     *int64 `json:"cached_input"`
	CacheWrite *int64 `json:"cache_write"`
	Output     *int64 `json:"output"`
	UpTo       *int64 `json:"up_to_tokens"`
}

// builtIn is read once. A file that cannot be read is a mistake of the build, which a test finds.
var builtIn = sync.OnceValue(func() *Catalogue {
	c, err := read(embedded)
	if err != nil {
		panic("catalogue: the file that is built in: " + err.Error())
	}
	return c
})

// read takes a file, and refuses what would make an answer depend on order or say what nobody said.
func read(b []byte) (*Catalogue, error) {
	var f file
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the document")
	}
	if _, err := time.Parse(time.DateOnly, f.Written); err != nil {
		return nil, fmt.Errorf("when it was written: %w", err)
	}
	c := &Catalogue{Written: f.Written, Sources: f.Sources}
	seen := map[pattern]bool{}
	for _, m := range f.Models {
		if err := m.check(f); err != nil {
			return nil, fmt.Errorf("%s/%s: %w", m.Provider, m.Name, err)
		}
		for _, name := range append([]string{m.Name}, m.Also...) {
			p := pattern{provider: m.Provider, name: name}
			if seen[p] {
				return nil, fmt.Errorf("%s/%s is there twice", m.Provider, name)
			}
			seen[p] = true
			p.dated = m.Dated
			c.entries = append(c.entries, held{p, m.entry(f)})
		}
		if !strings.Contains(m.Name, "*") {
			c.names = append(c.names, [2]string{m.Provider, m.Name})
		}
	}
	return c, nil
}

// check says what is wrong with an entry.
func (m fileModel) check(f file) error {
	if m.Provider == "" || m.Name == "" || m.Name != strings.ToLower(m.Name) {
		return errors.New("its provider and its name, in small letters, are needed")
	}
	if m.Dated && strings.Contains(m.Name, "*") {
		return errors.New("a * matches dates already")
	}
	if m.Released != "" {
		if _, err := time.Parse(time.DateOnly, m.Released); err != nil {
			return err
		}
	}
	if m.Prices != nil && f.Currency == "" {
		return errors.New("prices need a currency")
	}
	if r := m.Reasoning; r != nil {
		if !slices.Contains([]string{ReasonsNot, ReasonsEffort, ReasonsBudgets}, r.Kind) || len(r.Efforts) > 0 && r.Kind != ReasonsEffort {
			return fmt.Errorf("there is no reasoning %q with levels %q", r.Kind, r.Efforts)
		}
	}
	for name, n := range m.numbers() {
		if n != nil && (*n < 0 || *n == 0 && strings.HasSuffix(name, "tokens")) {
			return fmt.Errorf("%s is %d", name, *n)
		}
	}
	if m.Context != nil && m.Output != nil && *m.Output > *m.Context {
		return errors.New("it writes more than it can hold")
	}
	return nil
}

func (m fileModel) numbers() map[string]*int64 {
	all := map[string]*int64{"context_tokens": m.Context, "output_tokens": m.Output}
	if p := m.Prices; p != nil {
		all["input"], all["cached_input"], all["cache_write"], all["output"], all["up_to_tokens"] = p.Input, p.Cached, p.CacheWrite, p.Output, p.UpTo
	}
	return all
}

func (m fileModel) entry(f file) Entry {
	from := Origin{From: FromCatalogue, Date: f.Written}
	e := Entry{Released: m.Released, Context: given(m.Context, from), Output: given(m.Output, from), Images: given(m.Images, from), Tools: given(m.Tools, from),
		Reasoning: given(m.Reasoning, from)}
	if p := m.Prices; p != nil {
		e.Prices = Prices{Currency: Is(f.Currency, from), Input: given(p.Input, from), Cached: given(p.Cached, from), CacheWrite: given(p.CacheWrite, from),
			Output: given(p.Output, from), UpTo: given(p.UpTo, from)}
	}
	return e
}

// given is a figure of what may be absent.
func given[T any](v *T, from Origin) Figure[T] {
	if v == nil {
		return Figure[T]{}
	}
	return Is(*v, from)
}
