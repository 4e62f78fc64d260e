-- What is asked about those who wait on SQLite: marks, tickets, hand-overs, and who waits for whom. schema/README.md
-- says what the columns mean; fragments.sql how now is read. A ticket is live while it is larger than served_ticket and
-- its row has not expired.

-- name: want(name, mark)
-- The mark is written on the lock's own row, so that it and a release cannot miss each other. A fresh one stays.
UPDATE {{lock}} AS l SET wanted_until = t.now + :mark
  FROM (SELECT {{now}} AS now) AS t
 WHERE l.name = :name AND l.wanted_until < t.now + :mark / 2;

-- name: unwant(name)
-- Takes the mark away, unless somebody who has a row waits; others mark again when they look.
UPDATE {{lock}} SET wanted_until = 0
 WHERE name = :name AND wanted_until > 0
   AND NOT EXISTS (SELECT 1
                     FROM {{waiter}} AS w,
                          (SELECT {{now}} AS now) AS t
                    WHERE w.name = :name AND w.expires_at > t.now);

-- name: draw_ticket(name, owner, node, label, actor, mode, wants, waited, ttl, patience) -> packet
-- The number is drawn and the waiter's row written in one transaction, so that whoever has a ticket sees all smaller
-- ones. Above those that are left from before the lock's row was made.
INSERT INTO {{lock}} AS l (name, token, expires_at, next_ticket, wanted_until)
SELECT :name, f.token + 1, t.now,
       coalesce((SELECT max(w.ticket) FROM {{waiter}} AS w WHERE w.name = :name), 0) + 1, t.now + :ttl
  FROM (SELECT {{now}} AS now) AS t, {{lock}} AS f
 WHERE f.name = ''
   AND NOT EXISTS (SELECT 1 FROM {{waiter}} AS w LEFT JOIN {{lock}} AS x ON x.name = w.name
                    WHERE w.name = :name AND w.owner = :owner AND w.expires_at > t.now
                      AND w.ticket > coalesce(x.served_ticket, 0))
ON CONFLICT (name) DO UPDATE SET next_ticket = max(l.next_ticket + 1, excluded.next_ticket),
       wanted_until = max(l.wanted_until, excluded.wanted_until);
INSERT INTO {{waiter}} AS w (name, owner, node, label, actor, mode, wants, ticket, since, expires_at, wants_until)
SELECT :name, :owner, :node, :label, :actor, :mode, :wants, l.next_ticket, t.now - :waited, t.now + :ttl,
       CASE WHEN :patience = 0 THEN 0 ELSE t.now + :patience END
  FROM (SELECT {{now}} AS now) AS t, {{lock}} AS l
 WHERE l.name = :name AND changes() > 0
ON CONFLICT (name, owner) DO UPDATE SET node = excluded.node, label = excluded.label, actor = excluded.actor,
       mode = excluded.mode, wants = excluded.wants, ticket = excluded.ticket, expires_at = excluded.expires_at, wants_until = excluded.wants_until;
SELECT ticket FROM {{waiter}} WHERE name = :name AND owner = :owner;

-- name: add_waiter(name, owner, node, label, actor, mode, wants, waited, ttl, patience)
-- However late it arrives, a ticket that its owner has drawn meanwhile stays, and the dead stay dead.
INSERT INTO {{waiter}} AS w (name, owner, node, label, actor, mode, wants, since, expires_at, wants_until)
SELECT :name, :owner, :node, :label, :actor, :mode, :wants, t.now - :waited, t.now + :ttl,
       CASE WHEN :patience = 0 THEN 0 ELSE t.now + :patience END
  FROM (SELECT {{now}} AS now) AS t
 WHERE true
ON CONFLICT (name, owner) DO UPDATE SET node = excluded.node, label = excluded.label, actor = excluded.actor,
       wants = excluded.wants,
       expires_at = CASE WHEN w.ticket = 0 THEN max(w.expires_at, excluded.expires_at) ELSE w.expires_at END,
       wants_until = excluded.wants_until;

