-- How a row of the lock table is read for people on PostgreSQL: in which state it is, who holds it, and who had it
-- last. schema/README.md says what the columns mean.

-- fragment: one_of_several
FROM {{holder}} AS h
                  WHERE s.owner IS NOT NULL AND s.mode <> '' AND h.name = s.name AND h.gate = s.owner AND h.token > 0
                    AND (h.expires_at > s.now OR s.expires_at <= s.now)
                  ORDER BY CASE WHEN s.expires_at > s.now THEN h.token ELSE h.expires_at END DESC, h.token DESC, h.acquired_at LIMIT 1

-- fragment: row
-- Of a row that several hold the node and label are those of the holder that came last and is there (of the entries of a
-- node the first), or of the one whose lease ended last. Where all of them have given it back (left_by_all) nobody holds it, although there may be places that
-- stay taken for an at-least time: it was released when the last of them went.
SELECT s.name, coalesce((SELECT h.node {{one_of_several}}), s.node), CASE WHEN NOT s.left_by_all THEN s.owner END,
       coalesce((SELECT h.label {{one_of_several}}), s.label), s.meta, s.token,
       CASE WHEN s.owner IS NULL THEN CASE WHEN s.reopens_at > s.now THEN 'closed' ELSE 'free' END
            WHEN s.expires_at > s.now
                 AND (s.mode = '' OR EXISTS (SELECT FROM {{holder}} AS h WHERE h.name = s.name AND h.gate = s.owner AND h.token > 0
                                                AND h.expires_at > s.now)) THEN 'held'
            WHEN greatest(s.reopens_at, s.expires_at) > s.now THEN 'closed'
            WHEN s.left_by_all THEN 'free' ELSE 'expired' END,
       s.now - s.acquired_at,
       CASE WHEN s.owner IS NOT NULL AND s.expires_at > s.now THEN s.expires_at - s.now
            WHEN s.reopens_at > s.now THEN s.reopens_at - s.now
            WHEN s.owner IS NOT NULL AND NOT s.left_by_all THEN s.expires_at - s.now ELSE 0 END,
       CASE WHEN s.owner IS NULL THEN 0 WHEN s.mode = '' THEN 1
            ELSE (SELECT count(*) FROM {{holder}} AS h
                   WHERE h.name = s.name AND h.gate = s.owner AND h.token > 0 AND h.expires_at > s.now) END::bigint,
       s.lease_us,
       (SELECT count(*) FROM {{waiter}} AS w WHERE w.name = s.name AND w.expires_at > s.now
           AND (w.ticket = 0 OR w.ticket > s.served_ticket)),
       s.kept, s.acquired_at, CASE WHEN s.left_by_all THEN coalesce(s.left_at, s.expires_at) ELSE s.expires_at END, CASE WHEN s.ended_token = s.token THEN s.outcome ELSE '' END, s.reason,
       CASE WHEN s.owner IS NOT NULL AND s.mode <> '' AND (s.expires_at > s.now OR NOT s.left_by_all) THEN s.mode ELSE 'exclusive' END,
       CASE WHEN s.owner IS NOT NULL AND
         (s.actor LIKE '%0000000000000000' OR s.actor LIKE '%ffffffffffffffff') THEN 1 ELSE 0 END::bigint,
       coalesce((SELECT sum(h.permits) FROM {{holder}} AS h
                  WHERE s.mode = 'permits' AND h.name = s.name AND h.gate = s.owner
                    AND greatest(h.expires_at, h.reopens_at) > s.now), 0)::bigint,
       coalesce((SELECT h.permit_limit FROM {{holder}} AS h
                  WHERE s.mode = 'permits' AND h.name = s.name AND h.gate = s.owner
                    AND greatest(h.expires_at, h.reopens_at) > s.now
                  ORDER BY h.acquired_at DESC, h.token DESC LIMIT 1), 0)
  FROM (SELECT l.*, {{now}} AS now, {{left_by_all}} AS left_by_all, CASE WHEN {{left_by_all}} THEN {{left_at}} END AS left_at FROM {{lock}} AS l WHERE l.name <> ''

-- name: inspect(name)
{{row}} AND l.name = :name::text OFFSET 0) AS s;

-- name: list(prefix)
{{row}} AND starts_with(l.name, :prefix::text) OFFSET 0) AS s ORDER BY s.name;
