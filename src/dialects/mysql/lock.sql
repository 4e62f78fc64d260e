-- How locks are granted, freed, renewed, fenced and reaped on MySQL and MariaDB. schema/README.md says what the columns
-- mean. Nothing here may need MariaDB: no RETURNING, and what MySQL does not read stands in /*M! */. Session settings
-- do what differs.
--
-- Now is the statement's start (fragments.sql), one moment for all of it, which errs on the safe side. A row can be
-- taken when it is the asker's own, or when reopens_at <= now and (owner IS NULL or expires_at <= now); but not by an
-- owner that has given it back, which the actor of a freed row names. Nothing of one owner makes the end of its lease
-- earlier but what ends it: whatever is sent twice, or arrives late, takes nothing away.
--
-- On a cluster that writes on all of its servers, what one has acknowledged reaches the others a little later. What is
-- marked "matched", "wanted" or "counted" and finds no row is asked again when it has; what is marked "fresh" is only
-- asked then. What is marked "final", too, has said something that stays true of a row, whoever has it since.

-- name: acquire(name, owner, node, label, actor, lease, at_least, meta, ticket) -> insert_id
-- The answer is the insert id: the token, or 0 for busy. A busy row makes the SELECT empty, so that nothing is written;
-- the assignments say the same of the row as it is once it is locked. They run from left to right on columns already
-- changed, so their order is everything: the token and the beginning of the grant first, which still need the old owner
-- and the old expiry, then the owner, and after it the rest: of a row that is the asker's now, and of a grant that
-- begins with this statement. The same owner keeps what it was granted; its lease ends no sooner than it did. A takeover
-- begins above the floor too (VALUES(token)): a row that was given back because its token came from an old floor must not
-- be granted with the next small one; and a row that is made begins above the one that was read, which may be gone by then.
-- Without the floor row the token is out of the range of a BIGINT, under every sql_mode: a name that is not busy is an
-- error then, and never called busy.
-- Where tickets may be live (next_ticket > served_ticket), those that come before this one's are looked for;
-- a ticket that is over counts as none. All of them were there before this one's was drawn; who has none is granted the
-- row only if no ticket was drawn since (next_ticket is what was read). The grant ends its ticket, or all that were
-- passed over; once more by the same owner, it ends nothing. Who reads that the row is its own does not look for tickets;
-- should it be nobody's by the time it is locked, what is said to be read then (a smaller next_ticket, and a served_ticket
-- of 0) passes nobody. A takeover of a row that was another's leaves served_ticket above 0, which says that the row's token is
-- above the floor that was there when it was made.
INSERT INTO {{lock}}
       (name, owner, node, label, actor, token, acquired_at, expires_at, reopens_at, lease_us, meta,
        next_ticket, served_ticket)
SELECT :name, :owner, :node, :label, :actor,
       LAST_INSERT_ID(COALESCE((SELECT GREATEST(f.token, COALESCE(b.token, 0)) FROM {{lock}} f WHERE f.name = ''),
                               9223372036854775807) + 1),
       {{now}},
       {{now}} + :lease,
       IF(:at_least = 0, 0, {{now}} + :at_least), :lease, :meta,
       GREATEST(COALESCE(b.next_ticket, 0) - IF(b.owner <=> :owner AND b.next_ticket > b.served_ticket, 1, 0), :ticket),
       CASE WHEN b.name IS NULL OR b.owner <=> :owner THEN 0 WHEN :ticket > b.served_ticket THEN :ticket
            ELSE GREATEST(b.next_ticket, 1) END
  FROM (SELECT 1 AS one) o LEFT JOIN {{lock}} b ON b.name = :name
 WHERE b.name IS NULL OR b.owner <=> :owner
    OR (b.reopens_at <= {{now}}
        AND (b.owner IS NULL OR b.expires_at <= {{now}})
        AND b.actor <> :owner
        AND (b.next_ticket <= b.served_ticket
             OR NOT EXISTS (SELECT 1 FROM {{waiter}} w
                             WHERE w.name = :name AND w.ticket > b.served_ticket
                               AND w.expires_at > {{now}}
                               AND (:ticket <= b.served_ticket OR w.ticket < :ticket))))
