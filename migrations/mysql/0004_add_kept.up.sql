-- Version 4 makes room for what a holder leaves for the next one.
-- min_client: 0.1.0

-- step: add what is kept to the lock table
ALTER TABLE {{lock}} ADD COLUMN kept VARCHAR(4096) NOT NULL DEFAULT '';
-- probe: it is there
SELECT count(*) FROM information_schema.columns
 WHERE table_schema = :schema AND table_name = :lock AND column_name = 'kept';
