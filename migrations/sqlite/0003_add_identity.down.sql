-- Version 3 is taken back: the installation has no identity any more.

-- step: take the identity away
UPDATE {{lock}} SET meta = '' WHERE name = '';
