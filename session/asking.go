package session

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A question of the model to the user lives like a question of the agent: it is stored, raised again until somebody answers, answered once and
// taken back by a stop. Its answer is the result of the call that asked.

// Asker is a tool whose call is a question to the user. Its plan says what is asked.
type Asker interface {
	Tool
	Asks()
}

// Options of a question of the model; the choices that it offers come before them.
const (
	OptionAnswer  = "answer"  // in the user's own words
	OptionDecline = "decline" // no answer; the work goes on without one
	OptionMessage = "message" // the user wrote something else, which follows as a message
	choice        = "choice_"
)

// askOptions are the answers that a question of the model takes.
func askOptions(p Approval) []string {
	var out []string
	for i := range p.Choices {
		out = append(out, choice+strconv.Itoa(i+1))
	}
	return append(out, OptionAnswer, OptionDecline)
}

// Choice is what an option of a question of the model offers; "" when it is no choice.
func (p Approval) Choice(option string) string {
	n, ok := strings.CutPrefix(option, choice)
	i, err := strconv.Atoi(n)
	if !ok || err != nil || i < 1 || i > len(p.Choices) {
		return ""
	}
	return p.Choices[i-1]
}

// said is the answer as the model reads it.
func (p Approval) said() Output {
	switch p.Option {
	case OptionAnswer:
		return Output{Text: "The user answers: " + p.Answer}
	case OptionDecline:
		return Output{Text: "The user does not want to answer. Go on without an answer where you can, and say what you assume; else end your turn."}
	case OptionMessage:
		return Output{Text: "The user did not pick an answer and wrote a message instead, which you get next. End your turn now unless you can go on without it."}
	}
	return Output{Text: "The user chose: " + p.Choice(p.Option)}
}

// askUser raises the question of a call and settles the call with the answer.
func (c *call) askUser(ctx context.Context) error {
	for {
		p, err := c.ask(ctx, judgement{})
		if err != nil {
			return err
		}
		if p, err = c.await(ctx, p); err != nil {
			return err
		}
		if p.State == ApprovalVoid {
			if err := c.t.lookAgain(ctx); err != nil {
				return err
			}
			continue // taken back while the work is still wanted: ask anew
		}
		out := p.said()
		f := Finding{Fact: FactCompleted, By: SettledByPerson, Output: &out, Instance: p.AnsweredBy}
		return c.settle(ctx, "effect.settled", f, func(tx Tx, _ *Finding) error { return consume(tx, p.ID, c.t.e.Now()) })
	}
}

// answeredByMessage makes a message of the user the answer to the questions of the model that are open: the work must not wait for words that
// came in another way.
func (e *Engine) answeredByMessage(tx Tx, id SessionID, now time.Time) error {
	open, err := tx.OpenApprovals(id)
	if err != nil {
		return err
	}
	for _, p := range open {
		if p.Question == "" || p.State != ApprovalPending {
			continue
		}
		p.State, p.Option, p.AnsweredBy, p.AnsweredAt = ApprovalAnswered, OptionMessage, e.Self.ID, now
		if err := tx.UpdateApproval(p, now); err != nil {
			return err
		}
		if err := tx.InsertCommand(Command{ID: e.NewID(), Session: id, Kind: CommandAnswer, Ref: string(p.ID), Instance: e.Self.ID, At: now}); err != nil {
			return err
		}
	}
	return nil
}

// checkAnswer tells whether words come with an option that takes them.
func checkAnswer(p Approval, option, text string) error {
	switch {
	case !slices.Contains(Options(p), option):
		return &OptionError{option, Options(p)}
	case option == OptionAnswer && strings.TrimSpace(text) == "":
		return &AnswerTextError{"the option answer needs the words of the answer"}
	case option != OptionAnswer && text != "":
		return &AnswerTextError{fmt.Sprintf("the option %s takes no words; use answer", option)}
	}
	return nil
}

// AnswerTextError: an answer has words where it takes none, or none where it needs them.
type AnswerTextError struct{ Message string }

func (e *AnswerTextError) Error() string { return e.Message }
