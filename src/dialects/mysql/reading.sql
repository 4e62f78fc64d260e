-- How a row of the lock table is read for people on MySQL and MariaDB: in which state it is, who holds it, and who had
-- it last. schema/README.md says what the columns mean.

-- fragment: one_of_several
FROM {{holder}} h
                  WHERE l.owner IS NOT NULL AND l.mode <> '' AND h.name = l.name AND h.gate = l.owner AND h.token > 0
                    AND (h.expires_at > {{now}} OR l.expires_at <= {{now}})
                  ORDER BY IF(l.expires_at > {{now}}, h.token, h.expires_at) DESC, h.token DESC, h.acquired_at LIMIT 1

-- fragment: row
-- Of a row that several hold the node and label are those of the holder that came last and is there (of the entries of a
-- node the first), or of the one whose lease ended last. Where all of them have given it back (left_by_all) nobody holds it, although there may be places that
-- stay taken for an at-least time: it was released when the last of them went.
SELECT name, COALESCE((SELECT h.node {{one_of_several}}), node), IF({{left_by_all}}, NULL, owner),
       COALESCE((SELECT h.label {{one_of_several}}), label), meta, token,
       CASE WHEN owner IS NULL THEN IF(reopens_at > {{now}}, 'closed', 'free')
            WHEN expires_at > {{now}}
                 AND (mode = '' OR EXISTS (SELECT 1 FROM {{holder}} h WHERE h.name = l.name AND h.gate = l.owner AND h.token > 0
                                              AND h.expires_at > {{now}})) THEN 'held'
            WHEN GREATEST(reopens_at, expires_at) > {{now}} THEN 'closed'
            WHEN {{left_by_all}} THEN 'free' ELSE 'expired' END,
       {{now}} - acquired_at,
       CASE WHEN owner IS NOT NULL AND expires_at > {{now}} THEN expires_at - {{now}}
            WHEN reopens_at > {{now}} THEN reopens_at - {{now}}
            WHEN owner IS NOT NULL AND NOT {{left_by_all}} THEN expires_at - {{now}} ELSE 0 END,
       CASE WHEN owner IS NULL THEN 0 WHEN mode = '' THEN 1
            ELSE (SELECT COUNT(*) FROM {{holder}} h
                   WHERE h.name = l.name AND h.gate = l.owner AND h.token > 0 AND h.expires_at > {{now}}) END,
       lease_us,
       (SELECT COUNT(*) FROM {{waiter}} w
         WHERE w.name = l.name AND w.expires_at > {{now}} AND (w.ticket = 0 OR w.ticket > l.served_ticket)),
       kept, acquired_at, IF({{left_by_all}}, COALESCE({{left_at}}, expires_at), expires_at), IF(ended_token = token, outcome, ''), reason,
       IF(owner IS NOT NULL AND mode <> '' AND (expires_at > {{now}} OR NOT {{left_by_all}}), mode, 'exclusive'),
       owner IS NOT NULL AND (actor LIKE '%0000000000000000' OR actor LIKE '%ffffffffffffffff'),
       CAST(COALESCE((SELECT SUM(h.permits) FROM {{holder}} h
                       WHERE l.mode = 'permits' AND h.name = l.name AND h.gate = l.owner
                         AND GREATEST(h.expires_at, h.reopens_at) > {{now}}), 0) AS SIGNED),
       COALESCE((SELECT h.permit_limit FROM {{holder}} h
                  WHERE l.mode = 'permits' AND h.name = l.name AND h.gate = l.owner
                    AND GREATEST(h.expires_at, h.reopens_at) > {{now}}
                  ORDER BY h.acquired_at DESC, h.token DESC LIMIT 1), 0)
  FROM {{lock}} l WHERE name <> ''

-- name: inspect(name) -> fresh
{{row}} AND name = :name;

-- name: list(prefix) -> fresh
{{row}} AND name >= :prefix AND LEFT(name, OCTET_LENGTH(:prefix)) = :prefix ORDER BY name;
