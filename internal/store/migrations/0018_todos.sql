-- The plan of a Goal, as its model last wrote it. Unlike the plan of a session it keeps its Goal open while something in it is.
CREATE TABLE todos (
  goal    TEXT PRIMARY KEY REFERENCES goals (id),
  entries TEXT NOT NULL CHECK (json_valid(entries)),
  at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO todos (goal, entries, at)
  SELECT g.id, p.entries, p.at FROM goals g JOIN plans p ON p.session = g.session
  WHERE g.status IN ('active', 'paused', 'blocked', 'budget_exhausted');

-- reviewed is what the work had brought, as a digest, when a review last refused it, and reviews how often in a row that was the same.
-- todo_seen is a digest of the todo when a review last began.
ALTER TABLE goals ADD COLUMN reviewed TEXT NOT NULL DEFAULT '';
ALTER TABLE goals ADD COLUMN reviews INTEGER NOT NULL DEFAULT 0 CHECK (reviews >= 0);
ALTER TABLE goals ADD COLUMN todo_seen TEXT NOT NULL DEFAULT '';
