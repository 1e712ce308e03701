package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Ruling is what the permission policy says about a call.
type Ruling string

const (
	Allow    Ruling = "allow"
	Question Ruling = "question" // a durable approval decides
	Refuse   Ruling = "refuse"   // the model is told; nobody is asked
)

// PolicyInput is all the policy may look at. It holds no model text, no file content and no tool result.
type PolicyInput struct {
	Mode     Mode
	Class    Class
	Kind     Kind
	Place    Place    // where its files lie
	Unknown  bool     // effects of this conversation with an unknown outcome stand unsettled
	Reviewer bool     // the call belongs to a review, which may only read
	FromCode bool     // the call was planned by code as evidence, not by a model
	Standing Standing // what the user's rules and grants say
	Reach    Reach    // of a command
	Wall     bool     // the command can be confined
}

// Permit rules on a call and names the rule.
func Permit(in PolicyInput) (Ruling, string) {
	switch {
	case in.Class == ReadOnly && !in.placeAsks() && !in.Standing.hinders():
		return Allow, "P1 trusted readers are free"
	case in.Class != ReadOnly && in.Reviewer && !in.FromCode:
		return Refuse, "P2 a review only reads"
	case in.Class == ReadOnly && in.Reviewer && !in.FromCode && in.placeAsks():
		return Refuse, "P14 a review stays inside the workspace"
	case in.Class != ReadOnly && in.Mode == ModePlan:
		return Refuse, "P3 plan mode only reads"
	case in.Standing == StandingDeny:
		return Refuse, "P7 a rule of the user rejects it"
	case in.Unknown:
		return Question, "P4 an unknown outcome stands"
	case in.Standing == StandingDoubt:
		return Question, "P26 what a rule of the user rejects may be meant"
	case in.Standing == StandingAsk:
		return Question, "P8 a rule of the user asks"
	case in.placeAsks():
		return in.byPlace()
	case in.Mode.Edits() && in.Kind.Edits() && in.Class == StateProbe:
		return Allow, "P5 edit mode lets file edits through"
	case !in.known():
		return Question, "P6 everything else asks"
	case in.Standing == StandingAllow:
		return Allow, "P9 a rule of the user allows it"
	case in.Standing == StandingGranted:
		return Allow, "P10 granted when the goal was set"
	case in.Mode == ModeAuto && in.Kind == KindExecute && in.Class == Unknown:
		return in.auto()
	}
	return Question, "P6 everything else asks"
}

// hinders tells whether a rule of the user stands against a call.
func (s Standing) hinders() bool { return s == StandingAsk || s == StandingDeny || s == StandingDoubt }

// auto rules on a command in auto mode. It runs without a question only where it can do no harm: because its programs are known to only
// print, or because it is confined.
func (in PolicyInput) auto() (Ruling, string) {
	switch in.Reach {
	case ReachReads:
		return Allow, "P20 auto mode lets known readers through"
	case ReachWorks:
		if in.Wall {
			return Allow, "P21 auto mode lets it through confined"
		}
		return Question, "P22 auto mode asks, because it cannot be confined"
	case ReachNetwork:
		return Question, "P23 auto mode asks, because it needs the network"
	case ReachOutside:
		return Question, "P24 auto mode asks, because it reaches outside"
	case ReachUnread:
		return Question, "P25 auto mode asks, because it cannot be read"
	}
	return Question, "P6 everything else asks"
}

// known tells whether this binary knows what it is asked about. What it does not, for example from a store of a newer one, no rule allows.
func (in PolicyInput) known() bool {
	return slices.Contains(Modes, in.Mode) && slices.Contains([]Class{Idempotent, StateProbe, Unknown}, in.Class)
}

// Binding is what an approval is bound to: a changed one needs a fresh question.
func Binding(e Effect, s Session, unknown []EffectID) string {
	ids := slices.Clone(unknown)
	slices.Sort(ids)
	parts := []string{e.ArgsDigest, e.Tool, e.Version, string(e.Class), strings.Join(s.Roots, "\x00"), fmt.Sprint(ids)}
	for _, f := range e.Plan.Files {
		parts = append(parts, f.Path, f.Before, f.After)
		if f.Exec != "" {
			parts = append(parts, "exec "+f.Exec)
		}
	}
	if e.Plan.Place != PlaceInside {
		parts = append(append(parts, "place "+string(e.Plan.Place)), e.Plan.Paths...)
	}
	for _, f := range e.Plan.Programs {
		parts = append(parts, f.Path, f.Digest)
	}
	return Digest(parts...)
}

// Digest is the sha256 over parts, each preceded by its length.
func Digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// ArgsDigest is the digest of a call's arguments as the model sent them.
func ArgsDigest(name, args string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber() // two large numbers that differ stay different
	if d.Decode(&v) == nil && !d.More() {
		if b, err := json.Marshal(v); err == nil { // member order does not matter
			args = string(b)
		}
	}
	return Digest(name, args)
}
