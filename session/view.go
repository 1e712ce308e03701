package session

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// What every door outside the editor shows of the records: the same members on the command line and over MCP.

// ErrCursor: a page was asked for with a cursor that no listing gave out.
var ErrCursor = errors.New("the cursor is not one that a listing gave out; begin without one")

// Cursor is a place in a listing that is ordered by time and id, newest first. It is opaque to callers.
type Cursor struct {
	At time.Time
	ID string
}

// String is what a caller passes back; "" for the beginning.
func (c Cursor) String() string {
	if c.ID == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(c.At.UnixMilli(), 10) + " " + c.ID))
}

// ParseCursor reads a cursor; "" is the beginning.
func ParseCursor(s string) (Cursor, error) {
	if s == "" {
		return Cursor{}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return Cursor{}, ErrCursor
	}
	ms, id, ok := strings.Cut(string(b), " ")
	n, err := strconv.ParseInt(ms, 10, 64)
	if !ok || err != nil || id == "" {
		return Cursor{}, ErrCursor
	}
	return Cursor{time.UnixMilli(n).UTC(), id}, nil
}

// SessionView is a session as it is listed.
type SessionView struct {
	SessionID        SessionID    `json:"sessionId"`
	Cwd              string       `json:"cwd"`
	Directories      []string     `json:"additionalDirectories"`
	Title            string       `json:"title"`
	Mode             Mode         `json:"mode"`
	Model            string       `json:"model"`    // the one that was chosen for it, PROVIDER/NAME; "" is that of whichever process executes it
	Effort           string       `json:"effort"`   // how much that was chosen to think; "" for what the configuration says
	Recovery         Auto         `json:"recovery"` // what is done with work whose process is gone; "" for what the configuration says
	State            string       `json:"state"`    // idle, stopping, queued, working, waiting, closed
	ReasonCode       Code         `json:"reasonCode"`
	Reason           string       `json:"reason"`
	NextOwner        string       `json:"nextOwner"`
	Allowed          []string     `json:"allowed"`
	Owner            string       `json:"owner"`     // instance that executes it, or ""
	OwnerPID         int          `json:"ownerPid"`  // 0 without an owner
	OwnerLost        bool         `json:"ownerLost"` // that process is dead, and nobody has taken over yet
	Attached         int          `json:"attached"`  // clients that have it open
	Windows          []WindowView `json:"windows"`
	UnknownEffects   int          `json:"unknownEffects"`
	PendingApprovals int          `json:"pendingApprovals"`
	CreatedAt        time.Time    `json:"createdAt"`
	UpdatedAt        time.Time    `json:"updatedAt"`
}

// WindowView is a client that has a session open, and what its process runs work with.
type WindowView struct {
	InstanceID  InstanceID `json:"instanceId"`
	PID         int        `json:"pid"`
	Client      string     `json:"client"` // "" when it gave no name
	Version     string     `json:"version"`
	Answers     bool       `json:"answers"` // it can be asked for permission
	Model       string     `json:"model"`
	Endpoint    string     `json:"endpoint"`
	Environment string     `json:"environment"` // digest of what its commands get
	Since       time.Time  `json:"since"`
}

func viewWindow(tx Tx, a Attachment) (WindowView, error) {
	v := WindowView{InstanceID: a.Instance, Client: a.Client.Name, Version: a.Client.Version, Answers: a.Client.Answers, Endpoint: a.Profile.Origin,
		Environment: a.Profile.Env, Since: a.At}
	if a.Profile.Provider != "" {
		v.Model = a.Profile.Provider + "/" + a.Profile.Name
	}
	row, err := tx.Instance(a.Instance)
	v.PID = row.PID
	return v, err
}

// ViewSession says where a session stands. One of which something cannot be used is shown as well, with what is known.
func ViewSession(tx Tx, s Session) (SessionView, error) {
	v, err := viewSession(tx, s)
	var broken *RecordError
	if errors.As(err, &broken) {
		v.mark(broken.Code, broken.Reason())
		return v, nil
	}
	if err == nil && s.Broken != CodeNone {
		v.mark(s.Broken, "")
	}
	return v, err
}

