package session

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// NoTree stands for a work tree that could not be recorded.
const NoTree = "none"

// Checkpoint is a work tree as it was at one moment. It is empty without git.
type Checkpoint struct {
	Tree        string // git tree in the private repository
	Fingerprint string // digest over HEAD's commit and the tree
}

// PathKind is what a path holds.
type PathKind string

const (
	PathAbsent PathKind = "absent"
	PathFile   PathKind = "file"
	PathLink   PathKind = "link"
	PathOther  PathKind = "other" // a folder, a device, a repository: never touched
)

// PathState is what a path holds, by digest. Blob is git's id of a file's content, or of where a link leads. Exec is "yes" or "no", or
// empty where it is not known and kept as it is.
type PathState struct {
	Kind PathKind `json:"kind"`
	Blob string   `json:"blob,omitempty"`
	Exec string   `json:"exec,omitempty"`
}

// Same tells whether two states are one, as far as both are known.
func (s PathState) Same(o PathState) bool {
	return s.Kind == o.Kind && s.Blob == o.Blob && (s.Exec == o.Exec || s.Exec == "" || o.Exec == "") && s.Kind != PathOther
}

// PathChange is one path that a call changed.
type PathChange struct {
	Path   string
	Before PathState
	After  PathState
}

// PathStep is one path that a step puts back: it is touched only while it holds From.
type PathStep struct {
	Path string    `json:"path"`
	From PathState `json:"from"`
	To   PathState `json:"to"`
	// Done is set once the step is settled. Why says why a path was left alone; then Done is false.
	Done bool   `json:"done,omitempty"`
	Why  string `json:"why,omitempty"`
}

// ErrPathChanged: a path does not hold what it was expected to hold.
var ErrPathChanged = errors.New("it was changed since")

// BlobID is git's id of a content. It is compared with what git itself recorded, and protects against no forger.
func BlobID(content []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// EffectTrees is the work tree before and after one call that may change anything. After is empty when nobody saw its end.
type EffectTrees struct {
	Effect EffectID
	Run    RunID
	Before string
	After  string
}

// UndoKind is why files are put back.
type UndoKind string

const (
	UndoTurn     UndoKind = "undo"     // the user took a turn back
	UndoAgain    UndoKind = "again"    // the user took such a step back
	UndoRollback UndoKind = "rollback" // an attempt begins again from its entry
)

// UndoState is how far a step came.
type UndoState string

const (
	UndoAccepted UndoState = "accepted" // stored before the first file changes; whoever finds it finishes it
	UndoSettled  UndoState = "settled"  // every path is in place or left alone for a reason
)

// Undo is one step that puts files back.
type Undo struct {
	ID        string
	Session   SessionID
	Number    int // u1, u2, … of the session
	Kind      UndoKind
	Run       RunID
	Turn      int    // of the session
	Of        string // the step that this one takes back
	Saved     string // the work tree before it, kept under a ref
	Paths     []PathStep
	State     UndoState
	Instance  InstanceID
	At        time.Time
	SettledAt time.Time
}

// Name is how the user calls the step, "" when nothing was put back.
func (u Undo) Name() string {
	if u.Number == 0 {
		return ""
	}
	return fmt.Sprintf("u%d", u.Number)
}
