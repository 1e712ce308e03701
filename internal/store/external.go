package store

import "holdfast/session"

const insertSend = `INSERT INTO sends (id, effect, round, server, config, tool, definition, args_digest, state, sent_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// InsertSend stores a send before its first byte leaves.
func (t *Tx) InsertSend(s session.Send) error {
	_, err := t.exec("insert send", insertSend, s.ID, s.Effect, s.Round, s.Server, s.Config, s.Tool, s.Definition, s.ArgsDigest, s.State, ms(s.SentAt))
	return err
}

const updateSend = `UPDATE sends SET state = ?1, kind = ?2, reason = CASE WHEN ?3 = '' THEN reason ELSE ?3 END, protocol = ?4, rpc_id = ?5, written = ?6,
	answer = ?7, answer_digest = ?8, ended_at = ?9
	WHERE id = ?10 AND (state = 'sending' AND ?1 IN ('answered', 'unknown') OR state = 'unknown' AND ?1 = 'resolved')`

// UpdateSend ends a send. What was answered is never changed, and what was unknown can only be resolved.
func (t *Tx) UpdateSend(s session.Send) error {
	return t.one("update send", updateSend, s.State, s.Kind, s.Reason, s.Protocol, s.RPCID, s.Written, s.Answer, s.AnswerDigest, ms(s.EndedAt), s.ID)
}

const sendColumns = `SELECT id, effect, round, server, config, tool, definition, args_digest, state, kind, reason, protocol, rpc_id, written, answer,
	answer_digest, sent_at, ended_at FROM sends`

func scanSend(r scanner) (s session.Send, err error) {
	var sent, ended int64
	err = r.Scan(&s.ID, &s.Effect, &s.Round, &s.Server, &s.Config, &s.Tool, &s.Definition, &s.ArgsDigest, &s.State, &s.Kind, &s.Reason, &s.Protocol,
		&s.RPCID, &s.Written, &s.Answer, &s.AnswerDigest, &sent, &ended)
	s.SentAt, s.EndedAt = at(sent), at(ended)
	return s, err
}

const sendsOf = `SELECT id, effect, round, server, config, tool, definition, args_digest, state, kind, reason, protocol, rpc_id, written, '',
	answer_digest, sent_at, ended_at FROM sends WHERE effect = ? ORDER BY round`

// Sends lists what was sent for a call, in order, without the answers.
func (t *Tx) Sends(id session.EffectID) ([]session.Send, error) {
	return list(t, "list sends", scanSend, sendsOf, id)
}

// Send returns one send.
func (t *Tx) Send(id string) (session.Send, error) {
	return get(t, "load send", scanSend, sendColumns+` WHERE id = ?`, id)
}

const deleteServers = `DELETE FROM servers WHERE session = ?`
const insertServer = `INSERT INTO servers (session, name, ord, command, args, env, digest, tools) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

// PutServers replaces the servers of a session.
func (t *Tx) PutServers(id session.SessionID, servers []session.ServerDef) error {
	if _, err := t.exec("delete servers", deleteServers, id); err != nil {
		return err
	}
	for i, s := range servers {
		if _, err := t.exec("insert server", insertServer, id, s.Name, i, s.Command, enc(t, append([]string{}, s.Args...)), enc(t, append([]string{}, s.Env...)),
			s.Digest, enc(t, s.Tools)); err != nil {
			return err
		}
	}
	return nil
}

const serversOf = `SELECT name, command, args, env, digest, tools FROM servers WHERE session = ? ORDER BY ord`

// Servers lists the servers that a client supplied for a session.
func (t *Tx) Servers(id session.SessionID) ([]session.ServerDef, error) {
	return list(t, "list servers", func(r scanner) (s session.ServerDef, err error) {
		var args, env, tools string
		if err = r.Scan(&s.Name, &s.Command, &args, &env, &s.Digest, &tools); err == nil {
			err = malformed("server "+s.Name, dec(args, &s.Args))
		}
		if err == nil {
			err = malformed("server "+s.Name, dec(env, &s.Env))
		}
		if err == nil {
			err = malformed("server "+s.Name, dec(tools, &s.Tools))
		}
		return s, err
	}, serversOf, id)
}
