package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"holdfast/acp/rpc"
	v1 "holdfast/acp/v1"
	"holdfast/goals"
	"holdfast/session"
)

// The contract that clients with a goal panel of their own know: one control method, and snapshots. It is a view of the same goal.
const (
	panelMethod    = "_session/goal"
	steeringMethod = "_session/steering"
)

var panelActions = []string{"set", "pause", "resume", "clear"}

// panelMeta announces the contract in the answer to initialize.
func panelMeta() v1.Meta {
	return v1.Meta{"goal": map[string]any{"version": 1, "controlMethod": panelMethod, "actions": panelActions}, "steering": map[string]any{"supported": true}}
}

// panelStatus is how the contract calls each state. A goal that the user ended is none.
var panelStatus = map[goals.Status]string{goals.Active: "active", goals.Paused: "paused", goals.Blocked: "blocked", goals.Exhausted: "limited", goals.Achieved: "complete"}

// snapshot is a goal in the contract's form, or nil.
func snapshot(v goals.View) any {
	status, ok := panelStatus[v.Status]
	if !ok {
		return nil
	}
	var reason any
	if v.Reason != "" {
		reason = v.Reason
	}
	var tokens any
	if v.Budget != nil && v.Budget.Tokens > 0 {
		tokens = v.Budget.Tokens
	}
	return map[string]any{"objective": v.Objective, "status": status, "createdAt": v.CreatedAt.UnixMilli(), "updatedAt": v.UpdatedAt.UnixMilli(),
		"tokenBudget": tokens, "tokensUsed": v.Usage.Input + v.Usage.Output, "timeUsedSeconds": v.ActiveSeconds.AtLeast, "iterations": v.Turns,
		"lastReason": reason, "controlMethod": panelMethod}
}

// goalUpdate tells a goal in every form that this client reads.
func (a *Agent) goalUpdate(v goals.View) update {
	snap := snapshot(v)
	meta := v1.Meta{"holdfast": map[string]any{"goal": v}, "goal": snap}
	a.mu.Lock()
	mirror := a.panel
	a.mu.Unlock()
	switch mirror {
	case panelDotted:
		meta["jetbrains.air"] = map[string]any{"goal": snap}
	case panelNested:
		meta["jetbrains"] = map[string]any{"air": map[string]any{"goal": snap}}
	}
	return update{SessionInfoUpdate: &v1.SessionInfoUpdate{Meta: meta}}
}

// panel is where a client looks for the snapshot besides the plain place.
type panel int

const (
	panelPlain panel = iota
	panelDotted
	panelNested
)

// panelOf reads that from the client's capabilities.
func panelOf(meta v1.Meta) panel {
	if _, ok := meta["jetbrains.air"]; ok {
		return panelDotted
	}
	if nested, ok := meta["jetbrains"].(map[string]any); ok && nested["air"] != nil {
		return panelNested
	}
	return panelPlain
}

// panelGoal is the contract's one method. The same click twice is no error: what it asks for is so.
func (a *Agent) panelGoal(ctx context.Context, b *Backend, req *rpc.Request) error {
	var p struct {
		SessionID session.SessionID `json:"sessionId"`
		Action    string            `json:"action"`
		Objective string            `json:"objective"`
	}
	if err := decode(req.Params, &p); err != nil {
		return err
	}
	if _, err := a.stored(ctx, b, p.SessionID); err != nil {
		return err
	}
	v, err := b.Goals.Get(ctx, "", p.SessionID)
	none := goals.NoGoal(err)
	if err != nil && !none {
		return err
	}
	none, err = none || v.Status.Ended(), nil
	if p.Action == "set" || p.Action == "resume" {
		if err := a.needModel(b); err != nil {
			return err
		}
	}
	switch p.Action {
	case "set":
		err = a.panelSet(ctx, b, p.SessionID, p.Objective, v, none)
	case "clear":
		if none {
			a.panelCleared(v, p.SessionID)
			break
		}
		err = panelUpdate(ctx, b, v, "end")
	case "pause", "resume":
		if p.Action == "resume" && v.Status == goals.Active && !v.CanResume {
			break
		}
		if none && v.GoalID == "" {
			_, err = b.Goals.Update(ctx, goals.UpdateParams{Session: p.SessionID, Action: p.Action})
			break // which says that there is none
		}
		err = panelUpdate(ctx, b, v, p.Action)
	default:
		return &invalid{"action", fmt.Sprintf("want %q; the other actions are those of _holdfast/update_goal", panelActions)}
	}
	if err != nil {
		return err
	}
	req.Reply(map[string]any{})
	return nil
}

func panelUpdate(ctx context.Context, b *Backend, v goals.View, action string) error {
	_, err := b.Goals.Update(ctx, goals.UpdateParams{Goal: v.GoalID, Action: action})
	return err
}

// panelSet sets a goal, or gives the one that has not ended new words: that is a revision, which keeps its usage and revives nothing.
func (a *Agent) panelSet(ctx context.Context, b *Backend, id session.SessionID, objective string, v goals.View, none bool) error {
	if none {
		_, err := b.Goals.Create(ctx, goals.CreateParams{Session: id, Objective: objective})
		if !errors.Is(err, goals.ErrExists) {
			return err
		}
		if v, err = b.Goals.Get(ctx, "", id); err != nil { // the same click twice, or two windows
			return err
		}
	}
	if strings.TrimSpace(objective) == "" {
		return &invalid{"objective", "say in words what is to be achieved"}
	}
	if v.Objective == objective {
		return nil
	}
	_, err := b.Goals.Update(ctx, goals.UpdateParams{Goal: v.GoalID, Action: "revise", Expected: v.ControlVersion, Objective: objective,
		Reason: "The user set a new objective."})
	return err
}

// panelCleared takes the snapshot of an ended goal away. Nothing is stored: it has its record in the history.
func (a *Agent) panelCleared(v goals.View, id session.SessionID) {
	f := a.follower(id)
	if v.GoalID == "" || f == nil {
		return
	}
	f.post(func() {
		v.Status = goals.Cancelled // none, in this contract
		u := a.goalUpdate(v)
		delete(u.SessionInfoUpdate.Meta, "holdfast") // where it is what it is
		f.send(u)
	})
}

// steering is a message of the user beside a prompt that is open, or without one. It is a turn of its own and runs before the goal's next.
func (a *Agent) steering(ctx context.Context, b *Backend, req *rpc.Request) error {
	p, err := parse[v1.PromptRequest](req)
	if err != nil {
		return err
	}
	id := session.SessionID(p.SessionID)
	if _, err := a.stored(ctx, b, id); err != nil {
		return err
	}
	f := a.follower(id)
	if f == nil {
		return &invalid{"sessionId", "open the session with session/load or session/resume first"}
	}
	in, err := flatten(p.Prompt)
	if err != nil {
		return err
	}
	if c, ok := command(in.Text); ok {
		return &invalid{"prompt", c.name + " is a command; send it with session/prompt"}
	}
	if err := a.needModel(b); err != nil {
		return err
	}
	busy := false
	if err := b.Engine.Store.Read(ctx, func(tx session.Tx) (err error) { busy, err = session.Moves(tx, id); return err }); err != nil {
		return err
	}
	in.Run, in.Uncancel = session.RunID(b.Engine.NewID()), f.steering()
	f.post(func() { f.own[in.Run] = true }) // the client shows it itself
	if _, err := b.Engine.Prompt(ctx, id, in); err != nil {
		return err
	}
	outcome := "startedNewTurn"
	if busy {
		outcome = "injected"
	}
	req.Reply(map[string]any{"outcome": outcome})
	return nil
}
