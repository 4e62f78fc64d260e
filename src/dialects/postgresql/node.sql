-- The entries of a node on PostgreSQL, who share the lease of one row: ;<id>=<end>;<id>=<end>; with ends of 16 digits.
-- They are written only as long as they are what was read (:seen), so that two who write at once do not undo each
-- other.

-- name: entries(name)
SELECT s.owner, s.node, s.entries, s.token, coalesce((SELECT f.token FROM {{lock}} AS f WHERE f.name = ''), 0), s.now,
       (s.owner IS NOT NULL AND s.expires_at > s.now)::int::bigint
  FROM (SELECT l.*, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
          FROM {{lock}} AS l WHERE l.name = :name::text AND l.name <> '' OFFSET 0) AS s;

-- name: add_entry(name, owner, token, seen, before, lease)
-- :before is all of the text that comes before the end of the new entry.
UPDATE {{lock}} AS l
   SET entries = :before::text || lpad((n.now + :lease::bigint)::text, 16, '0') || ';',
       expires_at = greatest(l.expires_at, n.now + :lease::bigint)
  FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now OFFSET 0) AS n
 WHERE l.name = :name::text AND l.owner = :owner::text AND l.token = :token::bigint AND l.entries = :seen::text;

-- name: replace(name, owner, token, seen, new_owner, new_token, label, actor, mark, lease, at_least, meta)
UPDATE {{lock}} AS l
   SET owner = :new_owner::text, token = :new_token::bigint, label = :label::text, actor = :actor::text,
       entries = :mark::text || lpad((n.now + :lease::bigint)::text, 16, '0') || ';',
       acquired_at = n.now, expires_at = n.now + :lease::bigint,
       reopens_at = CASE WHEN :at_least::bigint = 0 THEN 0 ELSE n.now + :at_least::bigint END,
       lease_us = :lease::bigint, meta = :meta::text
  FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now OFFSET 0) AS n
 WHERE l.name = :name::text AND l.owner = :owner::text AND l.token = :token::bigint AND l.entries = :seen::text;

-- name: drop_entry(name, owner, token, seen, others)
UPDATE {{lock}} SET entries = :others::text
 WHERE name = :name::text AND owner = :owner::text AND token = :token::bigint AND entries = :seen::text;

-- name: drop_last_entry(name, owner, token, seen)
UPDATE {{lock}} AS l SET owner = NULL, actor = l.owner, entries = '', meta = '',
       expires_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
 WHERE name = :name::text AND owner = :owner::text AND token = :token::bigint AND entries = :seen::text
RETURNING CASE WHEN l.wanted_until <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint THEN 0 ELSE
       (pg_notify('dlock_{{channel}}', coalesce(
          (SELECT w.owner FROM {{waiter}} AS w
            WHERE w.name = l.name AND w.ticket > l.served_ticket
              AND w.expires_at > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
            ORDER BY w.ticket LIMIT 1), repeat('-', 32)) || l.name) IS NOT NULL)::int::bigint END;

-- name: renew_entry(name, owner, token, mark, lease, at_least)
-- :mark is ;<id>= and the end after it is written over by a later one, whatever the other entries are. The row lives as
-- long as the longest of them. :at_least is as in extend.
UPDATE {{lock}} AS l
   SET entries = overlay(l.entries placing greatest(lpad((n.now + :lease::bigint)::text, 16, '0'),
                                                    substr(l.entries, strpos(l.entries, :mark::text) + length(:mark::text), 16))
                         from strpos(l.entries, :mark::text) + length(:mark::text) for 16),
       expires_at = greatest(l.expires_at, n.now + :lease::bigint),
       reopens_at = CASE WHEN :at_least::bigint = 0 THEN l.reopens_at
                         ELSE greatest(l.reopens_at, n.now + :at_least::bigint) END
  FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now OFFSET 0) AS n
 WHERE l.name = :name::text AND l.owner = :owner::text AND l.token = :token::bigint
   AND strpos(l.entries, :mark::text) > 0
RETURNING EXISTS (SELECT FROM {{waiter}} AS w
                   WHERE w.name = l.name AND w.owner <> l.owner AND (w.ticket = 0 OR w.ticket > l.served_ticket)
                     AND w.expires_at > n.now)::int::bigint;
