-- How several hold one name on PostgreSQL: readers, those who have permits, the entries of a node.
-- schema/README.md says what the columns mean; fragments.sql how now is read.
--
-- Each holder has a row of its own, and the lock's row is the gate: its owner is none of theirs but the gate that their
-- rows name, its mode says how it is held, its token grows with each of them, and it ends when the last of them does. So
-- whoever asks exclusively looks at nothing else. Who may hold is decided and written with the gate locked.
-- A holder whose gate is not the owner of the lock's row holds nothing any more, however late it ends.
-- The entries of a node have its token, the gate's: to others they are one holder. Its at-least time is the gate's as well,
-- and its metadata is written there too.

-- name: add_holder(name, owner, gate, node, label, actor, lease, at_least, meta, mode, permits, limit, ticket, alone) -> packet
-- Makes the gate where there is none, locks it unless it is held in another mode, and only then (it is locked by this
-- transaction: xmax) takes out who is counted no more, and adds the holder where it may come in; then the gate says so. The
-- answer is the token; 0: busy; -1: the gate was removed meanwhile; and no row without the floor row. Once more by the same owner, or late:
-- it has the same token, and its lease ends no sooner; who has given it back (a row without a gate) is refused.
-- A permit that is over is taken out when others are counted, so that it cannot be renewed after that; others are counted
-- by nobody, and only go with the others of their gate. Whose lease was over is marked for the reaper: its gate is '-', its
-- token negated, its acquired_at the moment of that; marks older than a day, and all but the newest 100, go then. Each
-- statement has a moment of its own: what was not over at that of the mark is left. Tickets are as in acquire, but for who
-- comes in where its node is already: it waits for nobody. Where :alone is not 0 it makes a gate of its own there, unless
-- its engine (the first half of the actor) is in: the others of its node are out.
INSERT INTO {{lock}} (name, token, expires_at)
SELECT :name::text, f.token + 1, {{now}} FROM {{lock}} AS f
 WHERE f.name = '' AND NOT EXISTS (SELECT FROM {{lock}} AS l WHERE l.name = :name::text)
ON CONFLICT (name) DO NOTHING;
SELECT FROM {{lock}} AS l
 WHERE l.name = :name::text AND (l.owner IS NULL OR l.expires_at <= {{now}} 
        OR (l.mode = :mode::text AND (:mode::text <> 'node' OR l.node = :node::text))) FOR UPDATE;
UPDATE {{holder}} AS h SET gate = '-', token = -h.token, permits = 0, acquired_at = (SELECT {{now}}) FROM {{lock}} AS l
 WHERE l.name = :name::text AND h.name = l.name AND (:mode::text = 'permits' OR l.owner IS NULL OR greatest(l.expires_at, l.reopens_at) <= {{now}})
   AND l.xmax::text = (txid_current_if_assigned() & 4294967295)::text AND h.token > 0
   AND CASE WHEN l.owner IS NULL OR l.expires_at <= {{now}} OR h.gate <> l.owner THEN h.expires_at
            ELSE greatest(h.expires_at, h.reopens_at) END <= {{now}};
DELETE FROM {{holder}} AS h USING {{lock}} AS l
 WHERE l.name = :name::text AND h.name = l.name AND (:mode::text = 'permits' OR l.owner IS NULL OR greatest(l.expires_at, l.reopens_at) <= {{now}})
   AND l.xmax::text = (txid_current_if_assigned() & 4294967295)::text
   AND CASE WHEN h.gate = '' THEN h.expires_at <= {{now}}
            WHEN h.token < 0
              THEN h.acquired_at <= {{now}} - 86400000000
                   OR h.acquired_at < (SELECT m.acquired_at FROM {{holder}} AS m WHERE m.name = :name::text AND m.token < 0
                                        ORDER BY m.acquired_at DESC OFFSET 99 LIMIT 1)
            WHEN l.owner IS NULL OR l.expires_at <= {{now}} OR h.gate <> l.owner THEN h.token = 0 OR h.expires_at > {{now}}
            ELSE h.token = 0 AND greatest(h.expires_at, h.reopens_at) <= {{now}} END;
