-- How a row of the lock table is read for people on SQLite. schema/README.md says what the columns mean;
-- lock.sql beside this one how now is read.

-- name: inspect(name)
SELECT name, node, owner, label, meta, token, state, now - acquired_at,
       CASE state WHEN 'free' THEN 0 WHEN 'closed' THEN reopens_at - now ELSE expires_at - now END,
       CASE WHEN state IN ('free', 'closed') THEN 0 WHEN mode = '' THEN 1
            ELSE (SELECT count(*) FROM {{holder}} AS h
                   WHERE h.name = s.name AND h.gate = s.owner AND h.token > 0 AND h.expires_at > s.now) END,
       lease_us,
       (SELECT count(*) FROM {{waiter}} AS w
         WHERE w.name = s.name AND w.expires_at > s.now AND (w.ticket = 0 OR w.ticket > s.served_ticket)),
       kept, acquired_at, expires_at, CASE WHEN ended_token = token THEN outcome ELSE '' END, reason,
       CASE WHEN owner IS NOT NULL AND mode <> '' THEN mode ELSE 'exclusive' END,
       owner IS NOT NULL AND (actor LIKE '%0000000000000000' OR actor LIKE '%ffffffffffffffff'),
       coalesce((SELECT sum(h.permits) FROM {{holder}} AS h
                  WHERE s.mode = 'permits' AND h.name = s.name AND h.gate = s.owner
                    AND max(h.expires_at, h.reopens_at) > s.now), 0),
       coalesce((SELECT h.permit_limit FROM {{holder}} AS h
                  WHERE s.mode = 'permits' AND h.name = s.name AND h.gate = s.owner
                    AND max(h.expires_at, h.reopens_at) > s.now
                  ORDER BY h.acquired_at DESC, h.token DESC LIMIT 1), 0)
  FROM (SELECT r.*, CASE WHEN r.owner IS NOT NULL AND r.expires_at > r.now THEN 'held'
                         WHEN r.reopens_at > r.now THEN 'closed'
                         WHEN r.owner IS NOT NULL THEN 'expired'
                         ELSE 'free' END AS state
          FROM (SELECT *, {{now}} AS now
                  FROM {{lock}} WHERE name = :name AND name <> '') AS r) AS s;

-- name: list(prefix)
-- No byte of UTF-8 is FF, so every name that begins with the prefix is below prefix + FF.
SELECT name, node, owner, label, meta, token, state, now - acquired_at,
       CASE state WHEN 'free' THEN 0 WHEN 'closed' THEN reopens_at - now ELSE expires_at - now END,
       CASE WHEN state IN ('free', 'closed') THEN 0 WHEN mode = '' THEN 1
            ELSE (SELECT count(*) FROM {{holder}} AS h
                   WHERE h.name = s.name AND h.gate = s.owner AND h.token > 0 AND h.expires_at > s.now) END,
       lease_us,
       (SELECT count(*) FROM {{waiter}} AS w
         WHERE w.name = s.name AND w.expires_at > s.now AND (w.ticket = 0 OR w.ticket > s.served_ticket)),
       kept, acquired_at, expires_at, CASE WHEN ended_token = token THEN outcome ELSE '' END, reason,
       CASE WHEN owner IS NOT NULL AND mode <> '' THEN mode ELSE 'exclusive' END,
       owner IS NOT NULL AND (actor LIKE '%0000000000000000' OR actor LIKE '%ffffffffffffffff'),
       coalesce((SELECT sum(h.permits) FROM {{holder}} AS h
                  WHERE s.mode = 'permits' AND h.name = s.name AND h.gate = s.owner
                    AND max(h.expires_at, h.reopens_at) > s.now), 0),
       coalesce((SELECT h.permit_limit FROM {{holder}} AS h
                  WHERE s.mode = 'permits' AND h.name = s.name AND h.gate = s.owner
                    AND max(h.expires_at, h.reopens_at) > s.now
                  ORDER BY h.acquired_at DESC, h.token DESC LIMIT 1), 0)
  FROM (SELECT r.*, CASE WHEN r.owner IS NOT NULL AND r.expires_at > r.now THEN 'held'
                         WHEN r.reopens_at > r.now THEN 'closed'
                         WHEN r.owner IS NOT NULL THEN 'expired'
                         ELSE 'free' END AS state
          FROM (SELECT *, {{now}} AS now
                  FROM {{lock}} WHERE name <> '' AND name >= :prefix AND name < CAST(:prefix || x'FF' AS TEXT)) AS r) AS s
 ORDER BY name;
