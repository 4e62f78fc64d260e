-- Version 4 makes room for what a holder leaves for the next one.
-- min_client: 0.1.0

-- step: add what is kept to the lock table
ALTER TABLE {{lock}} ADD COLUMN kept text NOT NULL DEFAULT '' CHECK (octet_length(kept) <= 4096);
