-- How several hold one name on SQLite: readers, those who have permits, the entries of a node.
-- schema/README.md says what the columns mean; fragments.sql how now is read.
--
-- Each holder has a row of its own, and the lock's row is the gate: its owner is none of theirs but the gate that their
-- rows name, its mode says how it is held, its token grows with each of them, and it ends when the last of them does. So
-- whoever asks exclusively looks at nothing else. The writer of a file is alone: nobody comes between.
-- A holder whose gate is not the owner of the lock's row holds nothing any more, however late it ends.
-- The entries of a node have its token, the gate's: to others they are one holder. Its at-least time is the gate's as well,
-- and its metadata is written there too.

-- name: add_holder(name, owner, gate, node, label, actor, lease, at_least, meta, mode, permits, limit, ticket, alone) -> packet
-- Makes the gate where there is none, takes out who is counted no more, and adds the holder where it may come in; then the
-- gate says so. The answer is the token; 0: busy; and no row without the floor row. Once more by the same owner, or late:
-- it has the same token, and its lease ends no sooner; who has given it back (a row without a gate) is refused.
-- A permit that is over is taken out by who asks for permits, so that it cannot be renewed after that; others are counted
-- by nobody, and only go with the others of their gate. Whose lease was over is marked for the reaper: its gate is '-', its
-- token negated, its acquired_at the moment of that; marks older than a day, and all but the newest 100, go then. Each
-- statement has a moment of its own: what was not over at that of the mark is left. Tickets are as in acquire, but for who
-- comes in where its node is already: it waits for nobody. Where :alone is not 0 it makes a gate of its own there, unless
-- its engine (the first half of the actor) is in: the others of its node are out.
INSERT INTO {{lock}} (name, token, expires_at)
SELECT :name, f.token + 1, {{now}} FROM {{lock}} AS f
 WHERE f.name = '' AND NOT EXISTS (SELECT 1 FROM {{lock}} AS l WHERE l.name = :name);
UPDATE {{holder}} AS h SET gate = '-', token = -h.token, permits = 0, acquired_at = {{now}} FROM {{lock}} AS l
 WHERE l.name = :name AND h.name = l.name AND h.token > 0
   AND (:mode = 'permits' AND l.mode = :mode OR l.owner IS NULL OR max(l.expires_at, l.reopens_at) <= {{now}})
   AND CASE WHEN l.owner IS NULL OR l.expires_at <= {{now}} OR h.gate <> l.owner THEN h.expires_at
            ELSE max(h.expires_at, h.reopens_at) END <= {{now}};
DELETE FROM {{holder}}
 WHERE name = (SELECT l.name FROM {{lock}} AS l
                WHERE l.name = :name AND (:mode = 'permits' AND l.mode = :mode OR l.owner IS NULL
                   OR max(l.expires_at, l.reopens_at) <= {{now}}))
   AND EXISTS (SELECT 1 FROM {{lock}} AS l
                WHERE l.name = :name
                  AND CASE WHEN {{holder}}.gate = '' THEN {{holder}}.expires_at <= {{now}}
                           WHEN {{holder}}.token < 0
                             THEN {{holder}}.acquired_at <= {{now}} - 86400000000
                                  OR {{holder}}.acquired_at < (SELECT m.acquired_at FROM {{holder}} AS m
                                                                WHERE m.name = :name AND m.token < 0
                                                                ORDER BY m.acquired_at DESC LIMIT 1 OFFSET 99)
                           WHEN l.owner IS NULL OR l.expires_at <= {{now}} OR {{holder}}.gate <> l.owner
                             THEN {{holder}}.token = 0 OR {{holder}}.expires_at > {{now}}
                           ELSE {{holder}}.token = 0 AND max({{holder}}.expires_at, {{holder}}.reopens_at) <= {{now}} END);
UPDATE {{holder}} SET expires_at = max(expires_at, {{now}} + :lease), lease_us = max(lease_us, :lease)
 WHERE name = :name AND owner = :owner AND token > 0 AND gate = (SELECT l.owner FROM {{lock}} AS l WHERE l.name = :name);