-- name: renew_waiters(name, owner, ttl)
-- Once a waiter, all in one transaction; the answer names those that live. An update, never an upsert, and only of what
-- is live: the dead stay dead.
UPDATE {{waiter}} AS w
   SET expires_at = {{now}} + :ttl
 WHERE w.name = :name AND w.owner = :owner
   AND w.expires_at > {{now}}
   AND (w.ticket = 0 OR w.ticket > coalesce((SELECT l.served_ticket FROM {{lock}} AS l WHERE l.name = :name), 0))
RETURNING owner || name, 1;

-- name: remove_waiter(name, owner)
DELETE FROM {{waiter}} WHERE name = :name AND owner = :owner;

-- name: dead_waiters(limit)
SELECT name, owner FROM {{waiter}}
 WHERE expires_at <= {{now}} - 60000000
 ORDER BY name, owner LIMIT :limit;

-- name: forget_waiters(name, owner)
-- Once a waiter, that went unrenewed for a minute, all in one transaction.
DELETE FROM {{waiter}}
 WHERE name = :name AND owner = :owner
   AND expires_at <= {{now}} - 60000000;

-- name: hand_over(name, owner, token, new_owner, node, label, actor, lease, at_least, meta, ticket, tokens)
-- From one holder to the next, under the next token and under the conditions of an acquire, but for the lease that
-- ends here. The row has the last of `tokens`: those before it are left to the process that asks. Once more after an
-- answer that was lost: the row is the new owner's already, under that token, and loses nothing.
UPDATE {{lock}} AS l
   SET token = :token + :tokens, owner = :new_owner, node = :node, label = :label, mode = '',
       actor = CASE WHEN l.owner = :new_owner THEN l.actor ELSE :actor END,
       meta = CASE WHEN l.owner = :new_owner THEN l.meta ELSE :meta END,
       lease_us = CASE WHEN l.owner = :new_owner THEN max(l.lease_us, :lease) ELSE :lease END,
       acquired_at = CASE WHEN l.owner = :new_owner THEN l.acquired_at ELSE t.now END,
       expires_at = CASE WHEN l.owner = :new_owner THEN max(l.expires_at, t.now + :lease) ELSE t.now + :lease END,
       reopens_at = CASE WHEN l.owner = :new_owner THEN l.reopens_at WHEN :at_least = 0 THEN 0 ELSE t.now + :at_least END,
       next_ticket = max(l.next_ticket, :ticket), served_ticket = max(l.served_ticket, :ticket)
  FROM (SELECT {{now}} AS now) AS t
 WHERE l.name = :name
   AND ((l.owner = :new_owner AND l.token = :token + :tokens)
        OR (l.owner = :owner AND l.token = :token AND l.mode = '' AND l.reopens_at <= t.now
            AND (l.next_ticket <= l.served_ticket
                 OR (:ticket > l.served_ticket
                     AND NOT EXISTS (SELECT 1 FROM {{waiter}} AS w
                                      WHERE w.name = :name AND w.ticket > l.served_ticket AND w.ticket < :ticket
                                        AND w.expires_at > t.now)))));

-- name: rename(name, owner, token, actor)
UPDATE {{lock}} SET actor = :actor WHERE name = :name AND owner = :owner AND token = :token;

-- name: chain(actor, owner)
-- Which threads the waiter waits for, in turn: those who hold what it waits for, those who hold what each of them waits for,
-- and so on. Then what each of them waits for, and who holds it. Whoever waits for several names at once counts for the last it
-- came to. Those who have permits keep nobody waiting by themselves, and readers no reader, unless somebody else is in line, who
-- waits for them. The thread is what waits and holds: the last 16 digits of an actor.
WITH RECURSIVE t AS (SELECT {{now}} AS now),
live AS MATERIALIZED (
  SELECT w.*, substr(w.actor, -16) AS thread,
         row_number() OVER (PARTITION BY substr(w.actor, -16) ORDER BY w.since DESC, w.owner) AS place
    FROM t, {{waiter}} AS w LEFT JOIN {{lock}} AS l ON l.name = w.name
   WHERE w.expires_at > t.now AND (w.ticket = 0 OR w.ticket > coalesce(l.served_ticket, 0))),
