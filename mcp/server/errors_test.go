package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"holdfast/goals"
	"holdfast/session"
)

// Every error has a code, one line, and something to do; wrapping changes nothing. The document has every code.
func TestErrors_Table(t *testing.T) {
	s := New(Options{Authority: AuthorityRead, Diagnose: func(err error) *Unavailable {
		if strings.Contains(err.Error(), "disk") {
			return &Unavailable{"store_full", "The disk is full.", "Free some space."}
		}
		return nil
	}})
	doc, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	for code, errs := range map[string][]error{
		"invalid_argument":    {invalid("limit", "too big"), &goals.ParamError{Member: "objective", Message: "say it"}},
		"no_authority":        {&authorityError{"the tool x", AuthorityFull, AuthorityRead}},
		"untrusted_directory": {&untrustedError{"/x"}},
		"not_found":           {&missingError{"goalId", "goal", "x"}, session.ErrNotFound},
		"not_allowed":         {&goals.NotAllowedError{Action: "pause", Status: goals.Achieved, Hint: "create a new one"}},
		"goal_exists":         {goals.ErrExists},
		"stale_version":       {goals.ErrVersion},
		"key_reused":          {goals.ErrKeyReused},
		"already_answered":    {session.ErrAnswered},
		"bad_option":          {&session.OptionError{Option: "x", Offered: []string{"y"}}},
		"not_unknown":         {&session.NotUnknownError{Effect: "e", State: session.EffectSettled, Fact: session.FactCompleted}},
		"bad_cursor":          {session.ErrCursor},
		"store_full":          {errors.New("write: no room on the disk")},
		"store_busy":          {context.DeadlineExceeded},
		"store_lost":          {&Unavailable{"store_lost", "It is gone.", "Put it back."}},
		"internal_error":      {errors.New("secret cause")},
	} {
		for _, err := range errs {
			p := s.problem(fmt.Errorf("while testing: %w", err))
			if p.Code != code || p.Message == "" || p.Action == "" || strings.ContainsAny(p.text(), "\n\r") || strings.Contains(p.text(), "secret") {
				t.Errorf("%v: %+v", err, p)
			}
		}
		if !strings.HasPrefix(code, "store_") && !strings.Contains(string(doc), "| `"+code+"` |") {
			t.Errorf("docs/mcp.md has no %s", code)
		}
	}
}