UPDATE {{holder}} AS h
   SET expires_at = greatest(h.expires_at, {{now}} + :lease::bigint), lease_us = greatest(h.lease_us, :lease::bigint)
  FROM {{lock}} AS l
 WHERE l.name = :name::text AND h.name = l.name AND h.owner = :owner::text AND h.gate = l.owner AND h.token > 0;
INSERT INTO {{holder}} AS h (name, owner, gate, token, mode, permits, permit_limit, node, label, actor, meta, acquired_at,
                             expires_at, reopens_at, lease_us)
SELECT l.name, :owner::text, CASE WHEN l.joins THEN l.owner ELSE :gate::text END,
       CASE WHEN l.joins AND :mode::text = 'node' THEN l.token ELSE greatest(l.token, f.token) + 1 END,
       :mode::text, CASE WHEN :mode::text = 'permits' THEN :permits::bigint ELSE 0 END, :limit::bigint, :node::text, :label::text,
       :actor::text, :meta::text, l.now, l.now + :lease::bigint,
       CASE WHEN :at_least::bigint = 0 OR :mode::text = 'node' THEN 0 ELSE l.now + :at_least::bigint END, :lease::bigint
  FROM (SELECT g.*, g.live AND (:alone::bigint = 0
                                OR EXISTS (SELECT FROM {{holder}} AS x
                                            WHERE x.name = g.name AND x.gate = g.owner AND x.token > 0 AND x.expires_at > g.now
                                              AND left(x.actor, 16) = left(:actor::text, 16))) AS joins
          FROM (SELECT b.*, b.xmax, n.now, b.owner IS NOT NULL AND b.expires_at > n.now AS live
                  FROM (SELECT {{now}} AS now OFFSET 0) AS n, {{lock}} AS b WHERE b.name = :name::text OFFSET 0) AS g) AS l,
       {{lock}} AS f
 WHERE f.name = '' AND l.xmax::text = (txid_current_if_assigned() & 4294967295)::text
   AND CASE WHEN l.live THEN l.mode = :mode::text AND (:mode::text <> 'node' OR l.node = :node::text)
            ELSE l.reopens_at <= l.now END
   AND NOT EXISTS (SELECT FROM {{holder}} AS x
                    WHERE x.name = l.name AND x.owner = :owner::text
                      AND (x.gate = '' OR (l.live AND (x.gate = l.owner OR x.token > 0))))
   AND (:mode::text <> 'permits'
        OR :permits::bigint <= :limit::bigint - (SELECT coalesce(sum(x.permits), 0) FROM {{holder}} AS x
                                                  WHERE l.live AND x.name = l.name AND x.gate = l.owner))
   AND (l.next_ticket <= l.served_ticket OR (l.live AND :mode::text = 'node')
        OR NOT EXISTS (SELECT FROM {{waiter}} AS w
                        WHERE w.name = l.name AND w.ticket > l.served_ticket AND w.expires_at > l.now
                          AND (:ticket::bigint <= l.served_ticket OR w.ticket < :ticket::bigint)))
ON CONFLICT (name, owner) DO UPDATE
   SET gate = excluded.gate, token = excluded.token, mode = excluded.mode, permits = excluded.permits, permit_limit = excluded.permit_limit,
       node = excluded.node, label = excluded.label, actor = excluded.actor, meta = excluded.meta,
       acquired_at = excluded.acquired_at, expires_at = excluded.expires_at, reopens_at = excluded.reopens_at,
       lease_us = excluded.lease_us
 WHERE h.gate <> '';