ON DUPLICATE KEY UPDATE
  token = IF({{lock}}.owner <=> VALUES(owner), LAST_INSERT_ID({{lock}}.token),
          IF({{lock}}.reopens_at <= VALUES(acquired_at)
             AND ({{lock}}.owner IS NULL OR {{lock}}.expires_at <= VALUES(acquired_at))
             AND {{lock}}.actor <> VALUES(owner)
             AND ((:ticket > {{lock}}.served_ticket AND VALUES(served_ticket) = :ticket)
                  OR ({{lock}}.next_ticket = VALUES(next_ticket) AND (:ticket = 0 OR VALUES(served_ticket) > :ticket))),
             LAST_INSERT_ID(GREATEST({{lock}}.token + 1, VALUES(token))), {{lock}}.token + LAST_INSERT_ID(0))),
  acquired_at = IF({{lock}}.owner <=> VALUES(owner), {{lock}}.acquired_at,
                IF({{lock}}.reopens_at <= VALUES(acquired_at)
                   AND ({{lock}}.owner IS NULL OR {{lock}}.expires_at <= VALUES(acquired_at))
                   AND {{lock}}.actor <> VALUES(owner)
                   AND ((:ticket > {{lock}}.served_ticket AND VALUES(served_ticket) = :ticket)
                        OR ({{lock}}.next_ticket = VALUES(next_ticket) AND (:ticket = 0 OR VALUES(served_ticket) > :ticket))),
                   VALUES(acquired_at), {{lock}}.acquired_at)),
  owner = IF({{lock}}.owner <=> VALUES(owner), {{lock}}.owner,
          IF({{lock}}.reopens_at <= VALUES(acquired_at)
             AND ({{lock}}.owner IS NULL OR {{lock}}.expires_at <= VALUES(acquired_at))
             AND {{lock}}.actor <> VALUES(owner)
             AND ((:ticket > {{lock}}.served_ticket AND VALUES(served_ticket) = :ticket)
                  OR ({{lock}}.next_ticket = VALUES(next_ticket) AND (:ticket = 0 OR VALUES(served_ticket) > :ticket))),
             VALUES(owner), {{lock}}.owner)),
  expires_at = IF({{lock}}.owner <=> VALUES(owner) AND {{lock}}.acquired_at = VALUES(acquired_at), VALUES(expires_at),
               IF({{lock}}.owner <=> VALUES(owner), GREATEST({{lock}}.expires_at, VALUES(expires_at)), {{lock}}.expires_at)),
  mode = IF({{lock}}.owner <=> VALUES(owner), '', {{lock}}.mode),
  reopens_at = IF({{lock}}.owner <=> VALUES(owner) AND {{lock}}.acquired_at = VALUES(acquired_at),
                  VALUES(reopens_at), {{lock}}.reopens_at),
  node = IF({{lock}}.owner <=> VALUES(owner) AND {{lock}}.acquired_at = VALUES(acquired_at), VALUES(node), {{lock}}.node),
  label = IF({{lock}}.owner <=> VALUES(owner) AND {{lock}}.acquired_at = VALUES(acquired_at), VALUES(label), {{lock}}.label),
  actor = IF({{lock}}.owner <=> VALUES(owner) AND {{lock}}.acquired_at = VALUES(acquired_at), VALUES(actor), {{lock}}.actor),
  lease_us = IF({{lock}}.owner <=> VALUES(owner) AND {{lock}}.acquired_at = VALUES(acquired_at), VALUES(lease_us),
             IF({{lock}}.owner <=> VALUES(owner), GREATEST({{lock}}.lease_us, VALUES(lease_us)), {{lock}}.lease_us)),
  meta = IF({{lock}}.owner <=> VALUES(owner) AND {{lock}}.acquired_at = VALUES(acquired_at), VALUES(meta), {{lock}}.meta),
  next_ticket = IF({{lock}}.owner <=> VALUES(owner),
                   GREATEST({{lock}}.next_ticket, VALUES(next_ticket), VALUES(served_ticket)), {{lock}}.next_ticket),
  served_ticket = IF({{lock}}.owner <=> VALUES(owner),
                     GREATEST({{lock}}.served_ticket, VALUES(served_ticket)), {{lock}}.served_ticket);

