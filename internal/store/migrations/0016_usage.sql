-- What of a request's tokens came from a cache, went to one and was reasoning. NULL is what the provider did not tell.
ALTER TABLE requests ADD COLUMN cache_read_tokens INTEGER;
ALTER TABLE requests ADD COLUMN cache_write_tokens INTEGER;
ALTER TABLE requests ADD COLUMN reasoning_tokens INTEGER;