UPDATE {{lock}} AS l
   SET owner = h.gate, mode = :mode::text, token = greatest(l.token, h.token), actor = '',
       meta = CASE WHEN l.owner = h.gate THEN l.meta WHEN :mode::text = 'node' THEN h.meta ELSE '' END,
       node = CASE WHEN h.token > l.token THEN h.node ELSE l.node END,
       label = CASE WHEN h.token > l.token THEN h.label ELSE l.label END,
       acquired_at = CASE WHEN l.owner = h.gate THEN l.acquired_at ELSE h.acquired_at END,
       lease_us = CASE WHEN l.owner = h.gate THEN greatest(l.lease_us, h.lease_us) ELSE h.lease_us END,
       expires_at = CASE WHEN l.owner = h.gate THEN greatest(l.expires_at, h.expires_at, h.reopens_at)
                         ELSE greatest(h.expires_at, h.reopens_at) END,
       reopens_at = CASE WHEN :mode::text = 'node' AND :at_least::bigint > 0
                           THEN greatest(l.reopens_at, h.acquired_at + :at_least::bigint) ELSE l.reopens_at END,
       next_ticket = greatest(l.next_ticket, :ticket::bigint),
       served_ticket = CASE WHEN :mode::text = 'node' AND l.owner IS NOT NULL AND l.expires_at > h.acquired_at THEN l.served_ticket
                            ELSE greatest(l.served_ticket, :ticket::bigint) END
  FROM {{holder}} AS h
 WHERE l.name = :name::text AND h.name = l.name AND h.owner = :owner::text
   AND (h.gate = l.owner OR (h.gate = :gate::text AND h.token > l.token));
SELECT CASE WHEN l.name IS NULL THEN -1 WHEN h.gate = l.owner AND h.token > 0 THEN h.token ELSE 0 END,
       CASE WHEN h.gate = l.owner AND :ticket::bigint > 0 AND l.wanted_until > {{now}}
            THEN {{notify}} ELSE 0 END
  FROM {{lock}} AS f LEFT JOIN {{lock}} AS l ON l.name = :name::text
       LEFT JOIN {{holder}} AS h ON h.name = l.name AND h.owner = :owner::text
 WHERE f.name = '';

-- name: drop_holder(name, owner, token, refused) -> packet
-- The gate ends with the longest of those who are left, and is free when nobody is. Within its at-least time the holder's
-- place stays taken, by nobody. Without a token (0) whatever the owner has is dropped, or all but what has this one, negative;
-- and where :refused is not 0 it is not granted the name any more for so long. Who waits for a lock on a gate that is being
-- made waits for that, too. Those whose lease is over keep no gate closed. The answer: whether it was there, whether
-- somebody waits, and whether others of its node hold the name.
INSERT INTO {{lock}} (name, token, expires_at)
SELECT :name::text, f.token + 1, {{now}} FROM {{lock}} AS f WHERE f.name = '' AND :refused::bigint > 0
ON CONFLICT (name) DO NOTHING;
SELECT FROM {{lock}} AS l WHERE l.name = :name::text FOR UPDATE;
WITH n AS MATERIALIZED (SELECT {{now}} AS now),
mine AS MATERIALIZED (
  SELECT h.*, n.now, h.reopens_at > n.now AS stays FROM n, {{holder}} AS h
   WHERE h.name = :name::text AND h.owner = :owner::text AND h.gate <> ''
     AND CASE WHEN :token::bigint <= 0 THEN h.token > 0 AND h.token <> (0 - :token::bigint)
              ELSE abs(h.token) = :token::bigint END),
gate AS (
  UPDATE {{lock}} AS l
     SET owner = CASE WHEN r.until IS NULL THEN NULL ELSE l.owner END,
         mode = CASE WHEN r.until IS NULL THEN '' ELSE l.mode END,
         meta = CASE WHEN r.until IS NULL THEN '' ELSE l.meta END,
         node = CASE WHEN r.others THEN l.node ELSE m.node END,
         label = CASE WHEN r.others THEN l.label ELSE m.label END,
         expires_at = coalesce(r.until, m.now)
    FROM mine AS m, LATERAL (SELECT max(CASE WHEN h.owner = m.owner THEN m.reopens_at
                                             ELSE greatest(h.expires_at, h.reopens_at) END) AS until,
                                    bool_or(h.owner <> m.owner AND h.token > 0) AS others
                               FROM {{holder}} AS h
                              WHERE h.name = m.name AND h.gate = m.gate
                                AND CASE WHEN h.owner = m.owner THEN m.stays
                                         ELSE greatest(h.expires_at, h.reopens_at) > m.now END) AS r
   WHERE l.name = m.name AND l.owner = m.gate
  RETURNING l.name, l.mode, l.served_ticket, l.wanted_until > m.now AND (l.owner IS NULL OR l.mode = 'permits') AS wanted),
