-- A session that was deleted and of which something may be left beside the store: folders of calls, long answers, recorded work trees, and what
-- its rows held in free pages. The row goes when nothing is.
CREATE TABLE erasures (
  session   TEXT PRIMARY KEY,
  left_over TEXT NOT NULL CHECK (json_valid(left_over)),
  at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Settlements are only ever appended, and go with their session.
DROP TRIGGER settlements_kept;
CREATE TRIGGER settlements_kept BEFORE DELETE ON settlements
WHEN NOT EXISTS (SELECT 1 FROM effects e JOIN erasures x ON x.session = e.session WHERE e.id = OLD.effect) BEGIN
  SELECT RAISE(ABORT, 'a settlement is never removed');
END;

-- The plan of a session, as its model last wrote it.
CREATE TABLE plans (
  session TEXT PRIMARY KEY REFERENCES sessions (id),
  entries TEXT NOT NULL CHECK (json_valid(entries)),
  at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A question of the model is one of the agent's questions. question is what it asks, '' when a permission is asked for; choices are the answers
-- that it offers, and answer what the user said in words of their own.
ALTER TABLE approvals ADD COLUMN question TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN choices TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(choices));
ALTER TABLE approvals ADD COLUMN answer TEXT NOT NULL DEFAULT '';

-- One more kind of rules: for the hosts that a pattern names.
CREATE TABLE rules_2 (
  id         TEXT PRIMARY KEY,
  verdict    TEXT NOT NULL CHECK (verdict IN ('allow', 'ask', 'deny')),
  kind       TEXT NOT NULL CHECK (kind IN ('command', 'prefix', 'edit', 'glob', 'tool', 'server', 'host')),
  session    TEXT NOT NULL DEFAULT '',
  cwd        TEXT NOT NULL DEFAULT '',
  tool       TEXT NOT NULL,
  version    TEXT NOT NULL DEFAULT '',
  value      TEXT NOT NULL DEFAULT '',
  programs   TEXT NOT NULL DEFAULT '',
  approval   TEXT NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL,
  revoked_at INTEGER NOT NULL DEFAULT 0,
  CHECK (verdict <> 'allow' OR session <> '' OR cwd <> ''),
  CHECK (kind = 'tool' OR value <> '')
) STRICT;
INSERT INTO rules_2 (id, verdict, kind, session, cwd, tool, version, value, programs, approval, created_at, revoked_at)
  SELECT id, verdict, kind, session, cwd, tool, version, value, programs, approval, created_at, revoked_at FROM rules ORDER BY rowid;
DROP TABLE rules;
ALTER TABLE rules_2 RENAME TO rules;
CREATE INDEX rules_live ON rules (created_at) WHERE revoked_at = 0;
