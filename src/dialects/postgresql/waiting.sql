-- What is asked about those who wait on PostgreSQL: marks, tickets, hand-overs, who waits for whom, and what is in the
-- way of a name. schema/README.md says what the columns mean; fragments.sql how now is read. A ticket is live while it
-- is larger than served_ticket and its row has not expired.

-- name: want(name, mark)
-- The mark is written on the lock's own row, so that it and a release cannot miss each other. A fresh one stays.
UPDATE {{lock}} AS l SET wanted_until = n.now + :mark::bigint
  FROM (SELECT {{now}} AS now OFFSET 0) AS n
 WHERE l.name = :name::text AND l.wanted_until < n.now + :mark::bigint / 2;

-- name: unwant(name)
-- Takes the mark away, unless somebody who has a row waits; others mark again when they look.
UPDATE {{lock}} AS l SET wanted_until = 0
 WHERE l.name = :name::text AND l.wanted_until > 0
   AND NOT EXISTS (SELECT FROM {{waiter}} AS w
                    WHERE w.name = :name::text AND w.expires_at > {{now}});

-- name: draw_ticket(name, owner, node, label, actor, mode, wants, waited, ttl, patience)
-- The number is drawn and the waiter's row written while the lock's row is locked: in one transaction, so that whoever
-- has a ticket sees all smaller ones. Above those that are left from before the lock's row was made.
WITH n AS MATERIALIZED (SELECT {{now}} AS now),
held AS MATERIALIZED (
  SELECT w.ticket FROM n, {{waiter}} AS w LEFT JOIN {{lock}} AS l ON l.name = w.name
   WHERE w.name = :name::text AND w.owner = :owner::text AND w.expires_at > n.now
     AND w.ticket > coalesce(l.served_ticket, 0)),
drawn AS (
  INSERT INTO {{lock}} AS l (name, token, expires_at, next_ticket, wanted_until)
  SELECT :name::text, f.token + 1, n.now,
         coalesce((SELECT max(w.ticket) FROM {{waiter}} AS w WHERE w.name = :name::text), 0) + 1, n.now + :ttl::bigint
    FROM n, {{lock}} AS f WHERE f.name = '' AND NOT EXISTS (SELECT FROM held)
  ON CONFLICT (name) DO UPDATE SET next_ticket = greatest(l.next_ticket + 1, excluded.next_ticket),
         wanted_until = greatest(l.wanted_until, excluded.wanted_until)
  RETURNING l.next_ticket),
written AS (
  INSERT INTO {{waiter}} AS w (name, owner, node, label, actor, mode, wants, ticket, since, expires_at, wants_until)
  SELECT :name::text, :owner::text, :node::text, :label::text, :actor::text, :mode::text, :wants::text, d.next_ticket,
         n.now - :waited::bigint, n.now + :ttl::bigint,
         CASE WHEN :patience::bigint = 0 THEN 0 ELSE n.now + :patience::bigint END
    FROM drawn AS d, (SELECT {{now}} AS now OFFSET 0) AS n
  ON CONFLICT (name, owner) DO UPDATE SET node = excluded.node, label = excluded.label, actor = excluded.actor,
         mode = excluded.mode, wants = excluded.wants, ticket = excluded.ticket, expires_at = excluded.expires_at,
         wants_until = excluded.wants_until
  RETURNING w.ticket)
SELECT ticket FROM written UNION ALL SELECT ticket FROM held;

-- name: add_waiter(name, owner, node, label, actor, mode, wants, waited, ttl, patience)
-- However late it arrives, a ticket that its owner has drawn meanwhile stays, and the dead stay dead.
INSERT INTO {{waiter}} AS w (name, owner, node, label, actor, mode, wants, since, expires_at, wants_until)
SELECT :name::text, :owner::text, :node::text, :label::text, :actor::text, :mode::text, :wants::text,
       n.now - :waited::bigint, n.now + :ttl::bigint, CASE WHEN :patience::bigint = 0 THEN 0 ELSE n.now + :patience::bigint END
  FROM (SELECT {{now}} AS now OFFSET 0) AS n
ON CONFLICT (name, owner) DO UPDATE SET node = excluded.node, label = excluded.label, actor = excluded.actor,
       wants = excluded.wants,
       expires_at = CASE WHEN w.ticket = 0 THEN greatest(w.expires_at, excluded.expires_at) ELSE w.expires_at END,
       wants_until = excluded.wants_until;

-- name: renew_waiters(name, owner, ttl)
-- Every argument is an array, an element a waiter; the answer names those that live. An update, never an upsert, and
-- only of what is live: the dead stay dead.
UPDATE {{waiter}} AS w SET expires_at = {{now}} + x.ttl
  FROM unnest(:name::text[], :owner::text[], :ttl::bigint[]) AS x (name, owner, ttl)
 WHERE w.name = x.name AND w.owner = x.owner AND w.expires_at > {{now}}
   AND (w.ticket = 0
        OR w.ticket > coalesce((SELECT l.served_ticket FROM {{lock}} AS l WHERE l.name = x.name), 0))
