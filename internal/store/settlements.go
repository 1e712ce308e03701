package store

import (
	"context"
	"database/sql"
	"time"

	"holdfast/session"
)

const settlementsOf = `SELECT effect, seq, fact, source, note, evidence, at, instance FROM settlements WHERE effect = ? ORDER BY seq`

// Settlements lists what was found out about a call, in order.
func (t *Tx) Settlements(id session.EffectID) ([]session.Settlement, error) {
	return list(t, "list settlements", func(r scanner) (s session.Settlement, err error) {
		var when int64
		err = r.Scan(&s.Effect, &s.Seq, &s.Fact, &s.By, &s.Note, &s.Evidence, &when, &s.Instance)
		s.At = at(when)
		return s, err
	}, settlementsOf, id)
}

// The same finding again is not news: a repeated repair appends nothing.
const appendSettlement = `INSERT INTO settlements (effect, seq, fact, source, note, evidence, at, instance)
	SELECT ?1, coalesce((SELECT max(seq) FROM settlements WHERE effect = ?1), 0) + 1, ?2, ?3, ?4, ?5, ?6, ?7
	WHERE NOT EXISTS (SELECT 1 FROM settlements s WHERE s.effect = ?1 AND s.fact = ?2 AND s.source = ?3 AND s.note = ?4 AND s.evidence = ?5
		AND s.seq = (SELECT max(seq) FROM settlements WHERE effect = ?1))`

const firstSettlement = `INSERT INTO settlements (effect, seq, fact, source, note, evidence, at, instance) VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, ?7)`

// AppendSettlement stores what was found out, after everything before it. One that is known to be the first need not be looked for.
func (t *Tx) AppendSettlement(s session.Settlement) error {
	if s.Seq == 1 {
		_, err := t.exec("insert settlement", firstSettlement, s.Effect, s.Fact, s.By, s.Note, s.Evidence, ms(s.At), s.Instance)
		return err
	}
	_, err := t.exec("append settlement", appendSettlement, s.Effect, s.Fact, s.By, s.Note, s.Evidence, ms(s.At), s.Instance)
	return err
}

// The index sends_kept is used only with the words of its definition.
const answerOver = `SELECT count(*) > 0 AND min(e.state = 'settled' AND e.settled_at < ?2 AND r.phase = 'ended')
	FROM sends s JOIN effects e ON e.id = s.effect JOIN runs r ON r.id = e.run
	WHERE s.answer = '' AND s.answer_digest <> '' AND s.answer_digest = ?1`

// AnswerOver tells whether every call that got a large answer was settled before a time and its work has ended.
func (d *DB) AnswerOver(ctx context.Context, digest string, before time.Time) (over bool, err error) {
	err = d.Read(ctx, func(tx *sql.Tx) (err error) {
		var yes sql.NullBool
		over, err = get(&Tx{tx: tx}, "look for the calls of an answer", func(r scanner) (bool, error) { err := r.Scan(&yes); return yes.Bool, err }, answerOver, digest,
			ms(before))
		return err
	})
	return over, err
}
