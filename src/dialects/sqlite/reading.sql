-- How a row of the lock table is read for people on SQLite: in which state it is, who holds it, and who had it last.
-- schema/README.md says what the columns mean.

-- fragment: one_of_several
FROM (SELECT h.node, h.label, h.token, h.acquired_at, CASE WHEN s.expires_at > s.now THEN h.token ELSE h.expires_at END AS place
                          FROM {{holder}} AS h
                         WHERE s.owner IS NOT NULL AND s.mode <> '' AND h.name = s.name AND h.gate = s.owner AND h.token > 0
                           AND (h.expires_at > s.now OR s.expires_at <= s.now)) AS h
                  ORDER BY h.place DESC, h.token DESC, h.acquired_at LIMIT 1

-- fragment: row
-- Of a row that several hold the node and label are those of the holder that came last and is there (of the entries of a
-- node the first), or of the one whose lease ended last. Where all of them have given it back (left_by_all) nobody holds it, although there may be places that
-- stay taken for an at-least time: it was released when the last of them went.
SELECT name, coalesce((SELECT h.node {{one_of_several}}), node), CASE WHEN NOT left_by_all THEN owner END,
       coalesce((SELECT h.label {{one_of_several}}), label), meta, token, state, now - acquired_at,
       CASE state WHEN 'free' THEN 0 WHEN 'closed' THEN max(reopens_at, CASE WHEN owner IS NULL THEN 0 ELSE expires_at END) - now
            ELSE expires_at - now END,
       CASE WHEN state IN ('free', 'closed') THEN 0 WHEN mode = '' THEN 1
            ELSE (SELECT count(*) FROM {{holder}} AS h
                   WHERE h.name = s.name AND h.gate = s.owner AND h.token > 0 AND h.expires_at > s.now) END,
       lease_us,
       (SELECT count(*) FROM {{waiter}} AS w
         WHERE w.name = s.name AND w.expires_at > s.now AND (w.ticket = 0 OR w.ticket > s.served_ticket)),
       kept, acquired_at, CASE WHEN left_by_all THEN coalesce(left_at, expires_at) ELSE expires_at END,
       CASE WHEN ended_token = token THEN outcome ELSE '' END, reason,
       CASE WHEN owner IS NOT NULL AND mode <> '' AND state <> 'free' THEN mode ELSE 'exclusive' END,
       owner IS NOT NULL AND (actor LIKE '%0000000000000000' OR actor LIKE '%ffffffffffffffff'),
       coalesce((SELECT sum(h.permits) FROM {{holder}} AS h
                  WHERE s.mode = 'permits' AND h.name = s.name AND h.gate = s.owner
                    AND max(h.expires_at, h.reopens_at) > s.now), 0),
       coalesce((SELECT h.permit_limit FROM {{holder}} AS h
                  WHERE s.mode = 'permits' AND h.name = s.name AND h.gate = s.owner
                    AND max(h.expires_at, h.reopens_at) > s.now
                  ORDER BY h.acquired_at DESC, h.token DESC LIMIT 1), 0)
  FROM (SELECT r.*, CASE WHEN r.owner IS NULL THEN CASE WHEN r.reopens_at > r.now THEN 'closed' ELSE 'free' END
                         WHEN r.expires_at > r.now
                              AND (r.mode = '' OR EXISTS (SELECT 1 FROM {{holder}} AS h
                                                           WHERE h.name = r.name AND h.gate = r.owner AND h.token > 0
                                                             AND h.expires_at > r.now)) THEN 'held'
                         WHEN max(r.reopens_at, r.expires_at) > r.now THEN 'closed'
                         WHEN r.left_by_all THEN 'free' ELSE 'expired' END AS state
          FROM (SELECT l.*, {{now}} AS now, {{left_by_all}} AS left_by_all, CASE WHEN {{left_by_all}} THEN {{left_at}} END AS left_at FROM {{lock}} AS l WHERE name <> ''

-- name: inspect(name)
{{row}} AND name = :name) AS r) AS s;

-- name: list(prefix)
-- No byte of UTF-8 is FF, so every name that begins with the prefix is below prefix + FF.
{{row}} AND name >= :prefix AND name < CAST(:prefix || x'FF' AS TEXT)) AS r) AS s ORDER BY name;
