-- Whether a program set the goal, an MCP client: its words are that program's to revise. All others are the user's.
ALTER TABLE goals ADD COLUMN program INTEGER NOT NULL DEFAULT 0 CHECK (program IN (0, 1));