closed AS (
  UPDATE {{holder}} AS h SET token = 0, expires_at = h.reopens_at, lease_us = greatest(0, m.now - h.acquired_at) FROM mine AS m
   WHERE h.name = m.name AND h.owner = m.owner AND m.stays),
gone AS (
  DELETE FROM {{holder}} AS h USING mine AS m
   WHERE h.name = m.name AND h.owner = m.owner AND NOT m.stays AND :refused::bigint = 0),
barred AS (
  INSERT INTO {{holder}} AS h (name, owner, gate, token, expires_at)
  SELECT :name::text, :owner::text, '', 0, n.now + :refused::bigint FROM n
   WHERE :refused::bigint > 0 AND NOT EXISTS (SELECT FROM mine AS m WHERE m.stays)
     AND NOT EXISTS (SELECT FROM {{holder}} AS k
                      WHERE k.name = :name::text AND k.owner = :owner::text
                        AND (k.token = (0 - :token::bigint) AND k.token > 0 OR k.gate <> '' AND k.token = 0 AND k.reopens_at > n.now))
  ON CONFLICT (name, owner) DO UPDATE SET gate = '', token = 0, permits = 0, expires_at = excluded.expires_at, reopens_at = 0)
SELECT (SELECT count(*) FROM mine AS m JOIN gate AS g ON g.name = m.name),
       coalesce((SELECT {{notify}} FROM gate AS l WHERE l.wanted), 0),
       coalesce((SELECT g.mode = 'node' FROM gate AS g),
                (SELECT l.mode = 'node' AND l.token = :token::bigint FROM {{lock}} AS l WHERE l.name = :name::text), false)::int::bigint;

-- name: renew_holders(name, owner, token, lease)
-- As renew, an element a holder. The gate is locked before the holders are; one that is locked elsewhere is skipped.
-- What is told of those who wait is the same for all holders of a name, and is read once: who holds it waits no more.
WITH wanted AS MATERIALIZED (
  SELECT w.name, w.owner, w.token, w.lease
    FROM unnest(:name::text[], :owner::text[], :token::bigint[], :lease::bigint[]) AS w (name, owner, token, lease)),
gates AS MATERIALIZED (
  SELECT l.name, l.owner, l.served_ticket FROM {{lock}} AS l WHERE l.name IN (SELECT w.name FROM wanted AS w)
   ORDER BY l.name FOR UPDATE OF l SKIP LOCKED),
renewed AS (
  UPDATE {{holder}} AS h SET expires_at = greatest(h.expires_at, {{now}} + w.lease)
    FROM wanted AS w JOIN gates AS g ON g.name = w.name
   WHERE h.name = w.name AND h.owner = w.owner AND h.token = w.token AND h.gate = g.owner
  RETURNING h.name, h.owner, greatest(h.expires_at, h.reopens_at) AS until),
raised AS (
  UPDATE {{lock}} AS l SET expires_at = greatest(l.expires_at, r.until)
    FROM (SELECT name, max(until) AS until FROM renewed GROUP BY name) AS r WHERE l.name = r.name),
waiting AS MATERIALIZED (
  SELECT g.name,
         (SELECT greatest(0, max({{now}} - w.since)) * 4
                 + max(CASE w.wants WHEN 'shared' THEN 1 WHEN 'permits' THEN 2 ELSE 3 END)
            FROM {{waiter}} AS w
           WHERE w.name = g.name AND (w.ticket = 0 OR w.ticket > g.served_ticket)
             AND w.expires_at > {{now}}
             AND (SELECT m.owner FROM {{holder}} AS m
                   WHERE m.name = w.name AND m.owner = w.owner AND m.gate = g.owner) IS NULL) AS said
    FROM gates AS g)
