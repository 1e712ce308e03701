package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"holdfast/session"
)

// askTool asks the user something.
type askTool struct{}

var _ session.Asker = askTool{}

const (
	maxQuestion = 2000
	maxChoices  = 10
	maxChoice   = 200
)

type askArgs struct {
	Question string   `json:"question"`
	Choices  []string `json:"choices,omitempty"`
}

func (askTool) Spec() session.ToolSpec {
	return spec("ask_user", "Ask the user something that you cannot find out yourself and that decides how you go on. The work waits until they answer, maybe for "+
		"hours, so ask one clear question, and rather decide small things yourself. Offer choices where there are a few. Not for permission: what needs it asks by itself.",
		`{"type":"object","properties":{"question":{"type":"string"},"choices":{"type":"array","items":{"type":"string"},"description":"Up to 10 short answers; the user `+
			`may also answer in their own words."}},"required":["question"],"additionalProperties":false}`)
}

func (askTool) Class() session.Class { return session.ReadOnly }
func (askTool) Kind() session.Kind   { return session.KindOther }
func (askTool) Version() string      { return "1" }
func (askTool) Asks()                {}

func (askTool) Plan(_ session.ToolEnv, args json.RawMessage) (session.Plan, error) {
	var in askArgs
	if err := decodeArgs("ask_user", args, &in, "question"); err != nil {
		return session.Plan{}, err
	}
	in.Question = cleaned(in.Question)
	for i := range in.Choices {
		in.Choices[i] = strings.Join(strings.Fields(cleaned(in.Choices[i])), " ")
	}
	switch {
	case in.Question == "":
		return session.Plan{}, failf("The question of ask_user is empty.")
	case utf8.RuneCountInString(in.Question) > maxQuestion:
		return session.Plan{}, failf("The question is longer than %d characters. Say before what the user should know, and ask shortly.", maxQuestion)
	case len(in.Choices) > maxChoices:
		return session.Plan{}, failf("A question has at most %d choices, not %d.", maxChoices, len(in.Choices))
	}
	for i, c := range in.Choices {
		if c == "" || utf8.RuneCountInString(c) > maxChoice || slices.Contains(in.Choices[:i], c) {
			return session.Plan{}, failf("Choice %d of ask_user is empty, longer than %d characters, or there twice.", i+1, maxChoice)
		}
	}
	first, _, _ := strings.Cut(in.Question, "\n")
	p, err := plan(in, "Question: "+first)
	p.Question, p.Choices = in.Question, in.Choices
	return p, err
}

// Run is never used: the turn loop raises the question.
func (askTool) Run(context.Context, session.ToolEnv, session.Plan, func(session.Output)) (session.Output, error) {
	return session.Output{}, fmt.Errorf("ask_user is answered by the user: %w", errors.ErrUnsupported)
}