RETURNING w.owner || w.name, 1::bigint;

-- name: remove_waiter(name, owner)
DELETE FROM {{waiter}} WHERE name = :name::text AND owner = :owner::text;

-- name: dead_waiters(limit)
SELECT name, owner FROM {{waiter}}
 WHERE expires_at <= {{now}} - 60000000
 ORDER BY name, owner LIMIT :limit::bigint;

-- name: forget_waiters(name, owner)
-- Every argument is an array, an element a waiter, that went unrenewed for a minute.
DELETE FROM {{waiter}} AS w USING unnest(:name::text[], :owner::text[]) AS x (name, owner)
 WHERE w.name = x.name AND w.owner = x.owner AND w.expires_at <= {{now}} - 60000000;

-- name: hand_over(name, owner, token, new_owner, node, label, actor, lease, at_least, meta, ticket, tokens)
-- From one holder to the next, under the next token and under the conditions of an acquire, but for the lease that
-- ends here. The row has the last of `tokens`: those before it are left to the process that asks. Once more after an
-- answer that was lost: the row is the new owner's already, under that token, and loses nothing. Without a ticket
-- only while none is outstanding: one could be drawn between the reading of the tickets and the lock on the row.
UPDATE {{lock}} AS l
   SET token = :token::bigint + :tokens::bigint, owner = :new_owner::text, node = :node::text, label = :label::text,
       mode = '', actor = CASE WHEN l.owner = :new_owner::text THEN l.actor ELSE :actor::text END,
       meta = CASE WHEN l.owner = :new_owner::text THEN l.meta ELSE :meta::text END,
       lease_us = CASE WHEN l.owner = :new_owner::text THEN greatest(l.lease_us, :lease::bigint) ELSE :lease::bigint END,
       acquired_at = CASE WHEN l.owner = :new_owner::text THEN l.acquired_at ELSE n.now END,
       expires_at = CASE WHEN l.owner = :new_owner::text THEN greatest(l.expires_at, n.now + :lease::bigint)
                         ELSE n.now + :lease::bigint END,
       reopens_at = CASE WHEN l.owner = :new_owner::text THEN l.reopens_at WHEN :at_least::bigint = 0 THEN 0
                         ELSE n.now + :at_least::bigint END,
       next_ticket = greatest(l.next_ticket, :ticket::bigint),
       served_ticket = greatest(l.served_ticket, :ticket::bigint)
  FROM (SELECT {{now}} AS now OFFSET 0) AS n
 WHERE l.name = :name::text
   AND ((l.owner = :new_owner::text AND l.token = :token::bigint + :tokens::bigint)
        OR (l.owner = :owner::text AND l.token = :token::bigint AND l.mode = '' AND l.reopens_at <= n.now
            AND (l.next_ticket <= l.served_ticket
                 OR (:ticket::bigint > l.served_ticket
                     AND NOT EXISTS (SELECT FROM {{waiter}} AS w
                                      WHERE w.name = :name::text AND w.ticket > l.served_ticket
                                        AND w.ticket < :ticket::bigint AND w.expires_at > n.now)))));

-- name: rename(name, owner, token, actor)
UPDATE {{lock}} SET actor = :actor::text WHERE name = :name::text AND owner = :owner::text AND token = :token::bigint;

-- name: chain(actor, owner)
-- Which threads the waiter waits for, in turn: those who hold what it waits for, those who hold what each of them waits for,
-- and so on. Then what each of them waits for, and who holds it. Whoever waits for several names at once counts for the last it
-- came to. Those who have permits keep nobody waiting by themselves, and readers no reader, unless somebody else is in line, who
-- waits for them. The thread is what waits and holds: the last 16 digits of an actor.
WITH RECURSIVE n AS MATERIALIZED (SELECT {{now}} AS now),
live AS MATERIALIZED (
  SELECT w.*, right(w.actor, 16) AS thread,
         row_number() OVER (PARTITION BY right(w.actor, 16) ORDER BY w.since DESC, w.owner) AS place
    FROM n, {{waiter}} AS w LEFT JOIN {{lock}} AS l ON l.name = w.name
   WHERE w.expires_at > n.now AND (w.ticket = 0 OR w.ticket > coalesce(l.served_ticket, 0))),
waits AS MATERIALIZED (
  SELECT * FROM live AS w
   WHERE CASE WHEN w.thread = right(:actor::text, 16) THEN w.owner = :owner::text AND w.actor = :actor::text
              ELSE w.place = 1 END),
