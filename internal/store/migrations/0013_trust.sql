-- A directory whose own configuration counts, as the files concerned were when the user said so: digest is over all of them. shown is what
-- the user was shown in words. A revoked trust stays on record until the directory is trusted anew.
CREATE TABLE trusts (
  dir      TEXT PRIMARY KEY CHECK (dir <> ''),
  digest   TEXT NOT NULL CHECK (digest <> ''),
  shown    TEXT NOT NULL DEFAULT '',
  door     TEXT NOT NULL,
  at       INTEGER NOT NULL,
  ended_at INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