SELECT r.owner, 1 + coalesce(w.said, 0) FROM renewed AS r JOIN waiting AS w ON w.name = r.name
UNION ALL
SELECT h.owner, 0::bigint
  FROM {{holder}} AS h JOIN wanted AS w ON h.name = w.name AND h.owner = w.owner AND h.token = w.token
       JOIN {{lock}} AS l ON l.name = h.name AND l.owner = h.gate
 WHERE h.name NOT IN (SELECT g.name FROM gates AS g);

-- name: extend_holder(name, owner, token, lease, at_least)
WITH gate AS MATERIALIZED (SELECT l.name, l.owner, l.mode, l.served_ticket FROM {{lock}} AS l WHERE l.name = :name::text FOR UPDATE),
extended AS (
  UPDATE {{holder}} AS h
     SET lease_us = :lease::bigint, expires_at = greatest(h.expires_at, {{now}} + :lease::bigint),
         reopens_at = CASE WHEN :at_least::bigint = 0 OR g.mode = 'node' THEN h.reopens_at
                           ELSE greatest(h.reopens_at, {{now}} + :at_least::bigint) END
    FROM gate AS g
   WHERE h.name = g.name AND h.owner = :owner::text AND h.token = :token::bigint AND h.token > 0 AND h.gate = g.owner
  RETURNING h.name, greatest(h.expires_at, h.reopens_at) AS until),
raised AS (
  UPDATE {{lock}} AS l
     SET expires_at = greatest(l.expires_at, e.until),
         reopens_at = CASE WHEN :at_least::bigint = 0 OR l.mode <> 'node' THEN l.reopens_at
                           ELSE greatest(l.reopens_at, {{now}} + :at_least::bigint) END
    FROM extended AS e WHERE l.name = e.name)
SELECT coalesce((SELECT greatest(0, max({{now}} - w.since)) * 4
                        + max(CASE w.wants WHEN 'shared' THEN 1 WHEN 'permits' THEN 2 ELSE 3 END)
                   FROM {{waiter}} AS w
                  WHERE w.name = g.name AND (w.ticket = 0 OR w.ticket > g.served_ticket) AND NOT EXISTS (
                        SELECT FROM {{holder}} AS m WHERE m.name = w.name AND m.owner = w.owner AND m.gate = g.owner)
                    AND w.expires_at > {{now}}), 0)
  FROM extended AS e JOIN gate AS g ON g.name = e.name;

-- name: update_holder_metadata(name, owner, token, meta, keep)
WITH gate AS MATERIALIZED (SELECT l.name, l.owner FROM {{lock}} AS l WHERE l.name = :name::text FOR UPDATE),
kept AS (
  UPDATE {{lock}} AS l
     SET kept = CASE WHEN :keep::bigint = 0 THEN l.kept ELSE :meta::text END,
         meta = CASE WHEN l.mode = 'node' THEN :meta::text ELSE l.meta END
    FROM {{holder}} AS h
   WHERE (:keep::bigint <> 0 OR l.mode = 'node') AND l.name = :name::text AND h.name = l.name AND h.owner = :owner::text
     AND h.token = :token::bigint AND h.token > 0 AND h.gate = l.owner)
UPDATE {{holder}} AS h SET meta = :meta::text FROM gate AS g
 WHERE h.name = g.name AND h.owner = :owner::text AND h.token = :token::bigint AND h.token > 0 AND h.gate = g.owner;

-- name: adopt_holder(name, owner, token, new_owner, node, label, actor, lease, meta)
-- As adopt. The answer is how many permits it has: 0 for a reader.
WITH gate AS MATERIALIZED (SELECT l.name, l.owner FROM {{lock}} AS l WHERE l.name = :name::text FOR UPDATE),
adopted AS (
  UPDATE {{holder}} AS h
     SET owner = :new_owner::text, node = :node::text, label = :label::text, actor = :actor::text, lease_us = :lease::bigint,
         meta = CASE WHEN :meta::text = '' THEN h.meta ELSE :meta::text END,
         expires_at = greatest(h.expires_at, {{now}} + :lease::bigint)
    FROM gate AS g
   WHERE h.name = g.name AND h.token = :token::bigint AND h.token > 0 AND h.owner IN (:owner::text, :new_owner::text)
     AND h.gate = g.owner
  RETURNING h.name, h.permits, greatest(h.expires_at, h.reopens_at) AS until),
