-- A standing answer of the user: calls that it covers are allowed, asked about or refused without a new answer. kind says what value holds:
-- a command line, the first words of one (a JSON list), a directory, or nothing when it covers every call of the tool. An allowing rule
-- counts for the implementation it was given for; the others go by the tool's name alone. A revoked rule stays on record.
CREATE TABLE rules (
  id         TEXT PRIMARY KEY,
  verdict    TEXT NOT NULL CHECK (verdict IN ('allow', 'ask', 'deny')),
  kind       TEXT NOT NULL CHECK (kind IN ('command', 'prefix', 'edit', 'tool')),
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

CREATE INDEX rules_live ON rules (created_at) WHERE revoked_at = 0;

-- What a standing answer to the question would cover, in words; '' when none is offered.
ALTER TABLE approvals ADD COLUMN always TEXT NOT NULL DEFAULT '';

-- What the user allowed beforehand for the goal's own work, each with the revision it was given for.
ALTER TABLE goals ADD COLUMN grants TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(grants));
