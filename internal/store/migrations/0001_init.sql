-- One Holdfast process. The row is written after the process holds run/<id>.lock and removed before the lock file is.
CREATE TABLE instances (
  id          TEXT PRIMARY KEY,
  kind        TEXT NOT NULL,
  host        TEXT NOT NULL,
  boot        TEXT NOT NULL,
  pid         INTEGER NOT NULL,
  start_ticks INTEGER NOT NULL,
  started_at  INTEGER NOT NULL
) STRICT;

-- One conversation. generation is the fencing token: it rises with every change of owner and never falls.
CREATE TABLE sessions (
  id         TEXT PRIMARY KEY,
  cwd        TEXT NOT NULL,
  roots      TEXT NOT NULL CHECK (json_valid(roots)),
  identity   TEXT NOT NULL,
  title      TEXT NOT NULL DEFAULT '',
  mode       TEXT NOT NULL CHECK (mode IN ('ask', 'edit', 'plan')),
  model      TEXT NOT NULL DEFAULT '' ,
  profile    TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(profile)),
  owner      TEXT NOT NULL DEFAULT '',
  generation INTEGER NOT NULL CHECK (generation >= 0),
  last_seq   INTEGER NOT NULL DEFAULT 0,
  closed     INTEGER NOT NULL DEFAULT 0 CHECK (closed IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_owner ON sessions (owner);
CREATE INDEX sessions_updated ON sessions (updated_at DESC, id DESC);

-- A client of this process has the session open.
CREATE TABLE attachments (
  instance    TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
  session     TEXT NOT NULL REFERENCES sessions (id),
  attached_at INTEGER NOT NULL,
  PRIMARY KEY (instance, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX attachments_session ON attachments (session);

-- The append-only log of a session. Every interface is rebuilt from the records plus these rows.
CREATE TABLE events (
  session TEXT NOT NULL REFERENCES sessions (id),
  seq     INTEGER NOT NULL CHECK (seq > 0),
  kind    TEXT NOT NULL CHECK (kind IN ('item', 'run', 'goal', 'approval', 'session')),
  ref     TEXT NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

-- One piece of accepted work. desired outlives the process; phase says where the work stands.
CREATE TABLE runs (
  id              TEXT PRIMARY KEY,
  session         TEXT NOT NULL REFERENCES sessions (id),
  kind            TEXT NOT NULL CHECK (kind IN ('prompt', 'goal', 'verification')),
  ord             INTEGER NOT NULL,
  desired         TEXT NOT NULL CHECK (desired IN ('run', 'paused', 'cancelled', 'done')),
  phase           TEXT NOT NULL CHECK (phase IN ('queued', 'working', 'waiting', 'ended')),
  stop_reason     TEXT NOT NULL DEFAULT '',
  reason_code     TEXT NOT NULL DEFAULT '',
  reason          TEXT NOT NULL DEFAULT '',
  control_version INTEGER NOT NULL DEFAULT 1,
  goal            TEXT NOT NULL DEFAULT '',
  revision        INTEGER NOT NULL DEFAULT 0,
  input           TEXT NOT NULL DEFAULT '' ,
  commit_point    INTEGER NOT NULL DEFAULT 0,
  deaths          INTEGER NOT NULL DEFAULT 0,
  faults          INTEGER NOT NULL DEFAULT 0,
  retry_at        INTEGER NOT NULL DEFAULT 0,
  created_at      INTEGER NOT NULL,
  ended_at        INTEGER NOT NULL DEFAULT 0,
  CHECK (phase <> 'ended' OR desired IN ('done', 'cancelled'))
) STRICT;
CREATE INDEX runs_open ON runs (session, ord) WHERE phase <> 'ended';

-- One try at executing a run by one owner. The continuation key makes a second admission of the same intent impossible.
CREATE TABLE attempts (
  id               TEXT PRIMARY KEY,
  run              TEXT NOT NULL REFERENCES runs (id),
  number           INTEGER NOT NULL CHECK (number > 0),
  generation       INTEGER NOT NULL,
  instance         TEXT NOT NULL,
  pid              INTEGER NOT NULL,
  state            TEXT NOT NULL CHECK (state IN ('running', 'completed', 'cancelled', 'interrupted', 'stalled', 'failed')),
  mode             TEXT NOT NULL CHECK (mode IN ('first', 'turn', 'reconnect', 'checkpoint', 'new_turn')),
  rule             TEXT NOT NULL DEFAULT '',
  continuation_key TEXT NOT NULL UNIQUE,
  entry_tree       TEXT NOT NULL DEFAULT '',
  start_point      INTEGER NOT NULL,
  started_at       INTEGER NOT NULL,
  ended_at         INTEGER NOT NULL DEFAULT 0,
  UNIQUE (run, number)
) STRICT;
CREATE UNIQUE INDEX attempts_running ON attempts (run) WHERE state = 'running';

-- One entry of a session's history. seq is its place: the sequence number of the event that announced it.
CREATE TABLE items (
  id         TEXT PRIMARY KEY,
  session    TEXT NOT NULL REFERENCES sessions (id),
  seq        INTEGER NOT NULL,
  thread     TEXT NOT NULL DEFAULT '',
  run        TEXT NOT NULL DEFAULT '',
  attempt    TEXT NOT NULL DEFAULT '',
  kind       TEXT NOT NULL CHECK (kind IN ('user', 'agent', 'thought', 'tool', 'note', 'marker', 'goal')),
  state      TEXT NOT NULL CHECK (state IN ('open', 'complete', 'interrupted')),
  body       TEXT NOT NULL CHECK (json_valid(body)),
  created_at INTEGER NOT NULL,
  UNIQUE (session, seq)
) STRICT;
CREATE INDEX items_open ON items (session) WHERE state = 'open';

-- The journal of one tool call. A row that is dispatched and not settled after its owner died is an unknown outcome.
CREATE TABLE effects (
  id            TEXT PRIMARY KEY,
  session       TEXT NOT NULL REFERENCES sessions (id),
  run           TEXT NOT NULL REFERENCES runs (id),
  attempt       TEXT NOT NULL,
  item          TEXT NOT NULL REFERENCES items (id),
  tool          TEXT NOT NULL,
  version       TEXT NOT NULL,
  class         TEXT NOT NULL CHECK (class IN ('read_only', 'idempotent', 'state_probe', 'unknown')),
  args_digest   TEXT NOT NULL,
  state         TEXT NOT NULL CHECK (state IN ('planned', 'dispatched', 'settled')),
  fact          TEXT NOT NULL DEFAULT '' CHECK (fact IN ('', 'not_started', 'unknown', 'completed', 'running_external')),
  plan          TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(plan)),
  dir           TEXT NOT NULL DEFAULT '',
  result_digest TEXT NOT NULL DEFAULT '',
  exit_code     INTEGER,
  settled_by    TEXT NOT NULL DEFAULT '' CHECK (settled_by IN ('', 'result', 'receipt', 'probe', 'recovery', 'person')),
  note          TEXT NOT NULL DEFAULT '',
  planned_at    INTEGER NOT NULL,
  dispatched_at INTEGER NOT NULL DEFAULT 0,
  settled_at    INTEGER NOT NULL DEFAULT 0,
  settled_seq   INTEGER NOT NULL DEFAULT 0,
  CHECK (state <> 'settled' OR fact IN ('not_started', 'completed'))
) STRICT;
CREATE INDEX effects_run ON effects (run);
CREATE INDEX effects_open ON effects (session) WHERE state <> 'settled';

-- One durable question to the user, bound to what it was asked about.
CREATE TABLE approvals (
  id          TEXT PRIMARY KEY,
  session     TEXT NOT NULL REFERENCES sessions (id),
  run         TEXT NOT NULL REFERENCES runs (id),
  effect      TEXT NOT NULL REFERENCES effects (id),
  binding     TEXT NOT NULL,
  unknown     TEXT NOT NULL CHECK (json_valid(unknown)),
  state       TEXT NOT NULL CHECK (state IN ('pending', 'answered', 'consumed', 'void')),
  option      TEXT NOT NULL DEFAULT '',
  answered_by TEXT NOT NULL DEFAULT '',
  asked_at    INTEGER NOT NULL,
  answered_at INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX approvals_open ON approvals (effect) WHERE state IN ('pending', 'answered');
CREATE INDEX approvals_session ON approvals (session) WHERE state IN ('pending', 'answered');

-- One accepted control. Anyone may append; the owner of the session consumes it exactly once.
CREATE TABLE commands (
  id          TEXT PRIMARY KEY,
  session     TEXT NOT NULL REFERENCES sessions (id),
  kind        TEXT NOT NULL CHECK (kind IN ('prompt', 'cancel', 'answer', 'mode', 'goal', 'close')),
  ref         TEXT NOT NULL DEFAULT '',
  body        TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(body)),
  instance    TEXT NOT NULL,
  at          INTEGER NOT NULL,
  consumed_at INTEGER NOT NULL DEFAULT 0,
  generation  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX commands_open ON commands (session, at) WHERE consumed_at = 0;

-- One provider request, written before it is sent; its attribution never changes.
CREATE TABLE requests (
  id            TEXT PRIMARY KEY,
  session       TEXT NOT NULL REFERENCES sessions (id),
  run           TEXT NOT NULL REFERENCES runs (id),
  attempt       TEXT NOT NULL,
  goal          TEXT NOT NULL DEFAULT '',
  revision      INTEGER NOT NULL DEFAULT 0,
  model         TEXT NOT NULL,
  state         TEXT NOT NULL CHECK (state IN ('started', 'settled', 'unknown')),
  input_tokens  INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  started_at    INTEGER NOT NULL,
  settled_at    INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX requests_goal ON requests (goal) WHERE goal <> '';
CREATE INDEX requests_run ON requests (run);

-- An objective pursued over many turns. objective is immutable; a change is a new revision.
CREATE TABLE goals (
  id              TEXT PRIMARY KEY,
  session         TEXT NOT NULL REFERENCES sessions (id),
  run             TEXT NOT NULL REFERENCES runs (id),
  revision        INTEGER NOT NULL DEFAULT 1,
  control_version INTEGER NOT NULL DEFAULT 1,
  objective       TEXT NOT NULL,
  status          TEXT NOT NULL CHECK (status IN ('active', 'paused', 'blocked', 'achieved', 'cancelled', 'budget_exhausted')),
  reason_code     TEXT NOT NULL DEFAULT '',
  reason          TEXT NOT NULL DEFAULT '',
  candidate       TEXT NOT NULL DEFAULT '',
  blocker         TEXT NOT NULL DEFAULT '',
  blocker_turns   INTEGER NOT NULL DEFAULT 0,
  idle_turns      INTEGER NOT NULL DEFAULT 0,
  progress        TEXT NOT NULL DEFAULT '',
  feedback        TEXT NOT NULL DEFAULT '',
  cancel_command  TEXT NOT NULL DEFAULT '',
  idempotency_key TEXT NOT NULL DEFAULT '',
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  ended_at        INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX goals_open ON goals (session) WHERE status IN ('active', 'paused', 'blocked', 'budget_exhausted');
CREATE UNIQUE INDEX goals_key ON goals (session, idempotency_key) WHERE idempotency_key <> '';

CREATE TABLE requirements (
  goal     TEXT NOT NULL REFERENCES goals (id),
  revision INTEGER NOT NULL,
  id       TEXT NOT NULL,
  ord      INTEGER NOT NULL,
  kind     TEXT NOT NULL CHECK (kind IN ('command', 'file', 'semantic')),
  text     TEXT NOT NULL,
  command  TEXT NOT NULL DEFAULT '',
  path     TEXT NOT NULL DEFAULT '',
  pattern  TEXT NOT NULL DEFAULT '',
  result   TEXT NOT NULL DEFAULT 'unknown' CHECK (result IN ('unknown', 'met', 'unmet', 'waived')),
  reason   TEXT NOT NULL DEFAULT '',
  evidence TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(evidence)),
  judged_by TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (goal, revision, id)
) STRICT, WITHOUT ROWID;