-- name: acquire_free(name, owner, node, label, actor, lease, at_least, meta) -> insert_id at_once
-- Asked first, on MariaDB, since it costs half of an acquire: grants a row that is there and free, with no ticket outstanding,
-- to an owner that has not given it back, and says nothing of any other. It locks the row to look at it, and MySQL's shortest
-- wait for a lock is a second: there it is never sent. The floor is not read, which would lock its row: who may have begun
-- below it has served_ticket = 0, made and not taken over since, or ended by another than its holder, and is left to the acquire.
UPDATE {{lock}}
   SET token = LAST_INSERT_ID(token + 1), owner = :owner, node = :node, label = :label, actor = :actor,
       acquired_at = {{now}},
       expires_at = {{now}} + :lease,
       reopens_at = IF(:at_least = 0, 0, {{now}} + :at_least),
       lease_us = :lease, meta = :meta
 WHERE name = :name AND owner IS NULL AND actor <> :owner AND served_ticket > 0
   AND next_ticket <= served_ticket AND reopens_at <= {{now}};

-- name: release(name, owner, token) -> wanted
-- As in every statement that frees a row: the actor says who had it, so that an attempt of that owner which arrives
-- late is refused; and the insert id whether somebody waits for it: 2, or else 1. None: a trigger has hidden it.
UPDATE {{lock}} SET actor = owner, owner = NULL, mode = '', meta = '',
       expires_at = {{now}},
       wanted_until = wanted_until
                      + 0 * LAST_INSERT_ID(1 + (wanted_until > {{now}}))
 WHERE name = :name AND owner = :owner AND token = :token;

-- name: withdraw(name, owner) -> wanted fresh
-- For an owner that gives up not knowing whether it was granted the row: frees what it holds, and where nobody holds
-- the row, or there is none, leaves its name there. The owner comes last: the others need the old one. What it was granted
-- may have come from an old floor: see acquire_free.
INSERT INTO {{lock}} (name, token, actor, expires_at)
SELECT :name, f.token + 1, :owner, {{now}} + 0 * LAST_INSERT_ID(1)
  FROM {{lock}} f WHERE f.name = ''
ON DUPLICATE KEY UPDATE
  served_ticket = IF({{lock}}.owner <=> VALUES(actor), 0, {{lock}}.served_ticket),
  mode = IF({{lock}}.owner <=> VALUES(actor), '', {{lock}}.mode),
  meta = IF({{lock}}.owner <=> VALUES(actor), '', {{lock}}.meta),
  expires_at = IF({{lock}}.owner <=> VALUES(actor), VALUES(expires_at), {{lock}}.expires_at),
  wanted_until = IF({{lock}}.owner <=> VALUES(actor),
                    {{lock}}.wanted_until + 0 * LAST_INSERT_ID(1 + ({{lock}}.wanted_until > VALUES(expires_at))),
                    {{lock}}.wanted_until),
  actor = IF({{lock}}.owner IS NULL OR {{lock}}.owner = VALUES(actor), VALUES(actor), {{lock}}.actor),
  owner = IF({{lock}}.owner <=> VALUES(actor), NULL, {{lock}}.owner);

-- name: renew(name, owner, token, lease) -> matched
-- One packet of several statements, with the leases as a list of tuples at /*rows*/, and again for each length. The
-- INSERT reads existing rows and locks them, skipping those that are locked elsewhere, so it can neither wait for a row
-- nor bring one back. What is renewed is told by its end, whoever has written that. The end always moves: a cluster
-- sends on no update that changes nothing, and so could not refuse it. The answer: 0 not renewed, 1 renewed, and
-- of a name that others wait for one more than 4 times the microseconds that the first of them has waited, and 1 if they
-- all want to share it, 2 if they want its permits, 3 if one wants it alone. What tells that are the rows of those who
-- wait, and not the mark on the lock's row, which outlives the wait of who made it: that may be who holds it now.
SET @dlock_now = {{now}};
INSERT INTO {{lock}}
SELECT r.* FROM {{lock}} r WHERE (r.name, r.owner, r.token) IN (/*rows*/) ORDER BY r.name FOR UPDATE SKIP LOCKED
ON DUPLICATE KEY UPDATE
  expires_at = IF({{lock}}.owner <=> VALUES(owner) AND {{lock}}.token = VALUES(token),
                  GREATEST({{lock}}.expires_at + 1, {{now}} + :lease),
                  {{lock}}.expires_at);
