-- What is asked about those who wait on MySQL and MariaDB: marks, tickets, hand-overs, who waits for whom, what is
-- locked. schema/README.md says what the columns mean; fragments.sql how now is read. A ticket is live while it is
-- larger than served_ticket and its row has not expired. Nothing here may need MariaDB: no RETURNING, no SET STATEMENT.

-- name: want(name, mark)
-- The mark is written on the lock's own row, so that it and a release cannot miss each other. A fresh one stays.
UPDATE {{lock}} SET wanted_until = {{now}} + :mark
 WHERE name = :name AND wanted_until < {{now}} + :mark DIV 2;

-- name: unwant(name)
-- Takes the mark away, unless somebody who has a row waits; others mark again when they look.
UPDATE {{lock}} SET wanted_until = 0
 WHERE name = :name AND wanted_until > 0
   AND NOT EXISTS (SELECT 1 FROM {{waiter}} w WHERE w.name = :name AND w.expires_at > {{now}});

-- name: draw_ticket(name, owner, node, label, actor, mode, wants, waited, ttl, patience) -> packet
-- One packet of several statements. The number is drawn and the waiter's row written while the lock's row is locked: in
-- one transaction, so that whoever has a ticket sees all smaller ones. Above those that are left from before the lock's
-- row was made. LAST_INSERT_ID() carries the number from one statement to the next; 0: none was drawn.
-- What arrives from another server of a Galera cluster may undo the transaction between two of the statements, and
-- MariaDB tells nobody: the next one would be committed by itself, the COMMIT succeed. So the waiter's row is written only in a
-- transaction, which is that of the drawing then, and what is answered is read behind the COMMIT: the ticket, if it is
-- live; -1 if there is none, and the drawing has to be repeated; and no row where the floor row is missing. A BEGIN would be
-- that of a block of statements to a session in sql_mode=ORACLE.
-- A row that is locked elsewhere is waited for a moment, each its own way: who would not wait at all is never its turn where
-- many others come and go.
START TRANSACTION;
/*M! SET STATEMENT max_statement_time = 0.05 FOR */
SELECT /*+ MAX_EXECUTION_TIME(50) */ l.token INTO @dlock_seen FROM {{lock}} l WHERE l.name = :name FOR UPDATE;
DO LAST_INSERT_ID(0);
INSERT INTO {{lock}} (name, token, expires_at, next_ticket, wanted_until)
SELECT :name, f.token + 1, {{now}},
       LAST_INSERT_ID(COALESCE((SELECT MAX(w.ticket) FROM {{waiter}} w WHERE w.name = :name), 0) + 1),
       {{now}} + :ttl
  FROM {{lock}} f
 WHERE f.name = ''
   AND NOT EXISTS (SELECT 1 FROM {{waiter}} x LEFT JOIN {{lock}} y ON y.name = x.name
                    WHERE x.name = :name AND x.owner = :owner
                      AND x.expires_at > {{now}}
                      AND x.ticket > COALESCE(y.served_ticket, 0))
ON DUPLICATE KEY UPDATE
  next_ticket = LAST_INSERT_ID(GREATEST({{lock}}.next_ticket + 1, VALUES(next_ticket))),
  wanted_until = GREATEST({{lock}}.wanted_until, VALUES(wanted_until));
INSERT INTO {{waiter}} (name, owner, node, label, actor, mode, wants, ticket, since, expires_at, wants_until)
SELECT :name, :owner, :node, :label, :actor, :mode, :wants, LAST_INSERT_ID(),
       {{now}} - :waited,
       {{now}} + :ttl,
       IF(:patience = 0, 0, {{now}} + :patience)
  FROM {{lock}} f
 WHERE f.name = '' AND LAST_INSERT_ID() > 0 /*M! AND @@in_transaction = 1 */
ON DUPLICATE KEY UPDATE node = VALUES(node), label = VALUES(label), actor = VALUES(actor), mode = VALUES(mode),
  wants = VALUES(wants), ticket = VALUES(ticket), expires_at = VALUES(expires_at), wants_until = VALUES(wants_until);
COMMIT;
SELECT COALESCE((SELECT w.ticket FROM {{waiter}} w LEFT JOIN {{lock}} l ON l.name = w.name
                  WHERE w.name = :name AND w.owner = :owner AND w.ticket > COALESCE(l.served_ticket, 0)
                    AND w.expires_at > {{now}}), -1)
  FROM {{lock}} f WHERE f.name = '';

-- name: add_waiter(name, owner, node, label, actor, mode, wants, waited, ttl, patience)
-- However late it arrives, a ticket that its owner has drawn meanwhile stays, and the dead stay dead.
INSERT INTO {{waiter}} (name, owner, node, label, actor, mode, wants, ticket, since, expires_at, wants_until)
VALUES (:name, :owner, :node, :label, :actor, :mode, :wants, 0, {{now}} - :waited,
        {{now}} + :ttl,
        IF(:patience = 0, 0, {{now}} + :patience))
