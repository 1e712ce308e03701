-- The place of a session's next unattended run among those of all processes. A working one holds a slot; a waiting one is in line for it.
-- work_tree is the tree that the run may write, '' for none; while keeps is set the tree stays the run's between two turns. A process's
-- places go with its row.
CREATE TABLE queue (
  session   TEXT PRIMARY KEY REFERENCES sessions (id),
  run       TEXT NOT NULL REFERENCES runs (id),
  instance  TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
  work_tree TEXT NOT NULL DEFAULT '',
  state     TEXT NOT NULL CHECK (state IN ('waiting', 'working')),
  keeps     INTEGER NOT NULL DEFAULT 0 CHECK (keeps IN (0, 1)),
  since     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX queue_instance ON queue (instance);
CREATE INDEX queue_run ON queue (run);

-- What waits for anything else, rests or has ended holds no place. A stop frees it when the work has ended, not when it is stored. Between
-- two turns a run goes to the end of the line.
CREATE TRIGGER queue_left AFTER UPDATE OF phase, desired ON runs WHEN NEW.phase IN ('waiting', 'ended') OR NEW.desired <> 'run' AND NEW.phase <> 'working' BEGIN
  DELETE FROM queue WHERE run = NEW.id;
END;
CREATE TRIGGER queue_turned AFTER UPDATE OF phase ON runs WHEN OLD.phase = 'working' AND NEW.phase = 'queued' AND NEW.desired = 'run' BEGIN
  UPDATE queue SET state = 'waiting', keeps = 1 WHERE run = NEW.id AND state = 'working';
END;

-- When work of the session last began: whose turn it is goes round. work_tree is what the directory belongs to, recovery what is done with
-- inherited work, '' for what the configuration says.
ALTER TABLE sessions ADD COLUMN served_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN work_tree TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN recovery TEXT NOT NULL DEFAULT '' CHECK (recovery IN ('', 'always', 'attached', 'off'));

-- The process that had accepted it, or was to go on with it, is gone. The next admission takes it back, and so does a person's word.
ALTER TABLE runs ADD COLUMN left_behind INTEGER NOT NULL DEFAULT 0 CHECK (left_behind IN (0, 1));
