-- Version 3 is taken back: the installation has no identity any more.

-- step: take the identity away
UPDATE {{lock}} SET meta = '' WHERE name = '';
-- probe: it is gone
SELECT CASE count(*) WHEN 0 THEN 1 ELSE 0 END FROM {{lock}} WHERE name = '' AND meta <> '';
