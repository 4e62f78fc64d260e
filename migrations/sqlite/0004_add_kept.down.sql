-- Version 4 is taken back: what holders left for the next ones is forgotten.

-- step: drop what is kept
ALTER TABLE {{lock}} DROP COLUMN kept;