raised AS (
  UPDATE {{lock}} AS l SET expires_at = greatest(l.expires_at, a.until) FROM adopted AS a WHERE l.name = a.name)
SELECT permits FROM adopted;

-- name: rename_holder(name, owner, token, actor)
UPDATE {{holder}} SET actor = :actor::text WHERE name = :name::text AND owner = :owner::text AND token = :token::bigint;

-- name: look_to_join(name, owner, mode, node, permits, limit, ticket)
-- As look, for who would come in beside others. The owner is answered where it is in already.
SELECT (s.opens_at <= s.now AND s.queued_until <= s.now)::int::bigint,
       greatest(0, s.opens_at - s.now, s.queued_until - s.now), (s.queued_until > s.now)::int::bigint,
       CASE WHEN s.live AND s.mode <> :mode::text THEN s.actor ELSE '' END, greatest(0, s.wanted_until - s.now),
       CASE WHEN s.inside THEN :owner::text ELSE '' END, s.token,
       (s.live AND s.mode <> '')::int::bigint
  FROM (SELECT g.*,
               CASE WHEN NOT g.live THEN g.reopens_at
                    WHEN NOT g.joins THEN greatest(g.reopens_at, g.expires_at)
                    WHEN :mode::text = 'permits' AND :permits::bigint > :limit::bigint - coalesce(h.permits, 0)
                      THEN coalesce(h.first_end, g.expires_at)
                    ELSE 0 END AS opens_at, coalesce(h.inside, false) AS inside,
               CASE WHEN g.next_ticket <= g.served_ticket OR (g.joins AND :mode::text = 'node') THEN 0
                    ELSE coalesce((SELECT max(w.expires_at) FROM {{waiter}} AS w
                                    WHERE w.name = :name::text AND w.ticket > g.served_ticket AND w.expires_at > g.now
                                      AND (:ticket::bigint <= g.served_ticket OR w.ticket < :ticket::bigint)), 0)
               END AS queued_until
          FROM (SELECT l.*, n.now, l.owner IS NOT NULL AND l.expires_at > n.now AS live,
                       l.expires_at > n.now AND l.mode = :mode::text AND (:mode::text <> 'node' OR l.node = :node::text) AS joins
                  FROM (SELECT {{now}} AS now OFFSET 0) AS n, {{lock}} AS l WHERE l.name = :name::text OFFSET 0) AS g
               LEFT JOIN LATERAL (
                 SELECT sum(x.permits) FILTER (WHERE greatest(x.expires_at, x.reopens_at) > g.now) AS permits,
                        min(greatest(x.expires_at, x.reopens_at)) FILTER (WHERE x.permits > 0 AND greatest(x.expires_at, x.reopens_at) > g.now) AS first_end,
                        bool_or(x.owner = :owner::text AND x.token > 0) AS inside
                   FROM {{holder}} AS x
                  WHERE g.live AND x.name = g.name AND x.gate = g.owner
                    AND (:mode::text = 'permits' OR x.owner = :owner::text)) AS h ON true OFFSET 0) AS s;

-- name: fence_holder(name, owner, token, lease, installation)
-- As fence: proves the gate by writing it, and the holder's row.
WITH gate AS (
  UPDATE {{lock}} AS l SET expires_at = greatest(l.expires_at + 1, {{now}} + :lease::bigint)
    FROM {{holder}} AS h
   WHERE l.name = :name::text AND h.name = l.name AND h.owner = :owner::text AND h.token = :token::bigint AND h.gate = l.owner
     AND EXISTS (SELECT FROM {{lock}} AS i WHERE i.name = '' AND i.meta || '@' || current_database() = :installation::text)
  RETURNING l.name, l.owner),
