-- How many leases are acquired, looked for and released by one packet on MySQL and MariaDB: what lock.sql
-- does for one. The packets are of several statements, with the rows written into them (literals.hpp). A moment read once,
-- before anything is locked, errs on the safe side.

-- name: acquire_free_many(name, owner, node, label, actor, lease, at_least, meta) -> at_once
-- Asked first, on MariaDB, as acquire_free is for one: an answer, its token, for each row that is there and free. In the order
-- of names, and without waiting: where one of the rows is locked elsewhere nothing is granted, and all are asked for as below.
-- MySQL's shortest wait for a lock is a second, so there it is never sent. What the asker holds already is told, too.
-- Without FORCE INDEX a table not much larger than the list is read as a whole, and each of its rows locked on the way.
UPDATE {{lock}} FORCE INDEX (PRIMARY)
   SET token = token + 1, owner = /*each 2*/, node = /*each 3*/, label = /*each 4*/, actor = /*each 5*/,
       acquired_at = {{now}},
       expires_at = {{now}} + /*each 6*/,
       reopens_at = IF(/*each 7*/ = 0, 0, {{now}} + /*each 7*/),
       lease_us = /*each 6*/, meta = /*each 8*/
 WHERE name IN (/*rows 1*/) AND owner IS NULL AND actor <> /*each 2*/ AND served_ticket > 0
   AND next_ticket <= served_ticket AND reopens_at <= {{now}};
SELECT r.name, r.token FROM {{lock}} r WHERE (r.name, r.owner) IN (/*rows 1 2*/);

-- name: acquire_many(name, owner, node, label, actor, lease, at_least, meta)
-- Asks without a ticket, no name twice. The first INSERT reads existing rows that are open and locks them in the
-- order of names, skipping those that are locked elsewhere, so it waits for none; the LIMIT keeps what is only looked at
-- (the busy rows) out of what is locked. Its assignments know that the row is open, or the asker's, and run from left to
-- right: what needs the old owner comes before the owner. As in acquire, a takeover leaves served_ticket above 0. Only
-- what the last SELECT says of the existing rows is to be believed: the token of what is the asker's now, -1 for busy, 0
-- for what has to be asked for alone (its row is locked elsewhere, or was freed meanwhile; or tickets may be live). All
-- busy: nothing is written.
-- If it does not say something of each, a second packet makes the rows that are absent; whom somebody beats to that is
-- not granted.
SET @dlock_now = {{now}};
START TRANSACTION;
INSERT INTO {{lock}} (name, owner, node, label, actor, token, acquired_at, expires_at, reopens_at, lease_us, meta)
WITH wanted (name, owner, node, label, actor, lease, at_least, meta) AS (/*table*/)
SELECT w.name, w.owner, w.node, w.label, w.actor,
       COALESCE((SELECT f.token FROM {{lock}} f WHERE f.name = ''), 9223372036854775807) + 1,
       @dlock_now, @dlock_now + w.lease, IF(w.at_least = 0, 0, @dlock_now + w.at_least), w.lease, w.meta
  FROM (SELECT c.* FROM wanted c JOIN {{lock}} p ON p.name = c.name
         WHERE p.owner <=> c.owner
            OR (p.reopens_at <= @dlock_now AND (p.owner IS NULL OR p.expires_at <= @dlock_now) AND p.actor <> c.owner
                AND p.next_ticket <= p.served_ticket)
         LIMIT 1000000) w
       JOIN {{lock}} b ON b.name = w.name
 WHERE b.owner <=> w.owner
    OR (b.reopens_at <= @dlock_now AND (b.owner IS NULL OR b.expires_at <= @dlock_now) AND b.actor <> w.owner
        AND b.next_ticket <= b.served_ticket)
 ORDER BY w.name FOR UPDATE SKIP LOCKED
ON DUPLICATE KEY UPDATE
  token = IF({{lock}}.owner <=> VALUES(owner), {{lock}}.token, GREATEST({{lock}}.token + 1, VALUES(token))),
  acquired_at = IF({{lock}}.owner <=> VALUES(owner), {{lock}}.acquired_at, VALUES(acquired_at)),
  expires_at = IF({{lock}}.owner <=> VALUES(owner), GREATEST({{lock}}.expires_at, VALUES(expires_at)), VALUES(expires_at)),
  reopens_at = IF({{lock}}.owner <=> VALUES(owner), {{lock}}.reopens_at, VALUES(reopens_at)),
  mode = '',
  node = IF({{lock}}.owner <=> VALUES(owner), {{lock}}.node, VALUES(node)),
  label = IF({{lock}}.owner <=> VALUES(owner), {{lock}}.label, VALUES(label)),
  actor = IF({{lock}}.owner <=> VALUES(owner), {{lock}}.actor, VALUES(actor)),
  lease_us = IF({{lock}}.owner <=> VALUES(owner), GREATEST({{lock}}.lease_us, VALUES(lease_us)), VALUES(lease_us)),
  meta = IF({{lock}}.owner <=> VALUES(owner), {{lock}}.meta, VALUES(meta)),
  next_ticket = IF({{lock}}.owner <=> VALUES(owner), {{lock}}.next_ticket, GREATEST({{lock}}.next_ticket, 1)),
  served_ticket = IF({{lock}}.owner <=> VALUES(owner), {{lock}}.served_ticket, GREATEST({{lock}}.served_ticket, 1)),
  owner = VALUES(owner);
COMMIT;
SELECT r.name, CASE WHEN (r.name, r.owner) IN (/*rows 1 2*/) THEN r.token
                    WHEN r.reopens_at <= @dlock_now AND (r.owner IS NULL OR r.expires_at <= @dlock_now) THEN 0
                    ELSE -1 END
  FROM {{lock}} r WHERE r.name IN (/*rows 1*/)
