-- Version 4 is taken back: what holders left for the next ones is forgotten.

-- step: drop what is kept
ALTER TABLE {{lock}} DROP COLUMN kept;
-- probe: it is gone
SELECT CASE count(*) WHEN 0 THEN 1 ELSE 0 END FROM information_schema.columns
 WHERE table_schema = :schema AND table_name = :lock AND column_name = 'kept';