func viewSession(tx Tx, s Session) (SessionView, error) {
	v := SessionView{SessionID: s.ID, Cwd: s.Cwd, Directories: []string{}, Title: s.Title, Mode: s.Mode, Model: s.Choice.Model, Effort: s.Choice.Effort, Recovery: s.Recovery, State: "idle", NextOwner: "user",
		Allowed: []string{}, Windows: []WindowView{}, Owner: string(s.Owner), CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt}
	if len(s.Roots) > 1 {
		v.Directories = s.Roots[1:]
	}
	runs, err := tx.OpenRuns(s.ID)
	if err != nil {
		return v, err
	}
	rank := map[string]int{"idle": 0, string(PhaseQueued): 1, string(PhaseWaiting): 2, string(PhaseWorking): 3}
	var broken error
	for _, r := range runs {
		if v.State == "idle" && r.Desired != DesiredRun && r.Phase == PhaseWorking && s.Owner != "" && !tx.Lost(s.Owner) {
			v.State, v.NextOwner = "stopping", "agent" // stored, and not confirmed by whoever executes it
		}
		if r.Broken != CodeNone {
			broken = &RecordError{Code: r.Broken, Session: s.ID, Record: "run " + string(r.ID)}
		}
		if r.Desired != DesiredRun || r.ReasonCode == CodeVerifying || rank[string(r.Phase)] <= rank[v.State] {
			continue
		}
		v.State, v.ReasonCode, v.Reason, v.NextOwner = string(r.Phase), r.ReasonCode, r.Reason, "agent"
		if InLine(r) {
			if v.ReasonCode, v.Reason, err = WhyInLine(tx, r); err != nil {
				return v, err
			}
		}
	}
	open, err := tx.OpenApprovals(s.ID)
	if err != nil {
		return v, err
	}
	for _, p := range open {
		if p.State == ApprovalPending {
			v.PendingApprovals++
		}
	}
	if v.PendingApprovals > 0 && v.State != "idle" {
		v.State, v.ReasonCode, v.Reason = string(PhaseWaiting), CodeApproval, ""
	}
	if s.Closed && v.State != "idle" && v.State != "stopping" {
		v.State, v.ReasonCode, v.Reason = "closed", CodeClosedByClient, ""
	}
	if v.State == string(PhaseWorking) || v.State == string(PhaseQueued) {
		// Nothing of a dead process is shown as running, nor of one that is suspended or on another machine.
		if code, why := OwnerWait(tx, s.Owner); code != CodeNone {
			v.State, v.ReasonCode, v.Reason = string(PhaseWaiting), code, why
		}
	}
	if d, ok := Diagnostics[v.ReasonCode]; ok {
		v.NextOwner, v.Allowed = d.Owner, append(v.Allowed, d.Allowed...)
		if v.Reason == "" {
			v.Reason = d.Sentence
		}
	}
	unknown, err := UnknownOf(tx, s.ID)
	if err != nil {
		return v, err
	}
	v.UnknownEffects = len(unknown)
	at, err := tx.Attachments(s.ID)
	if err != nil {
		return v, err
	}
	v.Attached = len(at)
	for _, a := range at {
		w, err := viewWindow(tx, a)
		if err != nil {
			return v, err
		}
		v.Windows = append(v.Windows, w)
	}
	if s.Owner != "" {
		row, err := tx.Instance(s.Owner)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return v, err
		}
		v.OwnerPID = row.PID
		v.OwnerLost = tx.Lost(s.Owner)
	}
	return v, broken
}

// ListSessions is one page of sessions, newest first, and the cursor of the next; an empty cwd lists all.
func ListSessions(tx Tx, cwd, cursor string, limit int) ([]SessionView, string, error) {
	c, err := ParseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	all, err := tx.Sessions(cwd, c.At, SessionID(c.ID), limit+1)
	if err != nil {
		return nil, "", err
	}
	out := []SessionView{}
	for i, s := range all {
		if i == limit {
			last := all[limit-1]
			return out, Cursor{last.UpdatedAt, string(last.ID)}.String(), nil
		}
		v, err := ViewSession(tx, s)
		if err != nil {
			return nil, "", err
		}
		out = append(out, v)
	}
	return out, "", nil
}