f AS (
  UPDATE {{holder}} AS h SET expires_at = greatest(h.expires_at + 1, {{now}} + :lease::bigint)
    FROM gate AS g
   WHERE h.name = g.name AND h.owner = :owner::text AND h.token = :token::bigint AND h.gate = g.owner
  RETURNING 1)
SELECT CASE WHEN count(*) = 1 THEN 1
            WHEN EXISTS (SELECT FROM {{lock}} AS i
                          WHERE i.name = '' AND i.meta || '@' || current_database() = :installation::text)
              THEN ('dlock' || ': lease lost' || left(count(*)::text, 0))::int
            ELSE ('dlock' || ': another database, ' || current_database() || coalesce(
                    (SELECT ' (' || i.meta || ')' FROM {{lock}} AS i WHERE i.name = ''), ', without a floor row')
                  || left(count(*)::text, 0))::int END FROM f;

-- name: holder_lease(name, owner, token)
-- The length of a holder's lease; the gate's is that of the longest it has had.
SELECT h.lease_us FROM {{holder}} AS h JOIN {{lock}} AS l ON l.name = h.name AND l.owner = h.gate
 WHERE h.name = :name::text AND h.owner = :owner::text AND h.token = :token::bigint;

-- name: downgrade(name, owner, token, new_owner, gate, lease)
-- From the one holder to the first of those who share it, under the next token. Once more after an answer that was lost: it
-- is in already. Rows of earlier gates go or stay as where a gate is made by who comes in. The answer is its token, and
-- whether somebody waits.
WITH l AS (
  UPDATE {{lock}} AS l SET owner = :gate::text, mode = 'shared', token = :token::bigint + 1, actor = '', meta = '',
         acquired_at = {{now}}, expires_at = greatest(l.expires_at, {{now}} + :lease::bigint, l.reopens_at)
   WHERE l.name = :name::text AND l.owner = :owner::text AND l.token = :token::bigint AND l.mode = ''
  RETURNING l.*, (SELECT b.actor FROM {{lock}} AS b WHERE b.name = :name::text) AS old_actor,
            (SELECT b.meta FROM {{lock}} AS b WHERE b.name = :name::text) AS old_meta),
dead AS (UPDATE {{holder}} AS h SET gate = '-', token = -h.token, permits = 0, acquired_at = (SELECT {{now}}) FROM l
          WHERE h.name = l.name AND h.gate <> l.owner AND h.token > 0 AND h.expires_at <= {{now}}),
old AS (DELETE FROM {{holder}} AS h USING l
         WHERE h.name = l.name AND h.gate <> '' AND h.gate <> l.owner
           AND (h.token = 0 OR h.token > 0 AND h.expires_at > {{now}})),
first AS (
  INSERT INTO {{holder}} (name, owner, gate, token, node, label, actor, meta, acquired_at, expires_at, reopens_at, lease_us)
  SELECT l.name, :new_owner::text, l.owner, l.token, l.node, l.label, l.old_actor, l.old_meta, {{now}}, l.expires_at, l.reopens_at,
         l.lease_us
    FROM l
  RETURNING token)
SELECT f.token, CASE WHEN l.wanted_until > {{now}} THEN {{notify}} ELSE 0 END FROM first AS f, l
UNION ALL
SELECT h.token, 0 FROM {{holder}} AS h JOIN {{lock}} AS g ON g.name = h.name AND g.owner = h.gate
 WHERE h.name = :name::text AND h.owner = :new_owner::text AND h.token = :token::bigint + 1;

-- name: upgrade(name, owner, token, new_owner, lease) -> packet
-- From the only one who shares it to its one holder, under the next token; others whose lease
-- lasts keep it from that. Once more after an answer that was lost: it is the holder already. The answer is its token.
SELECT FROM {{lock}} AS l WHERE l.name = :name::text FOR UPDATE;
UPDATE {{lock}} AS l SET owner = :new_owner::text, mode = '', token = l.token + 1, node = h.node, label = h.label,
       actor = h.actor, meta = h.meta, acquired_at = {{now}}, lease_us = h.lease_us, reopens_at = greatest(l.reopens_at, h.reopens_at),
       expires_at = greatest(h.expires_at, {{now}} + :lease::bigint)
  FROM {{holder}} AS h
 WHERE l.name = :name::text AND h.name = l.name AND h.owner = :owner::text AND h.token = :token::bigint AND h.gate = l.owner
   AND l.mode = 'shared'
   AND NOT EXISTS (SELECT FROM {{holder}} AS x
                    WHERE x.name = l.name AND x.gate = l.owner AND x.owner <> :owner::text
                      AND greatest(x.expires_at, x.reopens_at) > {{now}});