holds AS MATERIALIZED (
  SELECT w.name, w.owner AS waiter, w.actor AS waiter_actor, w.label AS waiter_label, w.ticket, w.since, w.thread,
         coalesce(h.owner, l.owner) AS owner, coalesce(h.actor, l.actor) AS actor, coalesce(h.label, l.label) AS label,
         coalesce(h.token, l.token) AS token
    FROM t, live AS w JOIN {{lock}} AS l ON l.name = w.name
         LEFT JOIN {{holder}} AS h ON l.mode IN ('shared', 'node') AND h.name = l.name AND h.gate = l.owner AND h.expires_at > t.now
                                 AND h.token > 0
   WHERE l.owner IS NOT NULL AND l.expires_at > t.now AND (l.mode NOT IN ('shared', 'node') OR h.name IS NOT NULL)
     AND CASE WHEN w.thread = substr(:actor, -16) THEN w.owner = :owner AND w.actor = :actor ELSE w.place = 1 END
     AND (l.mode <> 'shared' OR w.wants <> 'shared'
          OR EXISTS (SELECT 1 FROM live AS v WHERE v.name = w.name AND v.ticket > 0 AND v.wants <> 'shared'))),
threads (thread) AS (
  SELECT substr(:actor, -16)
  UNION
  SELECT substr(h.actor, -16) FROM threads AS x JOIN holds AS h ON h.thread = x.thread WHERE h.actor <> '')
SELECT h.name, h.waiter, h.waiter_label, h.ticket, h.since, h.owner, h.actor, h.label, h.token, h.waiter_actor
  FROM threads AS x JOIN holds AS h ON h.thread = x.thread
 LIMIT 16384;

-- name: waiters(prefix)
SELECT w.name, w.owner, w.actor, w.node, w.label, w.mode, w.ticket, t.now - w.since,
       CASE WHEN w.wants_until = 0 THEN -1 ELSE max(0, w.wants_until - t.now) END,
       coalesce(h.node, ''), coalesce(h.actor, ''), coalesce(h.label, ''), coalesce(h.token, 0), w.wants
  FROM (SELECT {{now}} AS now) AS t, {{waiter}} AS w
       LEFT JOIN {{lock}} AS l ON l.name = w.name
       LEFT JOIN {{lock}} AS h ON h.name = w.name AND h.owner IS NOT NULL AND h.expires_at > t.now
                             AND (h.mode = '' OR EXISTS (SELECT 1 FROM {{holder}} AS m
                                                          WHERE m.name = h.name AND m.gate = h.owner AND m.token > 0 AND m.expires_at > t.now))
 WHERE w.name >= :prefix AND w.name < CAST(:prefix || x'FF' AS TEXT) AND w.expires_at > t.now
   AND (w.ticket = 0 OR w.ticket > coalesce(l.served_ticket, 0))
 ORDER BY w.name, w.ticket, w.since, w.owner;

-- name: sharers(prefix)
SELECT h.name, h.node, h.owner, h.label, h.actor, h.token, h.permits, t.now - h.acquired_at, h.expires_at - t.now
  FROM (SELECT {{now}} AS now) AS t, {{lock}} AS l
       JOIN {{holder}} AS h ON h.name = l.name AND h.gate = l.owner
 WHERE l.name >= :prefix AND l.name < CAST(:prefix || x'FF' AS TEXT) AND l.mode IN ('shared', 'permits')
   AND l.expires_at > t.now AND h.expires_at > t.now AND h.token > 0
 ORDER BY h.name, h.token;

-- name: in_the_way(schema, lock, holder, waiter, shares)
-- What keeps the tables from being written, in words: there are no locked rows here, only a file that somebody writes.
SELECT 'another connection is writing the file that ' || :schema || '.' || :lock || ' is in'
 WHERE :shares >= 0 AND :holder <> :waiter;
