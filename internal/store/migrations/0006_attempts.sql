-- Whether an attempt went on in the work tree as it was, and what the work tree was when it was last recorded: a digest over what HEAD
-- names and the tree.
ALTER TABLE attempts ADD COLUMN continued INTEGER NOT NULL DEFAULT 0 CHECK (continued IN (0, 1));
ALTER TABLE attempts ADD COLUMN fingerprint TEXT NOT NULL DEFAULT '';

-- A person asked for the work of a waiting run to begin again from its entry. The next admission takes it.
ALTER TABLE runs ADD COLUMN redo TEXT NOT NULL DEFAULT '' CHECK (redo IN ('', 'entry', 'keep'));

-- The work tree around one call that may change anything: what differs between the two is what the call is taken to have changed.
CREATE TABLE effect_trees (
  effect TEXT PRIMARY KEY REFERENCES effects (id),
  run    TEXT NOT NULL REFERENCES runs (id),
  before TEXT NOT NULL,
  after  TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX effect_trees_run ON effect_trees (run);

-- One step that put files back: a turn that was taken back, such a step taken back again, or an attempt that was rolled back. It is stored
-- before the first file changes, and says of each path what it must hold to be touched and what it is given.
CREATE TABLE undos (
  id         TEXT PRIMARY KEY,
  session    TEXT NOT NULL REFERENCES sessions (id),
  number     INTEGER NOT NULL CHECK (number > 0),
  kind       TEXT NOT NULL CHECK (kind IN ('undo', 'again', 'rollback')),
  run        TEXT NOT NULL REFERENCES runs (id),
  turn       INTEGER NOT NULL,
  of         TEXT NOT NULL DEFAULT '',
  saved      TEXT NOT NULL DEFAULT '',
  paths      TEXT NOT NULL CHECK (json_valid(paths)),
  state      TEXT NOT NULL CHECK (state IN ('accepted', 'settled')),
  instance   TEXT NOT NULL,
  at         INTEGER NOT NULL,
  settled_at INTEGER NOT NULL DEFAULT 0,
  UNIQUE (session, number)
) STRICT;
CREATE UNIQUE INDEX undos_open ON undos (session) WHERE state = 'accepted';