SELECT r.owner,
       IF(r.expires_at >= @dlock_now + :lease,
          1 + COALESCE((SELECT GREATEST(0, MAX(@dlock_now - w.since)) * 4
                               + MAX(CASE w.wants WHEN 'shared' THEN 1 WHEN 'permits' THEN 2 ELSE 3 END)
                          FROM {{waiter}} w
                         WHERE w.name = r.name AND w.owner <> r.owner AND (w.ticket = 0 OR w.ticket > r.served_ticket)
                           AND w.expires_at > @dlock_now), 0), 0)
  FROM {{lock}} r
 WHERE (r.name, r.owner, r.token) IN (/*rows*/);

-- name: extend(name, owner, token, lease, at_least) -> wanted
-- The insert id is as a renewal's answer. :at_least, unless it is 0, moves on when the name reopens, and never back; below 0, it ends.
UPDATE {{lock}}
   SET lease_us = :lease,
       reopens_at = IF(:at_least = 0, reopens_at, IF(:at_least < 0, 0, GREATEST(reopens_at, {{now}} + :at_least))),
       expires_at = GREATEST(expires_at + 1, {{now}} + :lease)
                    + 0 * LAST_INSERT_ID(1 + COALESCE((
                        SELECT GREATEST(0, MAX({{now}} - w.since)) * 4
                               + MAX(CASE w.wants WHEN 'shared' THEN 1 WHEN 'permits' THEN 2 ELSE 3 END)
                          FROM {{waiter}} w
                         WHERE w.name = :name AND w.owner <> :owner AND (w.ticket = 0 OR w.ticket > {{lock}}.served_ticket)
                           AND w.expires_at > {{now}}), 0))
 WHERE name = :name AND owner = :owner AND token = :token;

-- name: update_metadata(name, owner, token, meta, keep) -> matched
-- No test of time: as long as nobody took the row, it may be written. What is kept is only written by who holds the name,
-- and by no other statement taken away.
-- The end of the lease moves by as little as it can: see renew.
UPDATE {{lock}} SET meta = :meta, kept = IF(:keep = 0, kept, :meta), expires_at = expires_at + 1
 WHERE name = :name AND owner = :owner AND token = :token;

-- name: adopt(name, owner, token, new_owner, node, label, actor, lease, meta) -> matched
-- The same grant under another owner, so that only one of those who know it has it. Once more after an answer that was
-- lost: the row is the new owner's already.
UPDATE {{lock}}
   SET owner = :new_owner, node = :node, label = :label, actor = :actor, lease_us = :lease,
       meta = IF(LENGTH(:meta) = 0, meta, :meta),
       expires_at = GREATEST(expires_at + 1, {{now}} + :lease)
 WHERE name = :name AND token = :token AND owner IN (:owner, :new_owner) AND mode = '';

-- name: force_release(name, token, reason) -> wanted
-- The token moves on, so that the holder's next renewal is refused; what is said of the end under that token, which is
-- the new one here, says why.
UPDATE {{lock}} SET actor = owner, owner = NULL, token = token + 1, served_ticket = 0, mode = '', meta = '',
       ended_token = token, outcome = 'forced', reason = :reason,
       expires_at = LEAST(expires_at, {{now}}),
       wanted_until = wanted_until
                      + 0 * LAST_INSERT_ID(1 + (wanted_until > {{now}}))
 WHERE name = :name AND owner IS NOT NULL AND token = :token;

-- name: busy(name)
-- A row if nobody can take the name now: as of a read, at less cost than an acquire that is in vain. 2: perhaps nobody
-- holds it, and it lingers in a process that lets go of it when somebody else wants it (see lease/lingering.cpp).
SELECT IF(owner IS NOT NULL AND actor LIKE '%ffffffffffffffff', 2, 1) FROM {{lock}}
 WHERE name = :name
   AND GREATEST(reopens_at, IF(owner IS NULL, 0, expires_at)) > {{now}};

