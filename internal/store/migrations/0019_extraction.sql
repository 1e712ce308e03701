-- Requirements that the model read out of the objective. extraction says how far that came, extraction_note why it came to nothing.
ALTER TABLE goals ADD COLUMN extraction TEXT NOT NULL DEFAULT '' CHECK (extraction IN ('', 'pending', 'done', 'failed'));
ALTER TABLE goals ADD COLUMN extraction_note TEXT NOT NULL DEFAULT '';

-- origin: 'user' with the objective, 'added' by the user later, 'model' read out of the objective. Only what the user confirmed binds; the rest
-- sends the work back once, which is what sent_back says.
ALTER TABLE requirements ADD COLUMN origin TEXT NOT NULL DEFAULT 'user' CHECK (origin IN ('user', 'added', 'model'));
ALTER TABLE requirements ADD COLUMN confirmed INTEGER NOT NULL DEFAULT 1 CHECK (confirmed IN (0, 1));
ALTER TABLE requirements ADD COLUMN sent_back INTEGER NOT NULL DEFAULT 0 CHECK (sent_back IN (0, 1));

-- One more purpose of a request.
ALTER TABLE requests ADD COLUMN purpose_2 TEXT NOT NULL DEFAULT '' CHECK (purpose_2 IN ('', 'compaction', 'requirements'));
UPDATE requests SET purpose_2 = purpose;
ALTER TABLE requests DROP COLUMN purpose;
ALTER TABLE requests RENAME COLUMN purpose_2 TO purpose;