INSERT INTO {{holder}} (name, owner, gate, token, mode, permits, permit_limit, node, label, actor, meta, acquired_at, expires_at,
                        reopens_at, lease_us)
SELECT l.name, :owner, CASE WHEN l.joins THEN l.owner ELSE :gate END,
       CASE WHEN l.joins AND :mode = 'node' THEN l.token ELSE max(l.token, f.token) + 1 END,
       :mode, CASE WHEN :mode = 'permits' THEN :permits ELSE 0 END, :limit, :node, :label, :actor, :meta, l.now, l.now + :lease,
       CASE WHEN :at_least = 0 OR :mode = 'node' THEN 0 ELSE l.now + :at_least END, :lease
  FROM (SELECT g.*, g.live AND (:alone = 0 OR EXISTS (SELECT 1 FROM {{holder}} AS x
                                                       WHERE x.name = g.name AND x.gate = g.owner AND x.token > 0 AND x.expires_at > g.now
                                                         AND substr(x.actor, 1, 16) = substr(:actor, 1, 16))) AS joins
          FROM (SELECT b.*, t.now, b.owner IS NOT NULL AND b.expires_at > t.now AS live
                  FROM (SELECT {{now}} AS now) AS t, {{lock}} AS b WHERE b.name = :name) AS g) AS l, {{lock}} AS f
 WHERE f.name = ''
   AND CASE WHEN l.live THEN l.mode = :mode AND (:mode <> 'node' OR l.node = :node) ELSE l.reopens_at <= l.now END
   AND NOT EXISTS (SELECT 1 FROM {{holder}} AS x
                    WHERE x.name = l.name AND x.owner = :owner
                      AND (x.gate = '' OR (l.live AND (x.gate = l.owner OR x.token > 0))))
   AND (:mode <> 'permits'
        OR :permits <= :limit - (SELECT coalesce(sum(x.permits), 0) FROM {{holder}} AS x
                                  WHERE l.live AND x.name = l.name AND x.gate = l.owner))
   AND (l.next_ticket <= l.served_ticket OR (l.live AND :mode = 'node')
        OR NOT EXISTS (SELECT 1 FROM {{waiter}} AS w
                        WHERE w.name = l.name AND w.ticket > l.served_ticket AND w.expires_at > l.now
                          AND (:ticket <= l.served_ticket OR w.ticket < :ticket)))
ON CONFLICT (name, owner) DO UPDATE
   SET gate = excluded.gate, token = excluded.token, mode = excluded.mode, permits = excluded.permits, permit_limit = excluded.permit_limit,
       node = excluded.node, label = excluded.label, actor = excluded.actor, meta = excluded.meta,
       acquired_at = excluded.acquired_at, expires_at = excluded.expires_at, reopens_at = excluded.reopens_at,
       lease_us = excluded.lease_us;
UPDATE {{lock}} AS l
   SET owner = h.gate, mode = :mode, token = max(l.token, h.token), actor = '',
       meta = CASE WHEN l.owner IS h.gate THEN l.meta WHEN :mode = 'node' THEN h.meta ELSE '' END,
       node = CASE WHEN h.token > l.token THEN h.node ELSE l.node END,
       label = CASE WHEN h.token > l.token THEN h.label ELSE l.label END,
       acquired_at = CASE WHEN l.owner IS h.gate THEN l.acquired_at ELSE h.acquired_at END,
       lease_us = CASE WHEN l.owner IS h.gate THEN max(l.lease_us, h.lease_us) ELSE h.lease_us END,
       expires_at = CASE WHEN l.owner IS h.gate THEN max(l.expires_at, h.expires_at, h.reopens_at)
                         ELSE max(h.expires_at, h.reopens_at) END,
       reopens_at = CASE WHEN :mode = 'node' AND :at_least > 0 THEN max(l.reopens_at, h.acquired_at + :at_least)
                         ELSE l.reopens_at END,
       next_ticket = max(l.next_ticket, :ticket),
       served_ticket = CASE WHEN :mode = 'node' AND l.owner IS NOT NULL AND l.expires_at > h.acquired_at THEN l.served_ticket
                            ELSE max(l.served_ticket, :ticket) END
  FROM {{holder}} AS h
 WHERE l.name = :name AND h.name = l.name AND h.owner = :owner
   AND (h.gate = l.owner OR (h.gate = :gate AND h.token > l.token));
