package session

// PlaceState is what a session does when its owner looks whether it is the one to go on.
type PlaceState string

const (
	PlaceIdle    PlaceState = "idle"    // nothing is wanted of it
	PlaceWorking PlaceState = "working" // between two steps, or about to take the first
	PlaceAsking  PlaceState = "asking"  // a question is open
	PlaceWaiting PlaceState = "waiting" // for something else
)

// PlaceOther is the best of the other processes that have the session open, execute, and live.
type PlaceOther string

const (
	OtherNone    PlaceOther = "none"
	OtherDiffers PlaceOther = "differs" // it cannot go on with what the owner could
	OtherFits    PlaceOther = "fits"    // it can go on with all that the owner could, or with something where the owner can with nothing
)

// PlaceFacts is all that Assign looks at.
type PlaceFacts struct {
	State    PlaceState
	Attached bool // a client of the owner has the session open
	Fits     bool // the owner has what the work began with
	Other    PlaceOther
}

// PlaceAct is what is to be done.
type PlaceAct string

const (
	PlaceKeep     PlaceAct = "keep"
	PlaceHandOver PlaceAct = "hand_over" // to the other
	PlaceLetGo    PlaceAct = "let_go"    // nobody owns it, until one comes that fits
	PlaceWait     PlaceAct = "wait"      // the work is not begun here: environment_differs
)

// Placement names its rule.
type Placement struct {
	Act  PlaceAct
	Rule string
	To   InstanceID // with PlaceHandOver
}

// Assign says who goes on with a session. It is asked at safe points only: no request is in flight and no call dispatched.
func Assign(f PlaceFacts) Placement {
	switch {
	case f.State == PlaceIdle && f.Attached:
		return Placement{Act: PlaceKeep, Rule: "W1 idle, and its window is here"}
	case f.State == PlaceIdle && f.Other != OtherNone:
		return Placement{Act: PlaceHandOver, Rule: "W2 idle, and its only window is there"}
	case f.State == PlaceIdle:
		return Placement{Act: PlaceKeep, Rule: "W3 idle, without a window"}
	case f.Fits && f.Attached:
		return Placement{Act: PlaceKeep, Rule: "W4 it goes on here, and a window is here"}
	case f.Fits && f.Other == OtherFits:
		return Placement{Act: PlaceHandOver, Rule: "W5 the only window is there, where it can go on"}
	case f.Fits:
		return Placement{Act: PlaceKeep, Rule: "W6 it goes on nowhere else"}
	case f.Other == OtherFits:
		return Placement{Act: PlaceHandOver, Rule: "W7 it goes on there and not here"}
	case f.State == PlaceWorking:
		return Placement{Act: PlaceWait, Rule: "W8 it goes on nowhere now"}
	}
	return Placement{Act: PlaceLetGo, Rule: "W9 what fits is to find it free"}
}