// EffectView is one journal record.
type EffectView struct {
	EffectID     EffectID         `json:"effectId"`
	SessionID    SessionID        `json:"sessionId"`
	RunID        RunID            `json:"runId"`
	Tool         string           `json:"tool"`
	Title        string           `json:"title"`
	Class        Class            `json:"class"`
	State        EffectState      `json:"state"`
	Fact         Fact             `json:"fact"`
	SettledBy    SettledBy        `json:"settledBy"`
	Permission   string           `json:"permission"` // why it was let happen: a rule of the policy, and what the user said
	Note         string           `json:"note"`
	ExitCode     *int             `json:"exitCode"`
	Lookup       Lookup           `json:"lookup"`    // of an unknown outcome: what could still tell
	CanSettle    bool             `json:"canSettle"` // a person may say what became of it
	Lost         bool             `json:"lost"`      // its process is gone, and nobody has looked what became of it
	Sends        []SendView       `json:"sends"`
	Settlements  []SettlementView `json:"settlements"`
	PlannedAt    time.Time        `json:"plannedAt"`
	DispatchedAt *time.Time       `json:"dispatchedAt"`
	SettledAt    *time.Time       `json:"settledAt"`
}

// SettlementView is one thing that was found out about a call.
type SettlementView struct {
	Fact       Fact       `json:"fact"`
	SettledBy  SettledBy  `json:"settledBy"`
	Note       string     `json:"note"`
	Evidence   string     `json:"evidence"`
	At         time.Time  `json:"at"`
	InstanceID InstanceID `json:"instanceId"`
}

// SendView is one send to an external server.
type SendView struct {
	Server string    `json:"server"`
	Tool   string    `json:"tool"`
	State  SendState `json:"state"`
	Kind   string    `json:"kind"`
	Reason string    `json:"reason"`
	SentAt time.Time `json:"sentAt"`
}

