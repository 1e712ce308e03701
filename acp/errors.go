package acp

import (
	"context"
	"errors"

	"holdfast/acp/rpc"
	"holdfast/goals"
	"holdfast/session"
)

// Unavailable: the agent runs, and something it needs does not. Code is from the closed list of diagnostics.
type Unavailable struct {
	Code    string
	Message string
	Action  string
	Passes  bool // it ends by itself, when other processes end
}

func (e *Unavailable) Error() string { return e.Message + " " + e.Action }

// AuthRequired: no model is set up; Message says what to do.
type AuthRequired struct{ Message string }

func (e *AuthRequired) Error() string { return e.Message }

// invalid is a parameter that cannot be used.
type invalid struct{ member, message string }

func (e *invalid) Error() string { return e.member + ": " + e.message }

// toError names what the store reports, and looks the rest up.
func (a *Agent) toError(err error, id session.SessionID) *rpc.Error {
	err = a.named(err)
	return toError(err, id)
}

// toError is the one table from an error to what the peer sees. The log has the cause.
func toError(err error, id session.SessionID) *rpc.Error {
	var (
		rpcErr  *rpc.Error
		bad     *invalid
		param   *goals.ParamError
		refused *goals.NotAllowedError
		down    *Unavailable
		auth    *AuthRequired
		broken  *session.RecordError
	)
	data := func(kv ...any) map[string]any {
		m := map[string]any{}
		if id != "" {
			m["sessionId"] = id
		}
		for i := 0; i+1 < len(kv); i += 2 {
			m[kv[i].(string)] = kv[i+1]
		}
		return m
	}
	switch {
	case errors.As(err, &rpcErr):
		return rpcErr
	case errors.As(err, &bad):
		return &rpc.Error{Code: rpc.CodeInvalidParams, Message: bad.Error(), Data: data("member", bad.member)}
	case errors.As(err, &param):
		return &rpc.Error{Code: rpc.CodeInvalidParams, Message: param.Error(), Data: data("member", param.Member)}
	case errors.As(err, &refused):
		return &rpc.Error{Code: rpc.CodeInvalidParams, Message: refused.Error(), Data: data("code", "not_allowed", "status", refused.Status)}
	case errors.Is(err, goals.ErrExists):
		return &rpc.Error{Code: rpc.CodeInvalidParams, Message: "The session already has an unfinished goal: end it, or pass replace.", Data: data("code", "goal_exists")}
	case errors.Is(err, goals.ErrVersion):
		return &rpc.Error{Code: rpc.CodeInvalidParams, Message: "The goal changed since the version you named: read it again.", Data: data("code", "stale_version")}
	case errors.Is(err, goals.ErrKeyReused):
		return &rpc.Error{Code: rpc.CodeInvalidParams, Message: "The idempotency key was used with another body: use a new key.", Data: data("code", "key_reused")}
	case errors.As(err, &auth):
		return &rpc.Error{Code: rpc.CodeAuthRequired, Message: auth.Message, Data: data("code", "model_unavailable")}
	case errors.As(err, &down):
		return &rpc.Error{Code: rpc.CodeInternalError, Message: down.Error(), Data: data("code", down.Code, "action", down.Action)}
	case session.IsBusy(err): // before the reason why the wait ended
		return busyError(err, data)
	case errors.As(err, &broken):
		return &rpc.Error{Code: rpc.CodeInternalError, Message: broken.Reason(), Data: data("code", broken.Code, "action", session.RecordAction)}
	case errors.Is(err, session.ErrInUse):
		var used *session.InUseError
		_ = errors.As(err, &used) // the only one
		return &rpc.Error{Code: rpc.CodeInvalidRequest, Message: used.Why, Data: data("code", "session_in_use")}
	case goals.NoGoal(err):
		return &rpc.Error{Code: rpc.CodeResourceNotFound, Message: "The session has no goal.", Data: data("code", "no_goal")}
	case errors.Is(err, session.ErrNotFound) && id != "":
		return &rpc.Error{Code: rpc.CodeResourceNotFound, Message: "Session not found: " + string(id), Data: data("details", "Session not found: "+string(id))}
	case errors.Is(err, session.ErrNotFound):
		return &rpc.Error{Code: rpc.CodeResourceNotFound, Message: "Not found.", Data: data()}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &rpc.Error{Code: rpc.CodeRequestCancelled, Message: "The request was cancelled.", Data: data()}
	}
	return &rpc.Error{Code: rpc.CodeInternalError, Message: "Internal error; the log in the state directory has the cause.", Data: data()}
}
