-- What is too large for the journal and the history: what a file held before and after a call that writes it, and long results. Both name it by
-- its digest. What two calls share is stored once, and no row is ever changed.
CREATE TABLE contents (
  digest TEXT PRIMARY KEY,
  body   BLOB NOT NULL
) STRICT;
CREATE TRIGGER contents_unchanged BEFORE UPDATE ON contents BEGIN SELECT RAISE(ABORT, 'a content is never changed'); END;
