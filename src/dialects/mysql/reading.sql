-- How a row of the lock table is read for people on MySQL and MariaDB. schema/README.md says what the columns mean;
-- lock.sql beside this one how now is read.

-- name: inspect(name) -> fresh
SELECT name, node, owner, label, meta, token,
       CASE WHEN owner IS NOT NULL AND expires_at > {{now}} THEN 'held'
            WHEN reopens_at > {{now}} THEN 'closed'
            WHEN owner IS NOT NULL THEN 'expired' ELSE 'free' END,
       {{now}} - acquired_at,
       CASE WHEN owner IS NOT NULL AND expires_at > {{now}}
              THEN expires_at - {{now}}
            WHEN reopens_at > {{now}}
              THEN reopens_at - {{now}}
            WHEN owner IS NOT NULL THEN expires_at - {{now}}
            ELSE 0 END,
       CASE WHEN owner IS NULL THEN 0 WHEN mode = '' THEN 1
            ELSE (SELECT COUNT(*) FROM {{holder}} h
                   WHERE h.name = l.name AND h.gate = l.owner AND h.token > 0
                     AND h.expires_at > {{now}}) END,
       lease_us,
       (SELECT COUNT(*) FROM {{waiter}} w
         WHERE w.name = l.name AND w.expires_at > {{now}}
           AND (w.ticket = 0 OR w.ticket > l.served_ticket)),
       kept, acquired_at, expires_at, IF(ended_token = token, outcome, ''), reason,
       IF(owner IS NOT NULL AND mode <> '', mode, 'exclusive'), owner IS NOT NULL AND
         (actor LIKE '%0000000000000000' OR actor LIKE '%ffffffffffffffff'),
       CAST(COALESCE((SELECT SUM(h.permits) FROM {{holder}} h
                       WHERE l.mode = 'permits' AND h.name = l.name AND h.gate = l.owner
                         AND GREATEST(h.expires_at, h.reopens_at) > {{now}}), 0)
            AS SIGNED),
       COALESCE((SELECT h.permit_limit FROM {{holder}} h
                  WHERE l.mode = 'permits' AND h.name = l.name AND h.gate = l.owner
                    AND GREATEST(h.expires_at, h.reopens_at) > {{now}}
                  ORDER BY h.acquired_at DESC, h.token DESC LIMIT 1), 0)
  FROM {{lock}} l WHERE name = :name AND name <> '';

-- name: list(prefix) -> fresh
SELECT name, node, owner, label, meta, token,
       CASE WHEN owner IS NOT NULL AND expires_at > {{now}} THEN 'held'
            WHEN reopens_at > {{now}} THEN 'closed'
            WHEN owner IS NOT NULL THEN 'expired' ELSE 'free' END,
       {{now}} - acquired_at,
       CASE WHEN owner IS NOT NULL AND expires_at > {{now}}
              THEN expires_at - {{now}}
            WHEN reopens_at > {{now}}
              THEN reopens_at - {{now}}
            WHEN owner IS NOT NULL THEN expires_at - {{now}}
            ELSE 0 END,
       CASE WHEN owner IS NULL THEN 0 WHEN mode = '' THEN 1
            ELSE (SELECT COUNT(*) FROM {{holder}} h
                   WHERE h.name = l.name AND h.gate = l.owner AND h.token > 0
                     AND h.expires_at > {{now}}) END,
       lease_us,
       (SELECT COUNT(*) FROM {{waiter}} w
         WHERE w.name = l.name AND w.expires_at > {{now}}
           AND (w.ticket = 0 OR w.ticket > l.served_ticket)),
       kept, acquired_at, expires_at, IF(ended_token = token, outcome, ''), reason,
       IF(owner IS NOT NULL AND mode <> '', mode, 'exclusive'), owner IS NOT NULL AND
         (actor LIKE '%0000000000000000' OR actor LIKE '%ffffffffffffffff'),
       CAST(COALESCE((SELECT SUM(h.permits) FROM {{holder}} h
                       WHERE l.mode = 'permits' AND h.name = l.name AND h.gate = l.owner
                         AND GREATEST(h.expires_at, h.reopens_at) > {{now}}), 0)
            AS SIGNED),
       COALESCE((SELECT h.permit_limit FROM {{holder}} h
                  WHERE l.mode = 'permits' AND h.name = l.name AND h.gate = l.owner
                    AND GREATEST(h.expires_at, h.reopens_at) > {{now}}
                  ORDER BY h.acquired_at DESC, h.token DESC LIMIT 1), 0)
  FROM {{lock}} l WHERE name <> '' AND name >= :prefix AND LEFT(name, OCTET_LENGTH(:prefix)) = :prefix
 ORDER BY name;
