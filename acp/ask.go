package acp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "holdfast/acp/v1"
	"holdfast/session"
)

// questionParams is the permission request for an approval. One that is raised again says when it was asked first, and for what goal.
func (f *follower) questionParams(p session.Approval, again bool) (v1.RequestPermissionRequest, error) {
	var it session.Item
	var unknown, titles []string
	err := f.b.Engine.Store.Read(f.ctx, func(tx session.Tx) error {
		ef, err := tx.Effect(p.Effect)
		if err != nil {
			return err
		}
		if it, err = tx.Item(ef.Item); err != nil {
			return err
		}
		for _, id := range p.Unknown {
			u, err := tx.Effect(id)
			if err != nil {
				return err
			}
			titles = append(titles, u.Plan.Title)
			l, err := session.LookupOf(tx, u)
			if err != nil {
				return err
			}
			unknown = append(unknown, u.Plan.Title+": "+session.Unsure(u.Note, l))
		}
		return nil
	})
	if err != nil {
		return v1.RequestPermissionRequest{}, fmt.Errorf("load what question %s is about: %w", p.ID, err)
	}
	if it.Body.Tool == nil {
		return v1.RequestPermissionRequest{}, &session.RecordError{Code: it.Broken, Session: f.id, Record: "item " + string(it.ID)}
	}
	full, key := toolUpdate(it, false)
	if sh := f.shown(it.ID); sh.tool != key { // the client must know the call before it is asked about it
		first, _ := toolUpdate(it, f.first(it, sh))
		f.send(first)
		sh.tool = key
	}
	call, title := *full.ToolCallUpdate, it.Body.Tool.Title
	if again {
		when := "15:04"
		if f.a.Now().Sub(p.AskedAt) > 12*time.Hour {
			when = "15:04 on 2 January 2006"
		}
		title += " (asked at " + p.AskedAt.Local().Format(when) + f.goalSuffix() + ")"
	}
	if len(unknown) > 0 {
		text := "These operations were started and their outcome is unknown:\n- " + strings.Join(unknown, "\n- ") +
			"\nNothing else is done without your word until you say whether they happened."
		call.Content = append(slices.Clone(call.Content), v1.ToolCallContent{Content: &v1.Content{Content: textBlock(text)}})
		title += " [an outcome is unknown: " + strings.Join(titles, ", ") + "]"
	}
	if p.Question != "" {
		call.Content = append(slices.Clone(call.Content), v1.ToolCallContent{Content: &v1.Content{Content: textBlock(p.Question)}})
	}
	if slices.Contains(session.Options(p), session.OptionAllowAlways) {
		title += " [always: " + p.Always + "]"
	} else if slices.Contains(session.Options(p), session.OptionNever) {
		title += " [reject always: " + p.Always + "]"
	}
	call.Title = &title
	return v1.RequestPermissionRequest{SessionID: v1.SessionID(f.id), ToolCall: call, Options: options(p, titles)}, nil
}

func (f *follower) goalSuffix() string {
	v, err := f.b.Goals.Get(f.ctx, "", f.id)
	if err != nil || v.Status.Ended() {
		return ""
	}
	objective, _, _ := strings.Cut(v.Objective, "\n")
	return ", goal: " + clip(objective, 60)
}

// clip shortens a line to n characters.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// shownOptions is how each answer is offered.
var shownOptions = map[string]v1.PermissionOption{
	session.OptionAllow:       {Name: "Allow once", Kind: v1.PermissionOptionKindAllowOnce},
	session.OptionAllowAlways: {Name: "Allow always", Kind: v1.PermissionOptionKindAllowAlways},
	session.OptionReject:      {Name: "Reject", Kind: v1.PermissionOptionKindRejectOnce},
	session.OptionNever:       {Name: "Reject always", Kind: v1.PermissionOptionKindRejectAlways},
	session.OptionHappened:    {Name: "%s happened", Kind: v1.PermissionOptionKindRejectOnce},
	session.OptionNotHappened: {Name: "%s did not happen", Kind: v1.PermissionOptionKindRejectOnce},
}