ON DUPLICATE KEY UPDATE node = VALUES(node), label = VALUES(label), actor = VALUES(actor), wants = VALUES(wants),
  expires_at = IF({{waiter}}.ticket = 0, GREATEST({{waiter}}.expires_at, VALUES(expires_at)), {{waiter}}.expires_at),
  wants_until = VALUES(wants_until);

-- name: renew_waiters(name, owner, ttl) -> matched
-- One packet, with the waiters as a list of tuples at /*rows*/; the answer names those that live. An update, never an
-- upsert, and only of what has not expired: the dead stay dead, and a ticket that was served is dead whenever its row
-- expires.
UPDATE {{waiter}}
   SET expires_at = {{now}} + :ttl
 WHERE (name, owner) IN (/*rows*/) AND expires_at > {{now}};
SELECT CONCAT(CAST(w.owner AS BINARY), w.name), 1
  FROM {{waiter}} w LEFT JOIN {{lock}} l ON l.name = w.name
 WHERE (w.name, w.owner) IN (/*rows*/) AND w.expires_at > {{now}}
   AND (w.ticket = 0 OR w.ticket > COALESCE(l.served_ticket, 0));

-- name: remove_waiter(name, owner) -> matched
DELETE FROM {{waiter}} WHERE name = :name AND owner = :owner;

-- name: dead_waiters(limit)
SELECT name, owner FROM {{waiter}}
 WHERE expires_at <= {{now}} - 60000000
 ORDER BY name, owner LIMIT :limit;

-- name: forget_waiters(name, owner)
-- With the waiters as a list of tuples at /*rows*/: those that went unrenewed for a minute.
DELETE FROM {{waiter}}
 WHERE (name, owner) IN (/*rows*/)
   AND expires_at <= {{now}} - 60000000;

-- name: hand_over(name, owner, token, new_owner, node, label, actor, lease, at_least, meta, ticket, tokens) -> matched
-- From one holder to the next, under the next token and under the conditions of an acquire, but for the lease that
-- ends here. The row has the last of `tokens`: those before it are left to the process that asks. Once more after an
-- answer that was lost: the row is the new owner's already, under that token, and loses nothing. Without a ticket
-- only while none is outstanding: one could be drawn between the reading of the tickets and the lock on the row.
-- Assignments run from left to right: what still needs the old owner comes before the owner. The number of matched
-- rows is the answer.
UPDATE {{lock}} l
   SET l.token = :token + :tokens,
       l.acquired_at = IF(l.owner = :new_owner, l.acquired_at, {{now}}),
       l.lease_us = IF(l.owner = :new_owner, GREATEST(l.lease_us, :lease), :lease),
       l.expires_at = GREATEST(IF(l.owner = :new_owner, l.expires_at, 0),
                               {{now}} + :lease),
       l.reopens_at = IF(l.owner = :new_owner, l.reopens_at, IF(:at_least = 0, 0, l.acquired_at + :at_least)),
       l.actor = IF(l.owner = :new_owner, l.actor, :actor), l.meta = IF(l.owner = :new_owner, l.meta, :meta),
       l.owner = :new_owner, l.node = :node, l.label = :label, l.mode = '',
       l.next_ticket = GREATEST(l.next_ticket, :ticket), l.served_ticket = GREATEST(l.served_ticket, :ticket)
 WHERE l.name = :name
   AND ((l.owner = :new_owner AND l.token = :token + :tokens)
        OR (l.owner = :owner AND l.token = :token AND l.mode = ''
            AND l.reopens_at <= {{now}}
            AND (l.next_ticket <= l.served_ticket
                 OR (:ticket > l.served_ticket
                     AND NOT EXISTS (SELECT 1 FROM {{waiter}} w
                                      WHERE w.name = :name AND w.ticket > l.served_ticket AND w.ticket < :ticket
                                        AND w.expires_at > {{now}})))));

-- name: rename(name, owner, token, actor)
UPDATE {{lock}} SET actor = :actor WHERE name = :name AND owner = :owner AND token = :token;

-- name: chain(actor, owner)
-- Which threads the waiter waits for, in turn: those who hold what it waits for, those who hold what each of them waits for,
-- and so on. Then what each of them waits for, and who holds it. Whoever waits for several names at once counts for the last it
-- came to. Those who have permits keep nobody waiting by themselves, and readers no reader, unless somebody else is in line, who
-- waits for them. The thread is what waits and holds: the last 16 digits of an actor.
WITH RECURSIVE live AS (
  SELECT w.name, w.owner, w.actor, w.label, w.wants, w.ticket, w.since, RIGHT(w.actor, 16) AS thread,
         ROW_NUMBER() OVER (PARTITION BY RIGHT(w.actor, 16) ORDER BY w.since DESC, w.owner) AS place
    FROM {{waiter}} w LEFT JOIN {{lock}} l ON l.name = w.name
   WHERE w.expires_at > {{now}} AND (w.ticket = 0 OR w.ticket > COALESCE(l.served_ticket, 0))),
