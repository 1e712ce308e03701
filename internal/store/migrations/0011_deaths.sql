-- Whether the process died in the attempt. One that let go of it in order left it running as well.
ALTER TABLE attempts ADD COLUMN died INTEGER NOT NULL DEFAULT 0 CHECK (died IN (0, 1));
UPDATE attempts SET died = 1 WHERE state = 'running';