// options are the answers a question takes. Where several outcomes are unknown, one answer says what became of the first of them, and the
// question comes again for the next.
func options(p session.Approval, unknown []string) []v1.PermissionOption {
	happened, not := "The unknown operation", "It"
	if len(unknown) > 1 {
		happened = "“" + clip(unknown[0], 60) + "”"
		not = happened
	}
	var out []v1.PermissionOption
	for _, id := range session.Options(p) {
		if p.Question != "" {
			if o, ok := chosen(p, id); ok {
				out = append(out, o)
			}
			continue
		}
		o := shownOptions[id]
		switch id {
		case session.OptionHappened:
			o.Name = fmt.Sprintf(o.Name, happened)
		case session.OptionNotHappened:
			o.Name = fmt.Sprintf(o.Name, not)
		}
		o.OptionID = v1.PermissionOptionID(id)
		out = append(out, o)
	}
	return out
}

// askPermission puts a question to the client. An empty option means that nobody answered it: never an answer for the user.
func (a *Agent) askPermission(ctx context.Context, params v1.RequestPermissionRequest) (string, error) {
	var answer struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	}
	if err := a.conn.Call(ctx, "session/request_permission", params, &answer); err != nil {
		return "", err
	}
	if answer.Outcome.Outcome != "selected" {
		return "", nil
	}
	offered := slices.ContainsFunc(params.Options, func(o v1.PermissionOption) bool { return string(o.OptionID) == answer.Outcome.OptionID })
	if !offered {
		return session.OptionReject, nil // an option nobody offered is no permission
	}
	return answer.Outcome.OptionID, nil
}

// keepAnswer stores an answer of the user. While the store cannot take it, it is tried again: it must not be given twice.
func (f *follower) keepAnswer(p session.Approval, option, text string) {
	for told := false; ; {
		err := f.b.Engine.AnswerIn(f.a.last, p.ID, option, text)
		if err == nil || errors.Is(err, session.ErrAnswered) {
			return
		}
		if !told {
			told = true
			f.fail(err, "storing an answer failed")
			f.post(func() { f.send(textChunk(session.ItemMarker, session.ItemID(f.b.Engine.NewID()), unkept(err))) })
		}
		if !errors.Is(err, session.ErrNotNow) {
			return
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-f.a.last.Done():
			return
		}
	}
}

// unkept says what becomes of an answer that could not be stored.
func unkept(err error) string {
	if errors.Is(err, session.ErrNotNow) {
		return "\n[" + session.Plainly(err) + ". Your answer is kept, and counts as soon as it can be stored.]\n"
	}
	return "\n[Your answer was not stored and does not count: " + session.Plainly(err) + "]\n"
}

// parkSoon parks a question that the client answered without a choice. That answer may be a part of a cancel, and come ahead of it or
// overtake it on its way into the store; then the prompt ends as cancelled, and not as waiting.
func (f *follower) parkSoon(p session.Approval) {
	f.after(confirmWithin, func() {
		if f.stops.Load() > 0 {
			f.parkSoon(p)
			return
		}
		f.park(p)
	})
}

// chosen is an answer to a question of the model as a client offers it. An answer in words is a message; there is no option for it.
func chosen(p session.Approval, id string) (v1.PermissionOption, bool) {
	o := v1.PermissionOption{OptionID: v1.PermissionOptionID(id), Name: p.Choice(id), Kind: v1.PermissionOptionKindAllowOnce}
	if id == session.OptionDecline {
		o.Name, o.Kind = "Do not answer", v1.PermissionOptionKindRejectOnce
		if len(p.Choices) == 0 {
			o.Name = "Do not answer (to answer, write a message)"
		}
	}
	return o, o.Name != ""
}