SELECT CASE WHEN h.gate = l.owner AND h.token > 0 THEN h.token ELSE 0 END,
       h.gate IS NOT NULL AND h.gate = l.owner AND :ticket > 0 AND l.wanted_until > {{now}}
  FROM {{lock}} AS f LEFT JOIN {{lock}} AS l ON l.name = :name
       LEFT JOIN {{holder}} AS h ON h.name = l.name AND h.owner = :owner
 WHERE f.name = '';

-- name: drop_holder(name, owner, token, refused) -> packet
-- The gate ends with the longest of those who are left, and is free when nobody is. Within its at-least time the holder's
-- place stays taken, by nobody. Without a token (0) whatever the owner has is dropped, or all but what has this one, negative;
-- and where :refused is not 0 it is not granted the name any more for so long. Those whose lease is over keep no gate closed.
-- The answer: whether it was there, whether somebody waits, and whether others of its node hold the name.
DELETE FROM {{holder}}
 WHERE name = :name AND owner = :owner AND gate <> '' AND gate IS NOT (SELECT l.owner FROM {{lock}} AS l WHERE l.name = :name);
UPDATE {{lock}} AS l
   SET owner = CASE WHEN r.until IS NULL THEN NULL ELSE l.owner END,
       mode = CASE WHEN r.until IS NULL THEN '' ELSE l.mode END, meta = CASE WHEN r.until IS NULL THEN '' ELSE l.meta END,
       node = CASE WHEN r.others THEN l.node ELSE r.node END,
       label = CASE WHEN r.others THEN l.label ELSE r.label END,
       expires_at = coalesce(r.until, {{now}})
  FROM (SELECT m.gate, m.node, m.label,
               EXISTS (SELECT 1 FROM {{holder}} AS h
                        WHERE h.name = m.name AND h.gate = m.gate AND h.owner <> m.owner AND h.token > 0
                          AND max(h.expires_at, h.reopens_at) > {{now}}) AS others,
               (SELECT max(CASE WHEN h.owner = m.owner THEN m.reopens_at ELSE max(h.expires_at, h.reopens_at) END)
                  FROM {{holder}} AS h
                 WHERE h.name = m.name AND h.gate = m.gate
                   AND CASE WHEN h.owner = m.owner THEN m.reopens_at ELSE max(h.expires_at, h.reopens_at) END
                       > {{now}}) AS until
          FROM {{holder}} AS m
         WHERE m.name = :name AND m.owner = :owner AND m.gate <> ''
           AND CASE WHEN :token <= 0 THEN m.token > 0 AND m.token <> (0 - :token) ELSE m.token = :token END) AS r
 WHERE l.name = :name AND l.owner = r.gate;
UPDATE {{holder}} SET token = 0, expires_at = reopens_at, lease_us = max(0, {{now}} - acquired_at)
 WHERE name = :name AND owner = :owner AND gate <> '' AND reopens_at > {{now}}
   AND CASE WHEN :token <= 0 THEN token > 0 AND token <> (0 - :token) ELSE token = :token END;
INSERT INTO {{holder}} (name, owner, gate, token, expires_at)
SELECT :name, :owner, '', 0, {{now}} + :refused
 WHERE :refused > 0
   AND NOT EXISTS (SELECT 1 FROM {{holder}} AS k
                    WHERE k.name = :name AND k.owner = :owner
                      AND ((k.token = (0 - :token) AND k.token > 0) OR (k.gate <> '' AND k.token = 0 AND k.reopens_at > {{now}})))
