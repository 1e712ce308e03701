package store

import (
	"context"
	"database/sql"
)

// Record is a kind of record whose ids people type.
type Record string

// The kinds of records that can be looked up by a part of an id.
const (
	RecordSession  Record = "session"
	RecordGoal     Record = "goal"
	RecordEffect   Record = "effect"
	RecordApproval Record = "approval"
	RecordRule     Record = "rule"
)

// The ids are hexadecimal digits and dashes, all of them before "~". They begin with the time, so that only their end tells those apart
// that were made together.
const beginsOrEnds = ` WHERE id >= ?1 AND id < ?1 || '~' OR substr(id, -length(?1)) = ?1 ORDER BY id LIMIT ?2`

var findByID = map[Record]string{
	RecordSession:  `SELECT id FROM sessions` + beginsOrEnds,
	RecordGoal:     `SELECT id FROM goals` + beginsOrEnds,
	RecordEffect:   `SELECT id FROM effects` + beginsOrEnds,
	RecordApproval: `SELECT id FROM approvals` + beginsOrEnds,
	RecordRule:     `SELECT id FROM rules` + beginsOrEnds,
}

// Find lists the ids of a kind that begin or end with part, at most limit of them.
func (d *DB) Find(ctx context.Context, kind Record, part string, limit int) (ids []string, err error) {
	err = d.Read(ctx, func(tx *sql.Tx) (err error) {
		ids, err = list(&Tx{tx: tx}, "find "+string(kind), text[string], findByID[kind], part, limit)
		return err
	})
	return ids, err
}

// SchemaVersion is the schema that this binary writes.
func SchemaVersion() int {
	s, err := loadSchema(embedded)
	if err != nil {
		return 0 // a mistake in the build; Open says which
	}
	return len(s)
}