/*absent*/
SET @dlock_now = {{now}};
INSERT INTO {{lock}} (name, owner, node, label, actor, token, acquired_at, expires_at, reopens_at, lease_us, meta)
WITH wanted (name, owner, node, label, actor, lease, at_least, meta) AS (/*table*/)
SELECT w.name, w.owner, w.node, w.label, w.actor,
       COALESCE((SELECT f.token FROM {{lock}} f WHERE f.name = ''), 9223372036854775807) + 1,
       @dlock_now, @dlock_now + w.lease, IF(w.at_least = 0, 0, @dlock_now + w.at_least), w.lease, w.meta
  FROM wanted w
 WHERE NOT EXISTS (SELECT 1 FROM {{lock}} b WHERE b.name = w.name)
 ORDER BY w.name
ON DUPLICATE KEY UPDATE token = {{lock}}.token;
SELECT r.name, CASE WHEN (r.name, r.owner) IN (/*rows 1 2*/) THEN r.token
                    WHEN r.reopens_at <= @dlock_now AND (r.owner IS NULL OR r.expires_at <= @dlock_now) THEN 0
                    ELSE -1 END
  FROM {{lock}} r WHERE r.name IN (/*rows 1*/);

-- name: busy_many(name)
-- As busy, for each of the names at /*rows*/: a row for every one that nobody can take now.
SELECT name, 1 FROM {{lock}}
 WHERE name IN (/*rows*/)
   AND GREATEST(reopens_at, IF(owner IS NULL, 0, expires_at)) > {{now}};

-- name: unwanted_many(name, owner, token)
-- An answer for each of the keys at /*rows*/ that still stands: 1 if nobody waits for its name.
SELECT r.name,
       r.wanted_until <= {{now}} AND r.next_ticket <= r.served_ticket
  FROM {{lock}} r WHERE (r.name, r.owner, r.token) IN (/*rows*/);

-- name: release_many_at_once(name, owner, token) -> at_once
-- Asked first, on MariaDB, since it costs a third: where it changes a row for each key, each was freed; then the SELECT names
-- those that somebody waits for. Where it does not, the next statement says which were freed, and the others are asked for
-- as below; where a row is locked elsewhere nothing was. FORCE INDEX as in acquire_free_many. What is freed is put together
-- in bytes: of a variable and a column of other characters MariaDB 11.8 makes no text.
SET @dlock_freed = CAST('' AS BINARY);
UPDATE {{lock}} FORCE INDEX (PRIMARY)
   SET actor = owner, owner = NULL, mode = '',
       meta = IF((@dlock_freed := CONCAT(@dlock_freed, ',', actor)) = '', meta, ''),
       expires_at = {{now}}
 WHERE name IN (/*rows 1*/) AND (name, owner, token) IN (/*rows*/);
SELECT r.name, 2 FROM {{lock}} r
 WHERE r.name IN (/*rows 1*/) AND r.wanted_until > {{now}};

-- name: freed_at_once(name, owner, token)
-- 1 for each key that the last one has freed in this session, 2 if somebody waits for its name. The rows themselves do not
-- tell: whoever was granted one meanwhile has written into it. Of an owner there is one grant. A cluster may repeat an
-- update that it had to undo, and a pooler may ask another session: then more are named than were changed, or fewer, and
-- nothing is believed.
WITH wanted (name, owner, token) AS (/*table*/)
SELECT w.name, 1 + COALESCE((SELECT r.wanted_until > {{now}} FROM {{lock}} r WHERE r.name = w.name), 0)
  FROM wanted w WHERE FIND_IN_SET(w.owner, @dlock_freed) > 0;

-- name: release_many_shared(name, owner, token) -> at_once
-- In its place in a transaction that acquires share, where the SELECT still has the rows locked: it answers 1 for each that
-- was freed, as below, or 2.
UPDATE {{lock}} FORCE INDEX (PRIMARY) SET actor = owner, owner = NULL, mode = '', meta = '',
       expires_at = {{now}}
 WHERE name IN (/*rows 1*/) AND (name, owner, token) IN (/*rows*/);
SELECT r.name, 1 + (r.wanted_until > {{now}}) FROM {{lock}} r FORCE INDEX (PRIMARY)
 WHERE r.name IN (/*rows 1*/) AND (r.name, r.token, r.actor) IN (/*rows 1 3 2*/) AND r.owner IS NULL;

-- name: release_many(name, owner, token) -> matched final
-- No name twice. As in renew, rows that are locked elsewhere are skipped. What the SELECT answers is to be believed once
-- the COMMIT has succeeded: 1 for what was freed (by this, or before: who adopts a grant has its token, but is another
-- actor), 2 if somebody waits for that, 0 for what may still be the key's and has to be released alone. Of what a Galera
-- cluster has undone before the COMMIT, which MariaDB tells nobody, the SELECT behind that says so: the last word counts.
SET @dlock_now = {{now}};
START TRANSACTION;
INSERT INTO {{lock}}
SELECT r.* FROM {{lock}} r WHERE (r.name, r.owner, r.token) IN (/*rows*/) ORDER BY r.name FOR UPDATE SKIP LOCKED
ON DUPLICATE KEY UPDATE
  owner = NULL, actor = VALUES(owner), mode = '', meta = '', expires_at = @dlock_now;
SELECT r.name, IF(r.owner IS NOT NULL, 0, 1 + (r.wanted_until > @dlock_now)) FROM {{lock}} r
 WHERE (r.name, r.token) IN (/*rows 1 3*/) AND (r.owner IS NOT NULL OR (r.name, r.actor) IN (/*rows 1 2*/));
COMMIT;
SELECT r.name, 0 FROM {{lock}} r WHERE (r.name, r.owner, r.token) IN (/*rows*/);