ON CONFLICT (name, owner) DO UPDATE SET gate = '', token = 0, permits = 0, expires_at = excluded.expires_at, reopens_at = 0;
DELETE FROM {{holder}}
 WHERE name = :name AND owner = :owner AND :refused = 0
   AND CASE WHEN :token <= 0 THEN token > 0 AND token <> (0 - :token) ELSE token = :token END;
SELECT changes() > 0
       OR EXISTS (SELECT 1 FROM {{holder}} AS h
                   WHERE h.name = :name AND h.owner = :owner AND h.token = 0 AND h.gate <> '' AND :token > 0),
       l.wanted_until > {{now}} AND (l.owner IS NULL OR l.mode = 'permits'),
       l.mode = 'node' AND l.token = :token
  FROM {{lock}} AS l WHERE l.name = :name;

-- name: renew_holders(name, owner, token, lease) -> packet
-- As renew, once a holder, all in one transaction. Who holds the name waits no more, whatever rows it has left.
UPDATE {{holder}} SET expires_at = max(expires_at, {{now}} + :lease)
 WHERE name = :name AND owner = :owner AND token = :token AND gate = (SELECT l.owner FROM {{lock}} AS l WHERE l.name = :name);
UPDATE {{lock}} AS l SET expires_at = max(l.expires_at, h.expires_at) FROM {{holder}} AS h
 WHERE l.name = :name AND h.name = l.name AND h.owner = :owner AND h.token = :token AND h.gate = l.owner;
SELECT h.owner,
       1 + coalesce((SELECT max(0, max({{now}} - w.since)) * 4
                            + max(CASE w.wants WHEN 'shared' THEN 1 WHEN 'permits' THEN 2 ELSE 3 END)
                       FROM {{waiter}} AS w
                      WHERE w.name = l.name AND (w.ticket = 0 OR w.ticket > l.served_ticket) AND NOT EXISTS (
                            SELECT 1 FROM {{holder}} AS m WHERE m.name = w.name AND m.owner = w.owner AND m.gate = l.owner)
                        AND w.expires_at > {{now}}), 0)
  FROM {{holder}} AS h JOIN {{lock}} AS l ON l.name = h.name AND l.owner = h.gate
 WHERE h.name = :name AND h.owner = :owner AND h.token = :token;

-- name: extend_holder(name, owner, token, lease, at_least) -> packet
UPDATE {{holder}} AS h
   SET lease_us = :lease, expires_at = max(h.expires_at, {{now}} + :lease),
       reopens_at = CASE WHEN :at_least = 0 OR l.mode = 'node' THEN h.reopens_at
                         ELSE max(h.reopens_at, {{now}} + :at_least) END
  FROM {{lock}} AS l
 WHERE h.name = :name AND h.owner = :owner AND h.token = :token AND h.token > 0 AND l.name = h.name AND l.owner = h.gate;
UPDATE {{lock}} AS l
   SET expires_at = max(l.expires_at, h.expires_at, h.reopens_at),
       reopens_at = CASE WHEN :at_least = 0 OR l.mode <> 'node' THEN l.reopens_at
                         ELSE max(l.reopens_at, {{now}} + :at_least) END
  FROM {{holder}} AS h
 WHERE l.name = :name AND h.name = l.name AND h.owner = :owner AND h.token = :token AND h.token > 0 AND h.gate = l.owner;
SELECT coalesce((SELECT max(0, max({{now}} - w.since)) * 4
                        + max(CASE w.wants WHEN 'shared' THEN 1 WHEN 'permits' THEN 2 ELSE 3 END)
                   FROM {{waiter}} AS w
                  WHERE w.name = l.name AND (w.ticket = 0 OR w.ticket > l.served_ticket) AND NOT EXISTS (
                        SELECT 1 FROM {{holder}} AS m WHERE m.name = w.name AND m.owner = w.owner AND m.gate = l.owner)
                    AND w.expires_at > {{now}}), 0)
  FROM {{holder}} AS h JOIN {{lock}} AS l ON l.name = h.name AND l.owner = h.gate
 WHERE h.name = :name AND h.owner = :owner AND h.token = :token AND h.token > 0;