-- name: lingering()
-- A row if some engine on this table lets locks linger, or ever did: the floor row says so in the place of a node.
SELECT 1 FROM {{lock}} WHERE name = '' AND node = 'lingering';

-- name: tell_lingering()
UPDATE {{lock}} SET node = 'lingering' WHERE name = '' AND node <> 'lingering';

-- name: look(name, ticket)
-- Free, when it opens by itself, whether a live ticket comes first, the actor of who holds it, for how long it is
-- marked as wanted, under which owner and token it is held, and whether by several: then the actor is one
-- of theirs, whose release is heard.
SELECT GREATEST(s.opens_at, s.queued_until) <= {{now}},
       GREATEST(0, GREATEST(s.opens_at, s.queued_until) - {{now}}),
       s.queued_until > {{now}},
       IF(s.owner IS NOT NULL AND s.expires_at > {{now}},
          IF(s.mode <> '',
             COALESCE((SELECT MAX(h.actor) FROM {{holder}} h WHERE h.name = :name AND h.gate = s.owner AND h.token > 0), ''),
             s.actor), ''),
       GREATEST(0, s.wanted_until - {{now}}),
       IF(s.expires_at > {{now}}, COALESCE(s.owner, ''), ''), s.token,
       s.expires_at > {{now}} AND s.mode <> ''
  FROM (SELECT l.owner, l.mode, l.token, l.expires_at, l.actor, l.wanted_until,
               GREATEST(l.reopens_at, IF(l.owner IS NULL, 0, l.expires_at)) AS opens_at,
               IF(l.next_ticket <= l.served_ticket, 0,
                  COALESCE((SELECT MAX(w.expires_at) FROM {{waiter}} w
                             WHERE w.name = :name AND w.ticket > l.served_ticket
                               AND w.expires_at > {{now}}
                               AND (:ticket <= l.served_ticket OR w.ticket < :ticket)), 0)) AS queued_until
          FROM {{lock}} l WHERE l.name = :name) s;

-- name: floor() -> fresh
SELECT token FROM {{lock}} WHERE name = '';

-- name: raise_floor(retention)
-- An INSERT … SELECT at READ COMMITTED reads without locking; a sub-select of an UPDATE would lock every row, and wait
-- for each that is locked elsewhere. The floor row is only ever found here, never made.
INSERT INTO {{lock}} (name, token)
SELECT f.name, MAX(c.token) FROM {{lock}} f JOIN {{lock}} c
 WHERE f.name = '' AND c.name <> ''
   AND GREATEST(c.expires_at, c.reopens_at)
       <= {{now}} - :retention
 GROUP BY f.name
ON DUPLICATE KEY UPDATE token = GREATEST({{lock}}.token, VALUES(token));

-- name: begin_reaping(reaper, label, lease, pause)
-- A turn of the reaper is a lease on the floor row. Times that no clock can have written are those of a clock that was
-- stepped back, and bind nobody: a minute more than the longest, since this statement's now may have waited for another
-- reaper's commit. Assignments run from left to right, and nothing is tested after it was changed.
UPDATE {{lock}}
   SET owner = :reaper, label = :label, expires_at = {{now}} + :lease
 WHERE name = ''
   AND (owner IS NULL OR owner = :reaper OR expires_at <= {{now}}
        OR expires_at > {{now}} + :lease + 60000000)
   AND (owner <=> :reaper OR reopens_at <= {{now}}
        OR :pause = 0 OR reopens_at > {{now}} + :pause + 60000000);

-- name: end_reaping(reaper, pause)
UPDATE {{lock}}
   SET owner = NULL, label = '', expires_at = {{now}},
       reopens_at = IF(:pause = 0, reopens_at, {{now}} + :pause)
 WHERE name = '' AND owner = :reaper;

-- name: idle(prefix, after, floor, retention, limit)
SELECT name, token, expires_at
  FROM {{lock}}
 WHERE name > :after AND name >= :prefix AND LEFT(name, OCTET_LENGTH(:prefix)) = :prefix AND owner IS NULL
   AND token <= :floor AND kept = ''
   AND GREATEST(expires_at, reopens_at) <= {{now}} - :retention
 ORDER BY name LIMIT :limit;

