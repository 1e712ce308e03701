package server

import (
	"context"
	"errors"
	"fmt"

	"holdfast/goals"
	"holdfast/session"
)

// Unavailable: the server runs, and the store does not. Code is from the closed list of the store's states.
type Unavailable struct{ Code, Message, Action string }

func (e *Unavailable) Error() string { return e.Code + ": " + e.Message + " " + e.Action }

// invalidError is an argument that cannot be used.
type invalidError struct{ field, message string }

func (e *invalidError) Error() string { return e.field + ": " + e.message }

func invalid(field, format string, args ...any) error {
	return &invalidError{field, fmt.Sprintf(format, args...)}
}

// authorityError: the setting this server was started with does not allow it.
type authorityError struct {
	what       string
	needs, has Authority
}

func (e *authorityError) Error() string { return e.what + " needs authority " + string(e.needs) }

// untrustedError: nobody trusted the directory.
type untrustedError struct{ dir string }

func (e *untrustedError) Error() string { return e.dir + " is not trusted" }

// missingError: there is no such record.
type missingError struct{ field, what, id string }

func (e *missingError) Error() string { return "no " + e.what + " " + e.id }

func (e *missingError) Unwrap() error { return session.ErrNotFound }

// problem is what a client sees of an error.
type problem struct {
	Code    string `json:"code" jsonschema:"a stable word for programs"`
	Field   string `json:"field" jsonschema:"the argument that is wrong, or empty"`
	Message string `json:"message" jsonschema:"what happened"`
	Action  string `json:"action" jsonschema:"what to do now"`

	internal bool // only the log has the cause
}

// text is the same for a reader.
func (p problem) text() string {
	t := p.Code + ": " + p.Message
	if p.Field != "" {
		t = p.Code + ": " + p.Field + ": " + p.Message
	}
	return t + " " + p.Action
}

// problem is the one table from an error to what a client sees.
func (s *Server) problem(err error) problem {
	var (
		bad       *invalidError
		param     *goals.ParamError
		authority *authorityError
		untrusted *untrustedError
		missing   *missingError
		refused   *goals.NotAllowedError
		option    *session.OptionError
		answered  *session.AnsweredError
		known     *session.NotUnknownError
		down      *Unavailable
		broken    *session.RecordError
	)
	p := func(code, field, message, action string) problem {
		return problem{Code: code, Field: field, Message: message, Action: action}
	}
	switch {
	case errors.As(err, &bad):
		return p("invalid_argument", bad.field, bad.message+".", "Correct "+bad.field+" and call again.")
	case errors.As(err, &param):
		return p("invalid_argument", param.Member, param.Message+".", "Correct "+param.Member+" and call again.")
	case errors.As(err, &authority):
		return p("no_authority", "", fmt.Sprintf("This server was started with authority %s; %s needs %s.", authority.has, authority.what, authority.needs),
			fmt.Sprintf("Ask the user; they can start it with --authority %s or HOLDFAST_MCP_AUTHORITY=%[1]s.", authority.needs))
	case errors.As(err, &untrusted):
		return p("untrusted_directory", "cwd", fmt.Sprintf("%s is not a directory that the user trusts.", untrusted.dir),
			"Ask the user; they trust it by opening it in an editor with Holdfast, or by starting this server with --trust DIR or HOLDFAST_MCP_TRUST.")
	case errors.As(err, &missing):
		return p("not_found", missing.field, fmt.Sprintf("There is no %s %q.", missing.what, missing.id), "Look for it with the listing tools.")
	case errors.As(err, &refused):
		return p("not_allowed", "action", refused.Error()+".", "Read the goal; nextAction says what is possible.")
	case errors.Is(err, goals.ErrExists):
		return p("goal_exists", "sessionId", "The session already has an unfinished goal.", "End that goal, or pass replace.")
	case errors.Is(err, goals.ErrVersion):
		return p("stale_version", "expectedControlVersion", "The goal changed since the version you named.", "Read it again and decide anew.")
	case errors.Is(err, goals.ErrKeyReused):
		return p("key_reused", "idempotencyKey", "The key was used with another body.", "Use a new key for a new request.")
	case errors.As(err, &answered):
		return p("already_answered", "approvalId", "The question was answered with "+answered.Option+".", "That answer counts; list the open questions.")
	case errors.Is(err, session.ErrAnswered):
		return p("already_answered", "approvalId", "The question was answered or taken back.", "List the open questions.")
	case errors.As(err, &option):
		return p("bad_option", "option", option.Error()+".", "Choose one of the options.")
	case errors.As(err, &known):
		return p("not_unknown", "effectId", known.Error()+".", "Nothing has to be done.")
	case errors.Is(err, session.ErrCursor):
		return p("bad_cursor", "cursor", "It is not one that this listing gave out.", "Begin without a cursor.")
	case errors.As(err, &broken):
		return p(string(broken.Code), "", broken.Reason(), session.RecordAction)
	case goals.NoGoal(err):
		return p("not_found", "sessionId", "The session has no goal.", "Create one with create_goal.")
	case errors.As(err, &down):
		return p(down.Code, "", down.Message, down.Action)
	case errors.Is(err, session.ErrNotFound):
		return p("not_found", "", "There is no such record.", "Look for it with the listing tools.")
	}
	if d := s.o.Diagnose(err); d != nil {
		q := p(d.Code, "", d.Message, d.Action)
		q.internal = true
		return q
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return p("store_busy", "", "The store was busy for too long.", "Call again; with the same idempotencyKey nothing happens twice.")
	}
	return problem{Code: "internal_error", Message: "Something failed inside.", Action: "The log in the state directory has the cause.", internal: true}
}