-- name: update_holder_metadata(name, owner, token, meta, keep) -> packet
UPDATE {{lock}} SET kept = CASE WHEN :keep = 0 THEN kept ELSE :meta END, meta = CASE WHEN mode = 'node' THEN :meta ELSE meta END
 WHERE name = :name AND (:keep <> 0 OR mode = 'node')
   AND owner = (SELECT h.gate FROM {{holder}} AS h WHERE h.name = :name AND h.owner = :owner AND h.token = :token AND h.token > 0);
UPDATE {{holder}} SET meta = :meta
 WHERE name = :name AND owner = :owner AND token = :token AND token > 0 AND gate = (SELECT l.owner FROM {{lock}} AS l WHERE l.name = :name);

-- name: adopt_holder(name, owner, token, new_owner, node, label, actor, lease, meta) -> packet
-- As adopt. The answer is how many permits it has: 0 for a reader.
UPDATE {{holder}}
   SET owner = :new_owner, node = :node, label = :label, actor = :actor, lease_us = :lease,
       meta = CASE WHEN :meta = '' THEN meta ELSE :meta END, expires_at = max(expires_at, {{now}} + :lease)
 WHERE name = :name AND token = :token AND token > 0 AND owner IN (:owner, :new_owner)
   AND gate = (SELECT l.owner FROM {{lock}} AS l WHERE l.name = :name);
UPDATE {{lock}} AS l SET expires_at = max(l.expires_at, h.expires_at, h.reopens_at) FROM {{holder}} AS h
 WHERE l.name = :name AND h.name = l.name AND h.owner = :new_owner AND h.token = :token AND h.gate = l.owner;
SELECT h.permits FROM {{holder}} AS h JOIN {{lock}} AS l ON l.name = h.name AND l.owner = h.gate
 WHERE h.name = :name AND h.owner = :new_owner AND h.token = :token;

-- name: rename_holder(name, owner, token, actor)
UPDATE {{holder}} SET actor = :actor WHERE name = :name AND owner = :owner AND token = :token;

-- name: look_to_join(name, owner, mode, node, permits, limit, ticket)
-- As look, for who would come in beside others. The owner is answered where it is in already.
SELECT s.opens_at <= s.now AND s.queued_until <= s.now, max(0, s.opens_at - s.now, s.queued_until - s.now),
       s.queued_until > s.now, CASE WHEN s.live AND s.mode <> :mode THEN s.actor ELSE '' END,
       max(0, s.wanted_until - s.now), CASE WHEN s.inside THEN :owner ELSE '' END, s.token, s.live AND s.mode <> ''
  FROM (SELECT g.*,
               CASE WHEN NOT g.live THEN g.reopens_at
                    WHEN NOT g.joins THEN max(g.reopens_at, g.expires_at)
                    WHEN :mode = 'permits' AND :permits > :limit - g.taken THEN coalesce(g.first_end, g.expires_at)
                    ELSE 0 END AS opens_at,
               CASE WHEN g.next_ticket <= g.served_ticket OR (g.joins AND :mode = 'node') THEN 0
                    ELSE coalesce((SELECT max(w.expires_at) FROM {{waiter}} AS w
                                    WHERE w.name = :name AND w.ticket > g.served_ticket AND w.expires_at > g.now
                                      AND (:ticket <= g.served_ticket OR w.ticket < :ticket)), 0) END AS queued_until
          FROM (SELECT l.*, t.now, l.owner IS NOT NULL AND l.expires_at > t.now AS live,
                       l.expires_at > t.now AND l.mode = :mode AND (:mode <> 'node' OR l.node = :node) AS joins,
                       (SELECT coalesce(sum(x.permits), 0) FROM {{holder}} AS x
                         WHERE :mode = 'permits' AND x.name = l.name AND x.gate = l.owner
                           AND max(x.expires_at, x.reopens_at) > t.now) AS taken,
                       (SELECT min(max(x.expires_at, x.reopens_at)) FROM {{holder}} AS x
                         WHERE :mode = 'permits' AND x.permits > 0 AND x.name = l.name AND x.gate = l.owner
                           AND max(x.expires_at, x.reopens_at) > t.now) AS first_end,
                       EXISTS (SELECT 1 FROM {{holder}} AS x
                                WHERE x.name = l.name AND x.owner = :owner AND x.gate = l.owner AND x.token > 0
                                  AND l.expires_at > t.now) AS inside
                  FROM (SELECT {{now}} AS now) AS t, {{lock}} AS l WHERE l.name = :name) AS g) AS s;

