package session

import "slices"

// Place is where the files of a call lie, as far as the policy cares: the worst of them counts. It says nothing of what they hold.
type Place string

const (
	PlaceInside    Place = ""          // inside the roots, and nothing special
	PlaceOutside   Place = "outside"   // outside of every root
	PlaceProtected Place = "protected" // inside, but something runs or obeys it by itself: writing asks
	PlaceSecret    Place = "secret"    // named like something that holds keys or passwords: reading asks as well
)

// Places lists every place, from the least to the most that is asked about.
var Places = []Place{PlaceInside, PlaceOutside, PlaceProtected, PlaceSecret}

// Worse is the place of two that is asked about more.
func (p Place) Worse(o Place) Place {
	if slices.Index(Places, o) > slices.Index(Places, p) {
		return o
	}
	return p
}

// placeAsks tells whether a call is asked about for where its files lie, whatever the mode says. A place that this binary does not know asks.
func (in PolicyInput) placeAsks() bool {
	return in.Place != PlaceInside && (in.Place != PlaceProtected || in.Class != ReadOnly)
}

// byPlace rules on a call that is asked about for its place. Neither a mode nor a grant waives that; a rule of the user does for what lies
// outside, when it names a directory there.
func (in PolicyInput) byPlace() (Ruling, string) {
	switch {
	case in.Place == PlaceOutside && in.Standing == StandingAllow && in.Class != ReadOnly && in.known():
		return Allow, "P9 a rule of the user allows it"
	case in.Place == PlaceProtected:
		return Question, "P12 a file that something obeys by itself asks"
	case in.Place == PlaceSecret:
		return Question, "P13 a file that may hold secrets asks"
	}
	return Question, "P11 outside the workspace asks"
}

// reaches tells whether an allowing rule for a directory counts for files outside of the roots: it names a directory there, not one that
// merely contains the workspace as well.
func (r Rule) reaches(b Subject) bool {
	switch b.Place {
	case PlaceInside:
		return true
	case PlaceOutside:
		return r.Kind == RuleEdit && !within(r.Value, b.Cwd)
	}
	return false
}

// Edits tells whether calls of a kind change files and nothing else.
func (k Kind) Edits() bool { return k == KindEdit || k == KindDelete || k == KindMove }
