package catalogue

// Where a figure comes from.
const (
	FromCatalogue = "catalogue" // built in; Date says when it was written
	FromConfig    = "config"    // the user's file; File and Line
	FromEndpoint  = "endpoint"  // the endpoint was asked just now
)

// Origin says where a figure comes from.
type Origin struct {
	From string
	Date string // of the catalogue
	File string
	Line int
}

// Figure is one thing that may be known of a model. Without an origin it is unknown, and Value says nothing.
type Figure[T any] struct {
	Value T
	Origin
}

// Known tells whether there is a value at all.
func (f Figure[T]) Known() bool { return f.From != "" }

// Is makes a known figure.
func Is[T any](v T, from Origin) Figure[T] { return Figure[T]{v, from} }

// Ways of reasoning.
const (
	ReasonsNot     = "none"   // it does not, or cannot be told to
	ReasonsEffort  = "effort" // told in levels
	ReasonsBudgets = "budget" // told in tokens
)

// Reasoning is how a model can be told to think.
type Reasoning struct {
	Kind    string   `json:"kind"`
	Efforts []string `json:"efforts,omitempty"` // levels, least first; empty when they are not known
}

// Prices are in millionths of the currency unit for a million tokens. They are estimates of a day: what is charged is the provider's to say.
type Prices struct {
	Currency   Figure[string]
	Input      Figure[int64]
	Cached     Figure[int64] // input that a cache had
	CacheWrite Figure[int64]
	Output     Figure[int64]
	UpTo       Figure[int64] // the longest prompt, in tokens, for which they hold; unknown when they hold for every length
}

// Entry is what is known of a model.
type Entry struct {
	Provider, Name string // as it was asked for
	Released       string // a date; "" when it is not known

	Context   Figure[int64] // tokens of question and answer together
	Output    Figure[int64] // tokens of one answer, with its reasoning
	Images    Figure[bool]
	Tools     Figure[bool]
	Reasoning Figure[Reasoning]
	Prices    Prices
}

// Elsewhere is the entry for an endpoint that is not the provider's own: what others charge is not in the catalogue.
func (e Entry) Elsewhere() Entry {
	p := &e.Prices
	for _, f := range []*Figure[int64]{&p.Input, &p.Cached, &p.CacheWrite, &p.Output, &p.UpTo} {
		if f.From == FromCatalogue {
			*f = Figure[int64]{}
		}
	}
	if p.Currency.From == FromCatalogue {
		p.Currency = Figure[string]{}
	}
	return e
}