DELETE FROM {{holder}} AS h USING {{lock}} AS l
 WHERE h.name = :name::text AND h.owner = :owner::text AND l.name = h.name AND l.owner = :new_owner::text;
SELECT l.token FROM {{lock}} AS l WHERE l.name = :name::text AND l.owner = :new_owner::text;

-- name: dead_holders(prefix, after, after_owner, limit)
-- Those whose lease was over for a minute, or is over and was of a gate that is gone, so that it cannot be renewed any more;
-- and what was left by those who gave it back. Who has a token never did.
SELECT h.name, h.owner, h.node, h.label, abs(h.token), n.now - h.expires_at,
       (h.token <> 0)::int::bigint, h.expires_at
  FROM (SELECT {{now}} AS now OFFSET 0) AS n, {{holder}} AS h
 WHERE greatest(h.expires_at, h.reopens_at) <= n.now
   AND (greatest(h.expires_at, h.reopens_at) <= n.now - 60000000 OR h.gate = ''
        OR NOT EXISTS (SELECT 1 FROM {{lock}} AS l WHERE l.name = h.name AND l.owner = h.gate))
   AND h.name >= :prefix::text AND starts_with(h.name, :prefix::text)
   AND (h.name, h.owner) > (:after::text, :after_owner::text)
 ORDER BY h.name, h.owner LIMIT :limit::bigint;

-- name: dead_holders_of(name, after_owner, limit)
-- Of those who shared one name: who never let go of it, and holds nothing any more since its gate is gone.
SELECT h.name, h.owner, h.node, h.label, abs(h.token), n.now - h.expires_at, 1::bigint, h.expires_at
  FROM (SELECT {{now}} AS now OFFSET 0) AS n, {{holder}} AS h
 WHERE h.name = :name::text AND h.owner > :after_owner::text AND h.token <> 0
   AND greatest(h.expires_at, h.reopens_at) <= n.now
   AND NOT EXISTS (SELECT 1 FROM {{lock}} AS l WHERE l.name = h.name AND l.owner = h.gate)
 ORDER BY h.owner LIMIT :limit::bigint;

-- name: forget_holder(name, owner, token, expires_at)
-- As it was seen: renewed since, it stays.
DELETE FROM {{holder}}
 WHERE name = :name::text AND owner = :owner::text AND abs(token) = :token::bigint AND expires_at = :expires_at::bigint
   AND greatest(expires_at, reopens_at) <= {{now}};

-- name: gate(name, token)
-- Under which owner a name is held by several, if it is, and with this token; and the moment of that.
SELECT l.owner, {{now}} FROM {{lock}} AS l
 WHERE l.name = :name::text AND l.token = :token::bigint AND l.owner IS NOT NULL AND l.mode <> '';

-- name: drop_gate(name, gate, seen_at)
-- Those who lived when their gate was seen, which was ended by force then: nobody tells of them as dead.
DELETE FROM {{holder}} WHERE name = :name::text AND gate = :gate::text AND expires_at > :seen_at::bigint;

-- name: has_holder(name, owner, token)
SELECT 1::bigint FROM {{holder}} WHERE name = :name::text AND owner = :owner::text AND abs(token) = :token::bigint;

-- name: forget_holders(name, owner)
-- Every argument is an array, an element a holder.
DELETE FROM {{holder}} AS h USING unnest(:name::text[], :owner::text[]) AS x (name, owner)
 WHERE h.name = x.name AND h.owner = x.owner
   AND h.token = 0 AND greatest(h.expires_at, h.reopens_at) <= {{now}};
