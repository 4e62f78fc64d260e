-- Version 4 makes room for what a holder leaves for the next one.
-- min_client: 0.1.0

-- step: add what is kept to the lock table
ALTER TABLE {{lock}} ADD COLUMN kept TEXT NOT NULL DEFAULT '' CHECK (length(CAST(kept AS BLOB)) <= 4096);
