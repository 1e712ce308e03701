-- A command that runs in the background of a session, by the call that started it. The row is committed before anything starts. What
-- ended it is written once, from its receipt or from the lack of one. read_to is how much of its output the model has been given;
-- delivered_at says that the model was told of its end, in the same transaction as the entry that told it.
CREATE TABLE backgrounds (
  effect       TEXT PRIMARY KEY REFERENCES effects (id),
  session      TEXT NOT NULL REFERENCES sessions (id),
  number       INTEGER NOT NULL CHECK (number > 0),
  command      TEXT NOT NULL,
  dir          TEXT NOT NULL,
  desired      TEXT NOT NULL DEFAULT 'run' CHECK (desired IN ('run', 'stopped')),
  state        TEXT NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'ended', 'lost', 'not_started')),
  exit_code    INTEGER,
  signal       TEXT NOT NULL DEFAULT '',
  stopped      TEXT NOT NULL DEFAULT '',
  note         TEXT NOT NULL DEFAULT '',
  read_to      INTEGER NOT NULL DEFAULT 0 CHECK (read_to >= 0),
  started_at   INTEGER NOT NULL,
  ended_at     INTEGER NOT NULL DEFAULT 0,
  delivered_at INTEGER NOT NULL DEFAULT 0,
  UNIQUE (session, number),
  CHECK ((state = 'running') = (ended_at = 0)),
  CHECK (delivered_at = 0 OR state <> 'running')
) STRICT;
CREATE INDEX backgrounds_running ON backgrounds (session) WHERE state = 'running';
CREATE INDEX backgrounds_untold ON backgrounds (session) WHERE state <> 'running' AND delivered_at = 0;
