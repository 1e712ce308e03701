-- Two more controls: settling an unknown outcome, and stopping everything of a session.
CREATE TABLE commands_2 (
  id          TEXT PRIMARY KEY,
  session     TEXT NOT NULL REFERENCES sessions (id),
  kind        TEXT NOT NULL CHECK (kind IN ('prompt', 'cancel', 'answer', 'mode', 'goal', 'close', 'settle', 'stop')),
  ref         TEXT NOT NULL DEFAULT '',
  body        TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(body)),
  instance    TEXT NOT NULL,
  at          INTEGER NOT NULL,
  consumed_at INTEGER NOT NULL DEFAULT 0,
  generation  INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO commands_2 (id, session, kind, ref, body, instance, at, consumed_at, generation)
  SELECT id, session, kind, ref, body, instance, at, consumed_at, generation FROM commands ORDER BY rowid;
DROP TABLE commands;
ALTER TABLE commands_2 RENAME TO commands;
CREATE INDEX commands_open ON commands (session, at) WHERE consumed_at = 0;

-- Listings over all sessions.
CREATE INDEX effects_unsettled ON effects (planned_at) WHERE state <> 'settled';
CREATE INDEX goals_updated ON goals (updated_at DESC, id DESC);
CREATE INDEX goals_by_key ON goals (idempotency_key) WHERE idempotency_key <> '';

-- One MCP server of a session as the client supplied it, without secret values: environment values are not stored, arguments that may
-- hold a secret are masked. digest is a keyed hash over everything, values included. tools is what the server last listed.
CREATE TABLE servers (
  session TEXT NOT NULL REFERENCES sessions (id),
  name    TEXT NOT NULL,
  ord     INTEGER NOT NULL,
  command TEXT NOT NULL,
  args    TEXT NOT NULL CHECK (json_valid(args)),
  env     TEXT NOT NULL CHECK (json_valid(env)),
  digest  TEXT NOT NULL,
  tools   TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tools)),
  PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

-- One send of a tools/call to an MCP server. The row is committed before the first byte leaves; without an answer in it the outcome is
-- unknown, whatever ended the wait. A late answer is appended as resolved; the reason of the unknown stays.
CREATE TABLE sends (
  id            TEXT PRIMARY KEY,
  effect        TEXT NOT NULL REFERENCES effects (id),
  round         INTEGER NOT NULL CHECK (round > 0),
  server        TEXT NOT NULL,
  config        TEXT NOT NULL,
  tool          TEXT NOT NULL,
  definition    TEXT NOT NULL,
  args_digest   TEXT NOT NULL,
  state         TEXT NOT NULL CHECK (state IN ('sending', 'answered', 'unknown', 'resolved')),
  kind          TEXT NOT NULL DEFAULT '' CHECK (kind IN ('', 'ok', 'tool_error', 'protocol_error', 'input_required', 'task', 'malformed')),
  reason        TEXT NOT NULL DEFAULT '',
  protocol      TEXT NOT NULL DEFAULT '',
  rpc_id        TEXT NOT NULL DEFAULT '',
  written       INTEGER NOT NULL DEFAULT 0,
  answer        TEXT NOT NULL DEFAULT '',
  answer_digest TEXT NOT NULL DEFAULT '',
  sent_at       INTEGER NOT NULL,
  ended_at      INTEGER NOT NULL DEFAULT 0,
  UNIQUE (effect, round),
  CHECK (state NOT IN ('answered', 'resolved') OR answer_digest <> '')
) STRICT;