// ViewEffect shows a journal record.
func ViewEffect(tx Tx, e Effect) (EffectView, error) {
	v := EffectView{EffectID: e.ID, SessionID: e.Session, RunID: e.Run, Tool: e.Tool, Title: e.Plan.Title, Class: e.Class, State: e.State, Fact: e.Fact,
		SettledBy: e.SettledBy, Permission: e.Plan.Permission, Note: e.Note, ExitCode: e.ExitCode, CanSettle: e.State != EffectSettled && e.Fact == FactUnknown, Sends: []SendView{}, Settlements: []SettlementView{},
		PlannedAt: e.PlannedAt, DispatchedAt: moment(e.DispatchedAt), SettledAt: moment(e.SettledAt)}
	if v.Title == "" {
		v.Title = e.Tool
	}
	if e.Broken != CodeNone && v.Note == "" {
		v.Note = "The record of this call is not valid (" + string(e.Broken) + ")."
	}
	if e.State == EffectDispatched && e.Fact == FactNone {
		s, err := tx.Session(e.Session)
		if err != nil {
			return v, err
		}
		last, err := tx.LastAttempt(e.Run)
		if err != nil {
			return v, err
		}
		if v.Lost = s.Owner == "" || last.Generation != s.Generation || tx.Lost(s.Owner); v.Lost && v.Note == "" {
			v.Note = "It was going on when its process ended. What became of it is found out by the next process that executes."
		}
	}
	var err error
	if v.Lookup, err = LookupOf(tx, e); err != nil {
		return v, err
	}
	found, err := tx.Settlements(e.ID)
	if err != nil {
		return v, err
	}
	for _, s := range found {
		v.Settlements = append(v.Settlements, SettlementView{s.Fact, s.By, s.Note, s.Evidence, s.At, s.Instance})
	}
	sends, err := tx.Sends(e.ID)
	for _, s := range sends {
		v.Sends = append(v.Sends, SendView{s.Server, s.Tool, s.State, s.Kind, s.Reason, s.SentAt})
	}
	return v, err
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// ListEffects is one page of the journal, newest first, and the cursor of the next.
func ListEffects(tx Tx, f EffectFilter, cursor string, limit int) ([]EffectView, string, error) {
	c, err := ParseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	all, err := tx.Effects(f, c.At, EffectID(c.ID), limit+1)
	if err != nil {
		return nil, "", err
	}
	out := []EffectView{}
	for i, e := range all {
		if i == limit {
			last := all[limit-1]
			return out, Cursor{last.PlannedAt, string(last.ID)}.String(), nil
		}
		v, err := ViewEffect(tx, e)
		if err != nil {
			return nil, "", err
		}
		out = append(out, v)
	}
	return out, "", nil
}

// ApprovalView is one question that waits for an answer.
type ApprovalView struct {
	ApprovalID ApprovalID    `json:"approvalId"`
	SessionID  SessionID     `json:"sessionId"`
	RunID      RunID         `json:"runId"`
	State      ApprovalState `json:"state"`
	Effect     EffectView    `json:"effect"`
	Unknown    []EffectView  `json:"unknown"` // operations whose outcome nobody knows, which the question is about as well
	Options    []string      `json:"options"`
	Question   string        `json:"question"` // what the model asks the user; "" when a permission is asked for
	Choices    []string      `json:"choices"`  // what choice_1, choice_2, … stand for
	Always     string        `json:"always"`   // what allow_always and reject_always would cover; "" when they are not offered
	AskedAt    time.Time     `json:"askedAt"`
}

// ViewApproval shows a question with what it is about.
func ViewApproval(tx Tx, p Approval) (ApprovalView, error) {
	v := ApprovalView{ApprovalID: p.ID, SessionID: p.Session, RunID: p.Run, State: p.State, Unknown: []EffectView{}, Options: Options(p), Question: p.Question, Choices: append([]string{}, p.Choices...), Always: p.Always, AskedAt: p.AskedAt}
	about := func(id EffectID) (EffectView, error) {
		e, err := tx.Effect(id)
		if err != nil {
			return EffectView{}, fmt.Errorf("question %s: %w", p.ID, err)
		}
		return ViewEffect(tx, e)
	}
	var err error
	if v.Effect, err = about(p.Effect); err != nil {
		return v, err
	}
	for _, id := range p.Unknown {
		e, err := about(id)
		if err != nil {
			return v, err
		}
		v.Unknown = append(v.Unknown, e)
	}
	return v, nil
}

// ListApprovals lists the questions that wait for an answer, oldest first; an empty session lists those of all.
func ListApprovals(tx Tx, id SessionID) ([]ApprovalView, error) {
	all, err := tx.PendingApprovals()
	out := []ApprovalView{}
	for _, p := range all {
		if id != "" && p.Session != id {
			continue
		}
		v, err := ViewApproval(tx, p)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, err
}

// ItemView is one entry of a history.
type ItemView struct {
	ItemID    ItemID    `json:"itemId"`
	Seq       int64     `json:"seq"`
	Kind      ItemKind  `json:"kind"`
	State     ItemState `json:"state"`
	Text      string    `json:"text"`
	Tool      *ToolView `json:"tool"`
	RunID     RunID     `json:"runId"`
	CreatedAt time.Time `json:"createdAt"`
}

// ToolView is a tool call in a history.
type ToolView struct {
	Name     string     `json:"name"`
	Title    string     `json:"title"`
	Status   ToolStatus `json:"status"`
	Fact     Fact       `json:"fact"`
	EffectID EffectID   `json:"effectId"`
	Output   string     `json:"output"`
	IsError  bool       `json:"isError"`
}

// ListItems is one page of a conversation, oldest first, after a sequence number; next is 0 at the end.
func ListItems(tx Tx, id SessionID, after int64, limit int) (out []ItemView, next int64, err error) {
	items, err := tx.History(id, "", after, limit+1)
	if err != nil {
		return nil, 0, err
	}
	out = []ItemView{}
	for i, it := range items {
		if i == limit {
			return out, items[limit-1].Seq, nil
		}
		v := ItemView{ItemID: it.ID, Seq: it.Seq, Kind: it.Kind, State: it.State, Text: it.Body.Text, RunID: it.Run, CreatedAt: it.CreatedAt}
		if c := it.Body.Tool; c != nil {
			v.Tool = &ToolView{Name: c.Name, Title: c.Title, Status: c.Status, Fact: c.Fact, EffectID: c.Effect}
			if err := Whole(tx, &it); err != nil {
				return nil, 0, err
			}
			if c = it.Body.Tool; c.Output != nil {
				v.Tool.Output, v.Tool.IsError = c.Output.Text, c.Output.IsError
			}
		}
		out = append(out, v)
	}
	return out, 0, nil
}
