-- One more kind of entries: a summary that stands for everything before it. The entries themselves stay as they are.
CREATE TABLE items_2 (
  id         TEXT PRIMARY KEY,
  session    TEXT NOT NULL REFERENCES sessions (id),
  seq        INTEGER NOT NULL,
  thread     TEXT NOT NULL DEFAULT '',
  run        TEXT NOT NULL DEFAULT '',
  attempt    TEXT NOT NULL DEFAULT '',
  kind       TEXT NOT NULL CHECK (kind IN ('user', 'agent', 'thought', 'tool', 'note', 'marker', 'goal', 'compaction')),
  state      TEXT NOT NULL CHECK (state IN ('open', 'complete', 'interrupted')),
  body       TEXT NOT NULL CHECK (json_valid(body)),
  created_at INTEGER NOT NULL,
  UNIQUE (session, seq),
  CHECK (kind <> 'compaction' OR state = 'complete')
) STRICT;
INSERT INTO items_2 (id, session, seq, thread, run, attempt, kind, state, body, created_at)
  SELECT id, session, seq, thread, run, attempt, kind, state, body, created_at FROM items ORDER BY rowid;
DROP TABLE items;
ALTER TABLE items_2 RENAME TO items;
CREATE INDEX items_open ON items (session) WHERE state = 'open';
CREATE INDEX items_compactions ON items (session, thread, seq) WHERE kind = 'compaction';

-- What a request to a provider is for: '' is the next answer, 'compaction' a summary of what was said.
ALTER TABLE requests ADD COLUMN purpose TEXT NOT NULL DEFAULT '' CHECK (purpose IN ('', 'compaction'));