-- name: idle_row(name) -> fresh
SELECT name, token, expires_at FROM {{lock}}
 WHERE name = :name AND name <> '' AND owner IS NULL
   AND reopens_at <= {{now}};

-- name: raise_floor_to(token)
UPDATE {{lock}} SET token = :token WHERE name = '' AND token < :token;

-- name: remove_idle(name, token, expires_at)
-- One packet, with the rows as a list of tuples at /*rows*/: exactly what was seen idle, or nothing, and nothing while
-- somebody waits for it. The inner SELECT locks what is to go, in key order, and leaves what is locked elsewhere for
-- another time; with the LIMIT it stays a table of its own, as MySQL demands of what a DELETE reads of its own table. The
-- order of the join is given: the other way round it would begin by locking every row, and wait for each. MariaDB makes
-- a table of a long list, and joins that: in another order, or by reading all there is. The floor is what it is now: a
-- restore may have taken it back since it was raised.
/*M! SET STATEMENT in_predicate_conversion_threshold = 0 FOR */
DELETE l
  FROM (SELECT c.name FROM {{lock}} c FORCE INDEX (PRIMARY)
         WHERE (c.name, c.token, c.expires_at) IN (/*rows*/) AND c.name <> ''
           AND c.wanted_until <= {{now}}
           AND c.reopens_at <= {{now}}
           AND c.token <= (SELECT f.token FROM {{lock}} f WHERE f.name = '')
         ORDER BY c.name LIMIT 1000000 FOR UPDATE SKIP LOCKED) idle
  STRAIGHT_JOIN {{lock}} l FORCE INDEX (PRIMARY) ON l.name = idle.name;

-- name: abandoned(prefix, after, limit)
-- A row that several hold names nobody, and says how many of them there are that dead_holders does not list yet.
SELECT l.name, CASE WHEN l.mode <> '' THEN '' ELSE l.node END, l.label, l.token, {{now}} - l.expires_at,
       CASE WHEN l.mode = '' THEN 0
            ELSE (SELECT COUNT(*) FROM {{holder}} h WHERE h.name = l.name AND h.gate = l.owner AND h.token > 0
                     AND GREATEST(h.expires_at, h.reopens_at) > {{now}} - 60000000) END
  FROM {{lock}} l
 WHERE l.name > :after AND l.name >= :prefix AND LEFT(l.name, OCTET_LENGTH(:prefix)) = :prefix
   AND l.owner IS NOT NULL AND l.expires_at <= {{now}}
 ORDER BY l.name LIMIT :limit;

-- name: settle(name, token, settler) -> wanted
-- The actor says who did it, until the next grant: an answer that was lost can be asked for again.
-- Of several who held it, it was the last run of the one whose lease ended last. Where all of them have given it back only their
-- places are taken away: no lease has ended.
UPDATE {{lock}} l
   SET l.node = COALESCE((SELECT h.node FROM {{holder}} h
                           WHERE h.name = l.name AND h.gate = l.owner AND h.token > 0
                           ORDER BY h.expires_at DESC, h.token DESC LIMIT 1), l.node),
       l.label = COALESCE((SELECT h.label FROM {{holder}} h
                            WHERE h.name = l.name AND h.gate = l.owner AND h.token > 0
                            ORDER BY h.expires_at DESC, h.token DESC LIMIT 1), l.label),
       l.ended_token = IF({{left_by_all}}, l.ended_token, l.token + 1),
       l.expires_at = IF(l.ended_token > l.token, l.expires_at, COALESCE({{left_at}}, l.expires_at)),
       l.outcome = IF(l.ended_token > l.token, 'expired', l.outcome), l.reason = IF(l.ended_token > l.token, '', l.reason),
       l.token = GREATEST(l.token, l.ended_token),
       l.owner = NULL, l.actor = :settler, l.served_ticket = 0, l.mode = '', l.meta = '',
       l.wanted_until = l.wanted_until
                        + 0 * LAST_INSERT_ID(1 + (l.wanted_until > {{now}}))
 WHERE l.name = :name AND l.owner IS NOT NULL AND l.token = :token
   AND l.expires_at <= {{now}};