holds AS (
  SELECT w.name, w.owner AS waiter, w.actor AS waiter_actor, w.label AS waiter_label, w.ticket, w.since, w.thread,
         COALESCE(h.owner, l.owner) AS owner, COALESCE(h.actor, l.actor) AS actor, COALESCE(h.label, l.label) AS label,
         COALESCE(h.token, l.token) AS token
    FROM live w JOIN {{lock}} l ON l.name = w.name
         LEFT JOIN {{holder}} h ON l.mode IN ('shared', 'node') AND h.name = l.name AND h.gate = l.owner AND h.expires_at > {{now}}
                              AND h.token > 0
   WHERE l.owner IS NOT NULL AND l.expires_at > {{now}} AND (l.mode NOT IN ('shared', 'node') OR h.name IS NOT NULL)
     AND IF(w.thread = RIGHT(:actor, 16), w.owner = :owner AND w.actor = :actor, w.place = 1)
     AND (l.mode <> 'shared' OR w.wants <> 'shared'
          OR EXISTS (SELECT 1 FROM live v WHERE v.name = w.name AND v.ticket > 0 AND v.wants <> 'shared'))),
threads AS (
  SELECT RIGHT(:actor, 16) AS thread
  UNION
  SELECT RIGHT(h.actor, 16) FROM threads t JOIN holds h ON h.thread = t.thread WHERE h.actor <> '')
SELECT h.name, h.waiter, h.waiter_label, h.ticket, h.since, h.owner, h.actor, h.label, h.token, h.waiter_actor
  FROM threads t JOIN holds h ON h.thread = t.thread
 LIMIT 16384;

-- name: waiters(prefix)
SELECT w.name, w.owner, w.actor, w.node, w.label, w.mode, w.ticket,
       {{now}} - w.since,
       IF(w.wants_until = 0, -1, GREATEST(0, w.wants_until - {{now}})),
       COALESCE(h.node, ''), COALESCE(h.actor, ''), COALESCE(h.label, ''), COALESCE(h.token, 0), w.wants
  FROM {{waiter}} w
       LEFT JOIN {{lock}} l ON l.name = w.name
       LEFT JOIN {{lock}} h ON h.name = w.name AND h.owner IS NOT NULL AND h.expires_at > {{now}}
                          AND (h.mode = '' OR EXISTS (SELECT 1 FROM {{holder}} m
                                                       WHERE m.name = h.name AND m.gate = h.owner AND m.token > 0 AND m.expires_at > {{now}}))
 WHERE w.name >= :prefix AND LEFT(w.name, OCTET_LENGTH(:prefix)) = :prefix
   AND w.expires_at > {{now}}
   AND (w.ticket = 0 OR w.ticket > COALESCE(l.served_ticket, 0))
 ORDER BY w.name, w.ticket, w.since, w.owner;

-- name: sharers(prefix)
SELECT h.name, h.node, h.owner, h.label, h.actor, h.token, h.permits,
       {{now}} - h.acquired_at,
       h.expires_at - {{now}}
  FROM {{lock}} l JOIN {{holder}} h ON h.name = l.name AND h.gate = l.owner
 WHERE l.name >= :prefix AND LEFT(l.name, OCTET_LENGTH(:prefix)) = :prefix AND l.mode IN ('shared', 'permits')
   AND l.expires_at > {{now}}
   AND h.expires_at > {{now}} AND h.token > 0
 ORDER BY h.name, h.token;

-- name: locked(name) -> packet
-- A row if the name has one that another transaction keeps locked. Of a table that is locked as a whole this is in vain.
SELECT 1 FROM {{lock}} l LEFT JOIN (SELECT t.name FROM {{lock}} t WHERE t.name = :name FOR UPDATE SKIP LOCKED) taken
                                ON taken.name = l.name
 WHERE l.name = :name AND taken.name IS NULL;

-- name: touch_holders(name) -> packet
-- As if to write the table, and of no row: in vain where it is locked as a whole.
SELECT 1 FROM {{holder}} h WHERE h.name = :name AND h.owner = '' FOR UPDATE SKIP LOCKED;

-- name: touch_waiters(name)
-- Likewise, as if to read it.
SELECT 1 FROM {{waiter}} w WHERE w.name = :name AND w.owner = '';

-- name: locked_table(schema, table)
-- What is said of a table that is locked as a whole. Nobody may see whose it is without further rights.
SELECT CONCAT('another session has locked ', :schema, '.', :table,
              ' (LOCK TABLES, FLUSH TABLES … WITH READ LOCK, ALTER TABLE, a backup); SHOW FULL PROCESSLIST tells');
