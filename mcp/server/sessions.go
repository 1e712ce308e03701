package server

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"holdfast/goals"
	"holdfast/session"
)

type listSessions struct {
	Cwd string `json:"cwd,omitempty" jsonschema:"only sessions of this directory"`
	page
}

type sessionPage struct {
	Sessions   []session.SessionView `json:"sessions"`
	NextCursor string                `json:"nextCursor,omitempty" jsonschema:"missing on the last page"`
}

type getSession struct {
	SessionID session.SessionID `json:"sessionId" jsonschema:"the session"`
	page
}

type sessionResult struct {
	Session    session.SessionView `json:"session"`
	Items      []session.ItemView  `json:"items" jsonschema:"the conversation, oldest first"`
	NextCursor string              `json:"nextCursor,omitempty" jsonschema:"missing on the last page"`
}

type sendMessage struct {
	SessionID      session.SessionID `json:"sessionId" jsonschema:"the session"`
	Text           string            `json:"text" jsonschema:"what to say to the agent"`
	IdempotencyKey string            `json:"idempotencyKey,omitempty" jsonschema:"your own unique name for this message; repeating it sends nothing again"`
}

type sentMessage struct {
	RunID    session.RunID       `json:"runId" jsonschema:"the accepted piece of work; items of the session name it"`
	Session  session.SessionView `json:"session"`
	Cursor   string              `json:"cursor" jsonschema:"pass it to get_session to read what came after the message was accepted"`
	Executor Executor            `json:"executor"`
}

func sessionTools() []tool {
	return []tool{
		define(tool{name: "list_sessions", title: "List sessions", hints: looks, needs: AuthorityRead,
			about: "Sessions of every editor and client on this machine, changed last first, in pages."}, runListSessions),
		define(tool{name: "get_session", title: "Read a session", hints: looks, needs: AuthorityRead,
			about: "Where a session stands, and its conversation in pages, oldest first."}, runGetSession),
		define(tool{name: "send_message", title: "Send a message to a session", hints: starts, needs: AuthorityGoals,
			about: "Say something to the agent in a session. It is stored and answered at once; read the reply with get_session and the cursor " +
				"of this answer."}, runSendMessage),
	}
}

// session loads a session that a client named.
func (c call) session(ctx context.Context, id session.SessionID) (s session.Session, err error) {
	err = c.read(ctx, func(tx session.Tx) error { s, err = tx.Session(id); return err })
	if errors.Is(err, session.ErrNotFound) {
		err = &missingError{"sessionId", "session", string(id)}
	}
	return s, err
}

func runListSessions(ctx context.Context, c call, a listSessions) (out sessionPage, err error) {
	limit, err := a.limit()
	if err != nil {
		return out, err
	}
	err = c.read(ctx, func(tx session.Tx) error {
		out.Sessions, out.NextCursor, err = session.ListSessions(tx, a.Cwd, a.Cursor, limit)
		return err
	})
	return out, err
}

func runGetSession(ctx context.Context, c call, a getSession) (out sessionResult, err error) {
	limit, err := a.limit()
	if err != nil {
		return out, err
	}
	after, err := parsePlace(a.Cursor)
	if err != nil {
		return out, err
	}
	s, err := c.session(ctx, a.SessionID)
	if err != nil {
		return out, err
	}
	err = c.read(ctx, func(tx session.Tx) error {
		if out.Session, err = session.ViewSession(tx, s); err != nil {
			return err
		}
		var next int64
		if out.Items, next, err = session.ListItems(tx, s.ID, after, limit); err == nil && next > 0 {
			out.NextCursor = place(next)
		}
		return err
	})
	return out, err
}

// place is a cursor in a conversation.
func place(seq int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte("seq " + strconv.FormatInt(seq, 10)))
}

func parsePlace(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	n, found := strings.CutPrefix(string(b), "seq ")
	seq, numErr := strconv.ParseInt(n, 10, 64)
	if err != nil || !found || numErr != nil || seq < 0 {
		return 0, session.ErrCursor
	}
	return seq, nil
}

func runSendMessage(ctx context.Context, c call, a sendMessage) (out sentMessage, err error) {
	if strings.TrimSpace(a.Text) == "" {
		return out, invalid("text", "say something")
	}
	s, err := c.session(ctx, a.SessionID)
	if err != nil {
		return out, err
	}
	in := c.Engine.Hidden(session.PromptInput{Text: a.Text, Run: keyedRun(s.ID, a.IdempotencyKey)}) // as it is stored, to compare
	out.Cursor = place(s.LastSeq)
	run, repeated, err := c.sent(ctx, in)
	if err == nil && !repeated {
		if out.RunID, err = c.Engine.Prompt(ctx, s.ID, in); err != nil {
			if run, repeated, _ = c.sent(ctx, in); repeated {
				err = nil // another copy of this request came first
			}
		}
	}
	if err != nil {
		return out, err
	}
	if repeated {
		if out.RunID = run.ID; said(run) != in.Text {
			return out, goals.ErrKeyReused
		}
	}
	if err := c.read(ctx, func(tx session.Tx) error {
		if s, err = tx.Session(s.ID); err == nil {
			out.Session, err = session.ViewSession(tx, s)
		}
		return err
	}); err != nil {
		return out, err
	}
	out.Executor = c.Executor(ctx)
	return out, nil
}

// keyedRun is the id of the run that a key stands for in a session: the same key is the same row, so nothing else has to remember keys.
// Without a key it is empty, and a new one is made.
func keyedRun(id session.SessionID, key string) session.RunID {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "send_message %d %s %s", len(id), id, key))
	return session.RunID(uuid.Must(uuid.FromBytes(sum[:16])).String())
}

// sent finds the run of an earlier message with the same key.
func (c call) sent(ctx context.Context, in session.PromptInput) (run session.Run, found bool, err error) {
	if in.Run == "" {
		return run, false, nil
	}
	err = c.read(ctx, func(tx session.Tx) error { run, err = tx.Run(in.Run); return err })
	if errors.Is(err, session.ErrNotFound) {
		return run, false, nil
	}
	return run, err == nil, err
}

// said is the text of a stored message.
func said(r session.Run) string {
	var in session.PromptInput
	_ = json.Unmarshal(r.Input, &in) // what cannot be read is another body
	return in.Text
}
