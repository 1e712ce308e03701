-- What the tokens of a request cost when it was sent, as far as that was known; '' when nothing was. And how much it was expected to take at
-- most: what a request is counted with whose usage is not known. Requests of earlier versions have neither.
ALTER TABLE requests ADD COLUMN price TEXT NOT NULL DEFAULT '' CHECK (price = '' OR json_valid(price));
ALTER TABLE requests ADD COLUMN reserved_input INTEGER NOT NULL DEFAULT 0;
ALTER TABLE requests ADD COLUMN reserved_output INTEGER NOT NULL DEFAULT 0;
CREATE INDEX requests_session ON requests (session);

-- What a goal may use; {} is unlimited.
ALTER TABLE goals ADD COLUMN budget TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(budget));
