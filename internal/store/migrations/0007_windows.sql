-- The environment for commands that a client came with, once for each that differs. A variable that may hold a secret is there by its name
-- and a keyed hash of its value, never with the value.
CREATE TABLE environments (
  digest TEXT PRIMARY KEY,
  vars   TEXT NOT NULL CHECK (json_valid(vars)),
  at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What a run goes on with, and the process whose client asked for it. That of a session is what its current work runs with.
ALTER TABLE runs ADD COLUMN profile TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(profile));
ALTER TABLE runs ADD COLUMN client TEXT NOT NULL DEFAULT '';
UPDATE runs SET profile = (SELECT s.profile FROM sessions s WHERE s.id = runs.session) WHERE phase <> 'ended';

-- Who the client is, and what its process runs work with.
ALTER TABLE attachments ADD COLUMN client TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(client));
ALTER TABLE attachments ADD COLUMN profile TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(profile));

-- The process that an attempt was handed over to between two steps; '' when it ended in another way.
ALTER TABLE attempts ADD COLUMN handed_to TEXT NOT NULL DEFAULT '';
