-- Version 3 gives the installation an identity, by which a connection to another file is told from one to this.
-- min_client: 0.1.0

-- step: give the installation an identity
-- In the floor row, whose metadata nobody else uses. An identity that is there already stays.
UPDATE {{lock}} SET meta = lower(hex(randomblob(16))) WHERE name = '' AND meta = '';
