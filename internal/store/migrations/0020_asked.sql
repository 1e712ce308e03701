-- The budget that a goal was created with: what an idempotency key was used for. budget is the one that counts.
ALTER TABLE goals ADD COLUMN asked_budget TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(asked_budget));
UPDATE goals SET asked_budget = budget;