-- name: fence_holder(name, owner, token, lease, installation)
-- As fence: proves the gate by writing it; the holder's row is written next.
UPDATE {{lock}} SET expires_at = max(expires_at + 1, {{now}} + :lease)
 WHERE name = :name
   AND owner = (SELECT h.gate FROM {{holder}} AS h WHERE h.name = :name AND h.owner = :owner AND h.token = :token)
   AND EXISTS (SELECT 1 FROM {{lock}} AS i WHERE i.name = '' AND i.meta = :installation);

-- name: fence_holder_row(name, owner, token, lease)
UPDATE {{holder}} SET expires_at = max(expires_at + 1, {{now}} + :lease)
 WHERE name = :name AND owner = :owner AND token = :token AND gate = (SELECT l.owner FROM {{lock}} AS l WHERE l.name = :name);

-- name: holder_lease(name, owner, token)
-- The length of a holder's lease; the gate's is that of the longest it has had.
SELECT h.lease_us FROM {{holder}} AS h JOIN {{lock}} AS l ON l.name = h.name AND l.owner = h.gate
 WHERE h.name = :name AND h.owner = :owner AND h.token = :token;

-- name: downgrade(name, owner, token, new_owner, gate, lease) -> packet
-- From the one holder to the first of those who share it, under the next token. Once more after an answer that was lost: it
-- is in already. Rows of earlier gates go or stay as where a gate is made by who comes in. The answer is its token.
UPDATE {{holder}} SET gate = '-', token = -token, permits = 0, acquired_at = {{now}}
 WHERE name = :name AND token > 0 AND expires_at <= {{now}}
   AND EXISTS (SELECT 1 FROM {{lock}} AS l WHERE l.name = :name AND l.owner = :owner AND l.token = :token AND l.mode = '');
DELETE FROM {{holder}}
 WHERE name = :name AND gate <> '' AND (token = 0 OR token > 0 AND expires_at > {{now}})
   AND EXISTS (SELECT 1 FROM {{lock}} AS l WHERE l.name = :name AND l.owner = :owner AND l.token = :token AND l.mode = '');
INSERT INTO {{holder}} (name, owner, gate, token, node, label, actor, meta, acquired_at, expires_at, reopens_at, lease_us)
SELECT l.name, :new_owner, :gate, l.token + 1, l.node, l.label, l.actor, l.meta, {{now}}, max(l.expires_at, {{now}} + :lease),
       l.reopens_at, l.lease_us
  FROM {{lock}} AS l WHERE l.name = :name AND l.owner = :owner AND l.token = :token AND l.mode = ''
ON CONFLICT (name, owner) DO NOTHING;
UPDATE {{lock}} AS l SET owner = h.gate, mode = 'shared', token = h.token, actor = '', meta = '',
       acquired_at = h.acquired_at, expires_at = max(h.expires_at, h.reopens_at)
  FROM {{holder}} AS h
 WHERE l.name = :name AND l.owner = :owner AND l.token = :token AND l.mode = ''
   AND h.name = l.name AND h.owner = :new_owner AND h.token = l.token + 1;
SELECT h.token FROM {{holder}} AS h JOIN {{lock}} AS l ON l.name = h.name AND l.owner = h.gate
 WHERE h.name = :name AND h.owner = :new_owner AND h.token = :token + 1;