holds AS (
  SELECT w.thread, w.name, w.owner AS waiter, h.owner, h.actor, h.label, h.token
    FROM n, waits AS w JOIN {{lock}} AS l ON l.name = w.name,
         LATERAL (SELECT l.owner, l.actor, l.label, l.token WHERE l.mode NOT IN ('shared', 'node')
                   UNION ALL
                  SELECT s.owner, s.actor, s.label, s.token FROM {{holder}} AS s
                   WHERE l.mode IN ('shared', 'node') AND s.name = l.name AND s.gate = l.owner AND s.expires_at > n.now
                     AND s.token > 0) AS h
   WHERE l.owner IS NOT NULL AND l.expires_at > n.now
     AND (l.mode <> 'shared' OR w.wants <> 'shared'
          OR EXISTS (SELECT FROM live AS v WHERE v.name = w.name AND v.ticket > 0 AND v.wants <> 'shared'))),
threads (thread) AS (
  SELECT right(:actor::text, 16)
  UNION
  SELECT right(h.actor, 16) FROM threads AS t JOIN holds AS h ON h.thread = t.thread WHERE h.actor <> '')
SELECT w.name, w.owner, w.label, w.ticket, w.since, h.owner, h.actor, h.label, h.token, w.actor
  FROM threads AS t JOIN waits AS w ON w.thread = t.thread JOIN holds AS h ON h.name = w.name AND h.waiter = w.owner
 LIMIT 16384;

-- name: waiters(prefix)
SELECT w.name, w.owner, w.actor, w.node, w.label, w.mode, w.ticket, n.now - w.since,
       CASE WHEN w.wants_until = 0 THEN -1 ELSE greatest(0, w.wants_until - n.now) END,
       coalesce(h.node, ''), coalesce(h.actor, ''), coalesce(h.label, ''), coalesce(h.token, 0), w.wants
  FROM (SELECT {{now}} AS now OFFSET 0) AS n, {{waiter}} AS w
       LEFT JOIN {{lock}} AS l ON l.name = w.name
       LEFT JOIN {{lock}} AS h ON h.name = w.name AND h.owner IS NOT NULL AND h.expires_at > {{now}}
                              AND (h.mode = '' OR EXISTS (SELECT FROM {{holder}} AS m
                                                           WHERE m.name = h.name AND m.gate = h.owner AND m.token > 0 AND m.expires_at > {{now}}))
 WHERE starts_with(w.name, :prefix::text) AND w.expires_at > n.now
   AND (w.ticket = 0 OR w.ticket > coalesce(l.served_ticket, 0))
 ORDER BY w.name, w.ticket, w.since, w.owner;

-- name: sharers(prefix)
SELECT h.name, h.node, h.owner, h.label, h.actor, h.token, h.permits, n.now - h.acquired_at, h.expires_at - n.now
  FROM (SELECT {{now}} AS now OFFSET 0) AS n, {{lock}} AS l
       JOIN {{holder}} AS h ON h.name = l.name AND h.gate = l.owner
 WHERE starts_with(l.name, :prefix::text) AND l.mode IN ('shared', 'permits') AND l.expires_at > n.now
   AND h.expires_at > n.now AND h.token > 0
 ORDER BY h.name, h.token;

-- name: locked(name)
-- A row if the name has one that another transaction keeps locked. This look locks out others who look.
WITH taken AS MATERIALIZED (SELECT l.name FROM {{lock}} AS l WHERE l.name = :name::text FOR UPDATE SKIP LOCKED)
SELECT 1::bigint FROM {{lock}} AS l WHERE l.name = :name::text AND NOT EXISTS (SELECT FROM taken);

-- name: in_the_way(schema, lock, holder, waiter, shares)
-- What has the tables locked that an acquire writes or reads, in words, without waiting for it; NULL where nothing is seen.
-- Who would share a name (:shares) writes the holders' table, too; nobody else needs it. The waiters' is only read.
SELECT string_agg(format('process %s %s %s on %I.%I', k.pid, CASE WHEN k.granted THEN 'holds' ELSE 'waits for' END, k.mode,
                         s.nspname, c.relname), ', ' ORDER BY k.granted DESC, c.relname, k.pid)
  FROM pg_catalog.pg_locks AS k JOIN pg_catalog.pg_database AS d ON d.oid = k.database
       JOIN pg_catalog.pg_class AS c ON c.oid = k.relation JOIN pg_catalog.pg_namespace AS s ON s.oid = c.relnamespace
 WHERE k.locktype = 'relation' AND d.datname = current_database() AND s.nspname = :schema::text
   AND CASE WHEN c.relname = :lock::text OR (c.relname = :holder::text AND :shares::bigint <> 0)
              THEN k.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
            ELSE c.relname = :waiter::text AND k.mode = 'AccessExclusiveLock' END
   AND k.pid <> pg_backend_pid();