-- name: installation() -> fresh
-- Which installation this is, which server says so (UUID_SHORT() begins with the second it started in), and for people.
SELECT meta, CONCAT_WS('/', @@hostname, @@port, @@datadir, UUID_SHORT() >> 24), CONCAT(@@hostname, ':', @@port)
  FROM {{lock}} WHERE name = '';

-- name: fence(name, owner, token, lease, installation)
-- In the caller's transaction: proves the lease by writing its row; no row changed: the lease is not the caller's any
-- more, or this is another installation, where nobody has this owner. No test of time: as long as nobody took the row, it
-- may be fenced. The expiry always moves, since an update that changes nothing counts as none; so does, by a microsecond,
-- the time of the grant, which nothing but fences moves: by that one is told whether the fence was undone (fenced).
UPDATE {{lock}}
   SET expires_at = GREATEST(expires_at + 1, {{now}} + :lease), acquired_at = acquired_at + 1
 WHERE name = :name AND owner = :owner AND token = :token;

-- name: fenced(name, owner, token)
-- What a fence has moved, and nothing but fences of this grant moves.
SELECT acquired_at FROM {{lock}} WHERE name = :name AND owner = :owner AND token = :token

-- name: row_availability(name)
-- Asked on the engine's own connection before a transaction lock: is there a row, can it be taken, when will it open,
-- and the floor, read not before the row.
SELECT r.name IS NOT NULL,
       COALESCE(r.reopens_at <= {{now}}
                AND (r.owner IS NULL OR r.expires_at <= {{now}}), 1),
       COALESCE(GREATEST(0, GREATEST(r.reopens_at, IF(r.owner IS NULL, 0, r.expires_at)) - {{now}}), 0),
       f.token
  FROM {{lock}} f LEFT JOIN {{lock}} r ON r.name = :name
 WHERE f.name = '';

-- name: make(name)
-- A free row, in a commit of its own: an insert in a caller's transaction would stall everybody else's.
INSERT INTO {{lock}} (name, token, expires_at)
SELECT :name, f.token + 1, {{now}} FROM {{lock}} f WHERE f.name = ''
ON DUPLICATE KEY UPDATE token = {{lock}}.token;

-- name: take(name, floor, installation)
-- In the caller's transaction: locks the row if it is free and nobody else has it locked, and answers its next token. Which
-- installation this is must be known before: to read it here would give the transaction a snapshot, and what it reads
-- once it has waited for a lock would be too old.
SELECT GREATEST(token, :floor) + 1 FROM {{lock}}
 WHERE name = :name AND reopens_at <= {{now}}
   AND (owner IS NULL OR expires_at <= {{now}})
   FOR UPDATE SKIP LOCKED;

-- name: taken(name, token, owner, node, label, actor, lease, at_least, meta)
-- Writes the row that was locked. Not by LAST_INSERT_ID(…), whose value in the caller's session is the caller's. Without
-- an owner the row is as good as free for others, once the transaction has ended, and remembers who gave it back; with
-- one it is a lease.
UPDATE {{lock}}
   SET token = :token, owner = :owner, node = :node, label = :label, actor = IF(:owner IS NULL, actor, :actor),
       mode = '', meta = :meta,
       acquired_at = {{now}},
       expires_at = {{now}} + :lease,
       reopens_at = IF(:at_least = 0, 0, {{now}} + :at_least),
       lease_us = :lease
 WHERE name = :name;

-- name: sees(name)
SELECT 1 FROM {{lock}} WHERE name = :name;

-- name: settled(name, token, settler) -> fresh
-- 1: by this settler. 2, or no row: by another one, or by this one, and a withdrawn attempt or a later grant has taken its
-- signature away. 3: by nobody, and it is held still. 0: it was released, forced or taken over.
SELECT CASE WHEN ended_token = :token + 1 AND outcome = 'expired' THEN CASE WHEN actor = :settler THEN 1 ELSE 2 END
            WHEN owner IS NOT NULL AND token = :token THEN 3 WHEN token <= :token + 1 THEN 0 ELSE 2 END
  FROM {{lock}} WHERE name = :name;
