//go:build nextschema

package store

import (
	"fmt"
	"io/fs"
	"testing/fstest"
)

// A binary that is built with this tag plays the release after this one in tests: it has one more step, which rebuilds a table as a real
// one would.
const nextStep = `
CREATE TABLE next_marks (session TEXT PRIMARY KEY REFERENCES sessions (id), mark TEXT NOT NULL) STRICT;
INSERT INTO next_marks SELECT id, 'kept' FROM sessions;
ALTER TABLE instances ADD COLUMN next_note TEXT NOT NULL DEFAULT '';
`

func init() {
	ladder := fstest.MapFS{}
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			panic(err)
		}
		ladder[name] = &fstest.MapFile{Data: text}
	}
	ladder[fmt.Sprintf("migrations/%04d_next.sql", len(names)+1)] = &fstest.MapFile{Data: []byte(nextStep)}
	embedded = ladder
}
