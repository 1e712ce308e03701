-- Limits of providers that are used up: what one session was told counts for every session that asks the same. model is '' where the limit is that
-- of the account. A new one gets a new id, so that a run can tell which ones it was to ask in spite of.
CREATE TABLE limits (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  provider    TEXT    NOT NULL,
  origin      TEXT    NOT NULL,
  credential  TEXT    NOT NULL,
  model       TEXT    NOT NULL,
  session     TEXT    NOT NULL, -- that was told; '' when it is erased
  message     TEXT    NOT NULL,
  learned_at  INTEGER NOT NULL,
  until       INTEGER NOT NULL,
  wait        INTEGER NOT NULL, -- how long it was from learned_at on, whatever the clock does
  lifted      INTEGER NOT NULL DEFAULT 0 CHECK (lifted IN (0, 1)), -- the endpoint has answered since, before its time
  UNIQUE (provider, origin, credential, model)
);

-- Limits up to this one do not hold the run: a person said to ask all the same, or it has waited for them.
ALTER TABLE runs ADD COLUMN past_limit INTEGER NOT NULL DEFAULT 0;