-- name: upgrade(name, owner, token, new_owner, lease) -> packet
-- From the only one who shares it to its one holder, under the next token; others whose lease lasts keep it from that. Once
-- more after an answer that was lost: it is the holder already. The answer is its token.
UPDATE {{lock}} AS l SET owner = :new_owner, mode = '', token = l.token + 1, node = h.node, label = h.label,
       actor = h.actor, meta = h.meta, acquired_at = {{now}}, lease_us = h.lease_us, reopens_at = max(l.reopens_at, h.reopens_at),
       expires_at = max(h.expires_at, {{now}} + :lease)
  FROM {{holder}} AS h
 WHERE l.name = :name AND h.name = l.name AND h.owner = :owner AND h.token = :token AND h.gate = l.owner
   AND l.mode = 'shared'
   AND NOT EXISTS (SELECT 1 FROM {{holder}} AS x
                    WHERE x.name = l.name AND x.gate = l.owner AND x.owner <> :owner
                      AND max(x.expires_at, x.reopens_at) > {{now}});
DELETE FROM {{holder}}
 WHERE name = :name AND owner = :owner
   AND EXISTS (SELECT 1 FROM {{lock}} AS l WHERE l.name = :name AND l.owner = :new_owner);
SELECT l.token FROM {{lock}} AS l WHERE l.name = :name AND l.owner = :new_owner;

-- name: dead_holders(prefix, after, after_owner, limit)
-- Those whose lease was over for a minute, or is over and was of a gate that is gone, so that it cannot be renewed any more;
-- and what was left by those who gave it back. Who has a token never did.
SELECT h.name, h.owner, h.node, h.label, abs(h.token), t.now - h.expires_at,
       h.token <> 0, h.expires_at
  FROM (SELECT {{now}} AS now) AS t, {{holder}} AS h
 WHERE (h.name, h.owner) > (:after, :after_owner) AND h.name >= :prefix AND h.name < CAST(:prefix || x'FF' AS TEXT)
   AND max(h.expires_at, h.reopens_at) <= t.now
   AND (max(h.expires_at, h.reopens_at) <= t.now - 60000000 OR h.gate = ''
        OR NOT EXISTS (SELECT 1 FROM {{lock}} AS l WHERE l.name = h.name AND l.owner = h.gate))
 ORDER BY h.name, h.owner LIMIT :limit;

-- name: dead_holders_of(name, after_owner, limit)
-- Of those who shared one name: who never let go of it, and holds nothing any more since its gate is gone.
SELECT h.name, h.owner, h.node, h.label, abs(h.token), t.now - h.expires_at, 1, h.expires_at
  FROM (SELECT {{now}} AS now) AS t, {{holder}} AS h
 WHERE h.name = :name AND h.owner > :after_owner AND h.token <> 0 AND max(h.expires_at, h.reopens_at) <= t.now
   AND NOT EXISTS (SELECT 1 FROM {{lock}} AS l WHERE l.name = h.name AND l.owner = h.gate)
 ORDER BY h.owner LIMIT :limit;

-- name: forget_holder(name, owner, token, expires_at)
-- As it was seen: renewed since, it stays.
DELETE FROM {{holder}}
 WHERE name = :name AND owner = :owner AND abs(token) = :token AND expires_at = :expires_at
   AND max(expires_at, reopens_at) <= {{now}};

-- name: gate(name, token)
-- Under which owner a name is held by several, if it is, and with this token; and the moment of that.
SELECT l.owner, {{now}} FROM {{lock}} AS l WHERE l.name = :name AND l.token = :token AND l.owner IS NOT NULL AND l.mode <> '';

-- name: drop_gate(name, gate, seen_at)
-- Those who lived when their gate was seen, which was ended by force then: nobody tells of them as dead.
DELETE FROM {{holder}} WHERE name = :name AND gate = :gate AND expires_at > :seen_at;

-- name: has_holder(name, owner, token)
SELECT 1 FROM {{holder}} WHERE name = :name AND owner = :owner AND abs(token) = :token;

-- name: forget_holders(name, owner)
-- Once a holder, all in one transaction.
DELETE FROM {{holder}}
 WHERE name = :name AND owner = :owner AND token = 0
   AND max(expires_at, reopens_at) <= {{now}};
