-- One more mode.
CREATE TABLE sessions_2 (
  id         TEXT PRIMARY KEY,
  cwd        TEXT NOT NULL,
  roots      TEXT NOT NULL CHECK (json_valid(roots)),
  identity   TEXT NOT NULL,
  title      TEXT NOT NULL DEFAULT '',
  mode       TEXT NOT NULL CHECK (mode IN ('ask', 'edit', 'auto', 'plan')),
  model      TEXT NOT NULL DEFAULT '' ,
  profile    TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(profile)),
  owner      TEXT NOT NULL DEFAULT '',
  generation INTEGER NOT NULL CHECK (generation >= 0),
  last_seq   INTEGER NOT NULL DEFAULT 0,
  closed     INTEGER NOT NULL DEFAULT 0 CHECK (closed IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  served_at  INTEGER NOT NULL DEFAULT 0,
  work_tree  TEXT NOT NULL DEFAULT '',
  recovery   TEXT NOT NULL DEFAULT '' CHECK (recovery IN ('', 'always', 'attached', 'off'))
) STRICT;
INSERT INTO sessions_2 (id, cwd, roots, identity, title, mode, model, profile, owner, generation, last_seq, closed, created_at, updated_at,
  served_at, work_tree, recovery)
  SELECT id, cwd, roots, identity, title, mode, model, profile, owner, generation, last_seq, closed, created_at, updated_at, served_at, work_tree,
    recovery FROM sessions ORDER BY rowid;
DROP TABLE sessions;
ALTER TABLE sessions_2 RENAME TO sessions;
CREATE INDEX sessions_owner ON sessions (owner);
CREATE INDEX sessions_updated ON sessions (updated_at DESC, id DESC);

-- Two more kinds of rules: for the files that a pattern names, and for every tool of an external server.
CREATE TABLE rules_2 (
  id         TEXT PRIMARY KEY,
  verdict    TEXT NOT NULL CHECK (verdict IN ('allow', 'ask', 'deny')),
  kind       TEXT NOT NULL CHECK (kind IN ('command', 'prefix', 'edit', 'glob', 'tool', 'server')),
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
