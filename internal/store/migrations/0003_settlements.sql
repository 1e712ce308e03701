-- What was found out about a call, in order. Rows are only ever appended: the row of the call shows the newest, this table shows them all.
CREATE TABLE settlements (
  effect   TEXT NOT NULL REFERENCES effects (id),
  seq      INTEGER NOT NULL CHECK (seq > 0),
  fact     TEXT NOT NULL CHECK (fact IN ('not_started', 'unknown', 'completed', 'running_external')),
  source   TEXT NOT NULL CHECK (source IN ('result', 'receipt', 'probe', 'recovery', 'person')),
  note     TEXT NOT NULL DEFAULT '',
  evidence TEXT NOT NULL DEFAULT '',
  at       INTEGER NOT NULL,
  instance TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (effect, seq)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER settlements_unchanged BEFORE UPDATE ON settlements BEGIN SELECT RAISE(ABORT, 'a settlement is never changed'); END;
CREATE TRIGGER settlements_kept BEFORE DELETE ON settlements BEGIN SELECT RAISE(ABORT, 'a settlement is never removed'); END;
INSERT INTO settlements (effect, seq, fact, source, note, evidence, at)
  SELECT id, 1, fact, CASE WHEN settled_by = '' THEN 'recovery' ELSE settled_by END, note, result_digest, max(settled_at, dispatched_at, planned_at)
  FROM effects WHERE fact <> '';

-- What could still tell the outcome of a call that is unknown.
ALTER TABLE effects ADD COLUMN lookup TEXT NOT NULL DEFAULT '' CHECK (lookup IN ('', 'file', 'late_answer', 'nothing'));
UPDATE effects SET lookup = 'nothing' WHERE fact = 'unknown';

-- A wait for a time keeps its length, in milliseconds: whatever the clock does, it is not longer than that.
ALTER TABLE runs ADD COLUMN retry_wait INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET retry_wait = 3600000 WHERE retry_at > 0;

-- Large answers are kept beside the store, named by their digest.
CREATE INDEX sends_kept ON sends (answer_digest) WHERE answer = '' AND answer_digest <> '';
