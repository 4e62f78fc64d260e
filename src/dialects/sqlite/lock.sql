-- How locks are granted, freed, renewed, fenced and reaped on SQLite. schema/README.md says what the columns mean.
--
-- Now (fragments.sql) is one moment for the whole of a statement, and one that writes reads it when it is the one writer.
-- A row can be taken when it is the asker's own, or when reopens_at <= now and (owner IS NULL or expires_at <= now);
-- but not by an owner that has given it back, which the actor of a freed row names. Nothing of one owner makes the end
-- of its lease earlier but what ends it: whatever is sent twice, or arrives late, takes nothing away.

-- name: acquire(name, owner, node, label, actor, lease, at_least, meta, ticket)
-- One row, the token; no row: busy, and nothing was written. The same owner keeps what it was granted; its lease ends
-- no sooner than it did. Without the floor row the token of a new row would be NULL, which the table refuses.
-- Where tickets may be live (next_ticket > served_ticket), those that come before this one's are looked for; a ticket
-- that is over counts as none. The grant ends its ticket, or all that were passed over.
INSERT INTO {{lock}} AS l
       (name, node, owner, token, acquired_at, expires_at, reopens_at, lease_us, meta, label, actor,
        next_ticket, served_ticket)
SELECT :name, :node, :owner,
       (SELECT f.token FROM {{lock}} AS f WHERE f.name = '') + 1, t.now, t.now + :lease,
       CASE WHEN :at_least = 0 THEN 0 ELSE t.now + :at_least END, :lease, :meta, :label, :actor,
       max(coalesce(b.next_ticket, 0), :ticket),
       CASE WHEN :ticket > coalesce(b.served_ticket, 0) THEN :ticket ELSE coalesce(b.next_ticket, 0) END
  FROM (SELECT {{now}} AS now) AS t
       LEFT JOIN {{lock}} AS b ON b.name = :name
 WHERE b.name IS NULL OR b.owner = :owner
    OR (b.reopens_at <= t.now AND (b.owner IS NULL OR b.expires_at <= t.now) AND b.actor <> :owner
        AND (b.next_ticket <= b.served_ticket
             OR NOT EXISTS (SELECT 1 FROM {{waiter}} AS w
                             WHERE w.name = :name AND w.ticket > b.served_ticket AND w.expires_at > t.now
                               AND (:ticket <= b.served_ticket OR w.ticket < :ticket))))
ON CONFLICT (name) DO UPDATE SET
       owner = excluded.owner,
       token = CASE WHEN l.owner IS excluded.owner THEN l.token ELSE max(l.token + 1, excluded.token) END,
       acquired_at = CASE WHEN l.owner IS excluded.owner THEN l.acquired_at ELSE excluded.acquired_at END,
       expires_at = CASE WHEN l.owner IS excluded.owner THEN max(l.expires_at, excluded.expires_at)
                         ELSE excluded.expires_at END,
       reopens_at = CASE WHEN l.owner IS excluded.owner THEN l.reopens_at ELSE excluded.reopens_at END,
       node = CASE WHEN l.owner IS excluded.owner THEN l.node ELSE excluded.node END,
       label = CASE WHEN l.owner IS excluded.owner THEN l.label ELSE excluded.label END,
       actor = CASE WHEN l.owner IS excluded.owner THEN l.actor ELSE excluded.actor END,
       mode = '',
       lease_us = CASE WHEN l.owner IS excluded.owner THEN max(l.lease_us, excluded.lease_us) ELSE excluded.lease_us END,
       meta = CASE WHEN l.owner IS excluded.owner THEN l.meta ELSE excluded.meta END,
       next_ticket = excluded.next_ticket,
       served_ticket = CASE WHEN l.owner IS excluded.owner THEN l.served_ticket
                            ELSE max(l.served_ticket, excluded.served_ticket) END
RETURNING token;

-- name: release(name, owner, token)
-- As in every statement that frees a row: the actor says who had it, so that an attempt of that owner which arrives
-- late is refused.
UPDATE {{lock}}
   SET owner = NULL, mode = '', meta = '', actor = owner,
       expires_at = {{now}}
 WHERE name = :name AND owner = :owner AND token = :token;

-- name: withdraw(name, owner)
-- For an owner that gives up not knowing whether it was granted the row: frees what it holds, and where nobody holds
-- the row, or there is none, leaves its name there.
INSERT INTO {{lock}} AS l (name, token, actor, expires_at)
SELECT :name, f.token + 1, :owner, {{now}}
  FROM {{lock}} AS f WHERE f.name = ''
ON CONFLICT (name) DO UPDATE SET
       owner = NULL, mode = '', meta = '', actor = excluded.actor,
       expires_at = CASE WHEN l.owner IS NULL THEN l.expires_at ELSE excluded.expires_at END
 WHERE l.owner IS NULL OR l.owner = excluded.actor;

-- name: renew(name, owner, token, lease)
-- Once a row, all rows in one transaction. An update, never an upsert: a released row stays released. The answer: 1
-- renewed, and of a name that others wait for one more than 4 times the microseconds that the first of them has waited,
-- and 1 if they all want to share it, 2 if they want its permits, 3 if one wants it alone. What tells that are the rows of
-- those who wait, and not the mark on the lock's row, which outlives the wait of who made it: that may be who holds it now.
UPDATE {{lock}}
   SET expires_at = max(expires_at, {{now}} + :lease)
 WHERE name = :name AND owner = :owner AND token = :token
RETURNING owner,
          1 + coalesce((SELECT max(0, max({{now}} - w.since)) * 4
                               + max(CASE w.wants WHEN 'shared' THEN 1 WHEN 'permits' THEN 2 ELSE 3 END)
                          FROM {{waiter}} AS w
                         WHERE w.name = :name AND w.owner <> :owner AND (w.ticket = 0 OR w.ticket > served_ticket)
                           AND w.expires_at > {{now}}), 0);

-- name: extend(name, owner, token, lease, at_least)
-- Answers what a renewal does of those who wait, or 0.
-- Within its at-least time a name is nobody else's; :at_least, unless it is 0, moves that on, and never back; below 0, it ends.
UPDATE {{lock}}
   SET lease_us = :lease,
       reopens_at = CASE WHEN :at_least = 0 THEN reopens_at WHEN :at_least < 0 THEN 0
                         ELSE max(reopens_at, {{now}} + :at_least) END,
       expires_at = max(expires_at, {{now}} + :lease)
 WHERE name = :name AND owner = :owner AND token = :token
RETURNING coalesce((SELECT max(0, max({{now}} - w.since)) * 4
                           + max(CASE w.wants WHEN 'shared' THEN 1 WHEN 'permits' THEN 2 ELSE 3 END)
                      FROM {{waiter}} AS w
                     WHERE w.name = :name AND w.owner <> :owner AND (w.ticket = 0 OR w.ticket > served_ticket)
                       AND w.expires_at > {{now}}), 0);

-- name: update_metadata(name, owner, token, meta, keep)
-- No test of time: as long as nobody took the row, it may be written. What is kept is only written by who holds the name,
-- and by no other statement taken away.
UPDATE {{lock}} SET meta = :meta, kept = CASE WHEN :keep = 0 THEN kept ELSE :meta END
 WHERE name = :name AND owner = :owner AND token = :token;

-- name: adopt(name, owner, token, new_owner, node, label, actor, lease, meta)
-- The same grant under another owner, so that only one of those who know it has it. Once more after an answer that was
-- lost: the row is the new owner's already.
UPDATE {{lock}}
   SET owner = :new_owner, node = :node, label = :label, actor = :actor, lease_us = :lease,
       meta = CASE WHEN :meta = '' THEN meta ELSE :meta END,
       expires_at = max(expires_at, {{now}} + :lease)
 WHERE name = :name AND token = :token AND owner IN (:owner, :new_owner) AND mode = '';

-- name: force_release(name, token, reason)
-- The token moves on, so that the holder's next renewal is refused; what is said of the end under that token says why.
UPDATE {{lock}}
   SET owner = NULL, token = token + 1, mode = '', meta = '', actor = owner,
       ended_token = token + 1, outcome = 'forced', reason = :reason,
       expires_at = min(expires_at, {{now}})
 WHERE name = :name AND owner IS NOT NULL AND token = :token;

-- name: busy(name)
-- A row if nobody can take the name now: as of a read, at less cost than an acquire that is in vain. 2: perhaps nobody
-- holds it, and it lingers in a process that lets go of it when somebody else wants it (see lease/lingering.cpp).
SELECT CASE WHEN owner IS NOT NULL AND actor LIKE '%ffffffffffffffff' THEN 2 ELSE 1 END FROM {{lock}}
 WHERE name = :name
   AND max(reopens_at, CASE WHEN owner IS NULL THEN 0 ELSE expires_at END)
       > {{now}};

-- name: lingering()
-- A row if some engine on this table lets locks linger, or ever did: the floor row says so in the place of a node.
SELECT 1 FROM {{lock}} WHERE name = '' AND node = 'lingering';

-- name: tell_lingering()
UPDATE {{lock}} SET node = 'lingering' WHERE name = '' AND node <> 'lingering';

-- name: look(name, ticket)
-- Free, when it opens by itself, whether a live ticket comes first, the actor of who holds it, for how long it is
-- marked as wanted, under which owner and token it is held, and whether by several.
SELECT max(opens_at, queued_until) <= now, max(opens_at - now, queued_until - now, 0), queued_until > now,
       CASE WHEN owner IS NOT NULL AND expires_at > now THEN actor ELSE '' END, max(0, wanted_until - now),
       CASE WHEN expires_at > now THEN coalesce(owner, '') ELSE '' END, token,
       expires_at > now AND mode <> ''
  FROM (SELECT l.owner, l.mode, l.token, l.expires_at, l.actor, l.wanted_until, t.now,
               max(l.reopens_at, CASE WHEN l.owner IS NULL THEN 0 ELSE l.expires_at END) AS opens_at,
               CASE WHEN l.next_ticket <= l.served_ticket THEN 0
                    ELSE coalesce((SELECT max(w.expires_at) FROM {{waiter}} AS w
                                    WHERE w.name = :name AND w.ticket > l.served_ticket AND w.expires_at > t.now
                                      AND (:ticket <= l.served_ticket OR w.ticket < :ticket)), 0) END AS queued_until
          FROM (SELECT {{now}} AS now) AS t, {{lock}} AS l
         WHERE l.name = :name);

-- name: floor()
SELECT token FROM {{lock}} WHERE name = '';

-- name: raise_floor(retention)
UPDATE {{lock}} AS f
   SET token = top.token
  FROM (SELECT max(token) AS token FROM {{lock}}
         WHERE name <> ''
           AND max(expires_at, reopens_at)
               <= {{now}} - :retention) AS top
 WHERE f.name = '' AND f.token < top.token;

-- name: begin_reaping(reaper, label, lease, pause)
-- A turn of the reaper is a lease on the floor row. Times that no clock can have written are those of a clock that was
-- stepped back, and bind nobody: a minute more than the longest, since this statement's now may have waited for another
-- reaper's commit.
UPDATE {{lock}} AS f
   SET owner = :reaper, label = :label, expires_at = n.now + :lease
  FROM (SELECT {{now}} AS now) AS n
 WHERE f.name = ''
   AND (f.owner IS NULL OR f.owner = :reaper OR f.expires_at <= n.now OR f.expires_at > n.now + :lease + 60000000)
   AND (f.owner IS :reaper OR f.reopens_at <= n.now OR :pause = 0 OR f.reopens_at > n.now + :pause + 60000000);

-- name: end_reaping(reaper, pause)
UPDATE {{lock}}
   SET owner = NULL, label = '', expires_at = {{now}},
       reopens_at = CASE WHEN :pause = 0 THEN reopens_at
                         ELSE {{now}} + :pause END
 WHERE name = '' AND owner = :reaper;

-- name: idle(prefix, after, floor, retention, limit)
SELECT name, token, expires_at
  FROM {{lock}}
 WHERE name > :after AND name >= :prefix AND name < CAST(:prefix || x'FF' AS TEXT) AND owner IS NULL
   AND token <= :floor AND kept = ''
   AND max(expires_at, reopens_at)
       <= {{now}} - :retention
 ORDER BY name LIMIT :limit;

-- name: idle_row(name)
SELECT name, token, expires_at FROM {{lock}}
 WHERE name = :name AND name <> '' AND owner IS NULL
   AND reopens_at <= {{now}};

-- name: raise_floor_to(token)
UPDATE {{lock}} SET token = :token WHERE name = '' AND token < :token;

-- name: remove_idle(name, token, expires_at)
-- Once a row, all rows in one transaction: exactly what was seen idle, or nothing, and nothing while somebody waits for it.
-- The floor is what it is now: a restore may have taken it back since it was raised.
DELETE FROM {{lock}}
 WHERE name = :name AND token = :token AND expires_at = :expires_at AND name <> ''
   AND wanted_until <= {{now}}
   AND reopens_at <= {{now}}
   AND token <= (SELECT f.token FROM {{lock}} AS f WHERE f.name = '');

-- name: abandoned(prefix, after, limit)
-- A row that several hold names nobody, and says how many of them there are that dead_holders does not list yet.
SELECT c.name, CASE WHEN c.mode <> '' THEN '' ELSE c.node END, c.label, c.token, c.now - c.expires_at,
       CASE WHEN c.mode = '' THEN 0
            ELSE (SELECT count(*) FROM {{holder}} AS h WHERE h.name = c.name AND h.gate = c.owner AND h.token > 0
                     AND max(h.expires_at, h.reopens_at) > c.now - 60000000) END
  FROM (SELECT *, {{now}} AS now
          FROM {{lock}}
         WHERE name > :after AND name >= :prefix AND name < CAST(:prefix || x'FF' AS TEXT)) AS c
 WHERE c.owner IS NOT NULL AND c.expires_at <= c.now
 ORDER BY c.name LIMIT :limit;

-- name: settle(name, token, settler)
-- The actor says who did it, until the next grant: an answer that was lost can be asked for again.
-- Of several who held it, it was the last run of the one whose lease ended last. Where all of them have given it back only their
-- places are taken away: no lease has ended.
UPDATE {{lock}} AS l
   SET owner = NULL, token = token + CASE WHEN {{left_by_all}} THEN 0 ELSE 1 END, mode = '', meta = '', actor = :settler,
       expires_at = CASE WHEN {{left_by_all}} THEN coalesce({{left_at}}, expires_at) ELSE expires_at END,
       ended_token = CASE WHEN {{left_by_all}} THEN ended_token ELSE token + 1 END,
       outcome = CASE WHEN {{left_by_all}} THEN outcome ELSE 'expired' END, reason = CASE WHEN {{left_by_all}} THEN reason ELSE '' END,
       (node, label) = (SELECT x.node, x.label
                          FROM (SELECT l.node, l.label, 0 AS expires_at, 0 AS token UNION ALL
                                SELECT h.node, h.label, h.expires_at, h.token FROM {{holder}} AS h
                                 WHERE h.name = l.name AND h.gate = l.owner AND h.token > 0) AS x
                         ORDER BY x.expires_at DESC, x.token DESC LIMIT 1)
 WHERE name = :name AND owner IS NOT NULL AND token = :token
   AND expires_at <= {{now}};

-- name: installation()
-- Which installation this is, and in which file, twice.
SELECT i.meta, p.file, p.file FROM {{lock}} AS i, pragma_database_list AS p WHERE i.name = '' AND p.name = 'main';

-- name: fence(name, owner, token, lease, installation)
-- In the caller's transaction: proves the lease by writing its row; no row changed: the lease is not the caller's any
-- more, or this is another installation. No test of time: as long as nobody took the row, it may be fenced.
UPDATE {{lock}}
   SET expires_at = max(expires_at + 1, {{now}} + :lease)
 WHERE name = :name AND owner = :owner AND token = :token
   AND EXISTS (SELECT 1 FROM {{lock}} AS i WHERE i.name = '' AND i.meta = :installation);

-- name: row_availability(name)
-- Asked on the engine's own connection before a transaction lock: is there a row, can it be taken, when will it open,
-- and the floor.
SELECT r.name IS NOT NULL, coalesce(r.reopens_at <= t.now AND (r.owner IS NULL OR r.expires_at <= t.now), 1),
       coalesce(max(0, max(r.reopens_at, CASE WHEN r.owner IS NULL THEN 0 ELSE r.expires_at END) - t.now), 0), f.token
  FROM (SELECT {{now}} AS now) AS t, {{lock}} AS f
       LEFT JOIN {{lock}} AS r ON r.name = :name
 WHERE f.name = '';

-- name: make(name)
-- Nothing: the row is made in the caller's transaction, which is the one writer then.
SELECT 1 FROM {{lock}} WHERE name = :name AND name = '';

-- name: take(name, floor, installation)
-- In the caller's transaction, which from here on is the one writer: makes the row, or finds it free, and answers its
-- next token. In another installation nothing.
INSERT INTO {{lock}} AS l (name, token)
SELECT :name, max(f.token, :floor) FROM {{lock}} AS f WHERE f.name = '' AND f.meta = :installation
ON CONFLICT (name) DO UPDATE SET mode = ''
 WHERE l.reopens_at <= {{now}}
   AND (l.owner IS NULL OR l.expires_at <= {{now}})
RETURNING max(token, :floor) + 1;

-- name: taken(name, token, owner, node, label, actor, lease, at_least, meta)
-- Without an owner the row is as good as free for others, once the transaction has ended, and remembers who gave it
-- back; with one it is a lease.
UPDATE {{lock}}
   SET token = :token, owner = :owner, node = :node, label = :label,
       actor = CASE WHEN :owner IS NULL THEN actor ELSE :actor END, mode = '', meta = :meta,
       acquired_at = {{now}},
       expires_at = {{now}} + :lease,
       reopens_at = CASE WHEN :at_least = 0 THEN 0
                         ELSE {{now}} + :at_least END,
       lease_us = :lease
 WHERE name = :name;

-- name: sees(name)
SELECT 1 FROM {{lock}} WHERE name = :name;

-- name: settled(name, token, settler)
-- 1: by this settler. 2, or no row: by another one, or by this one, and a withdrawn attempt or a later grant has taken its
-- signature away. 3: by nobody, and it is held still. 0: it was released, forced or taken over.
SELECT CASE WHEN ended_token = :token + 1 AND outcome = 'expired' THEN CASE WHEN actor = :settler THEN 1 ELSE 2 END
            WHEN owner IS NOT NULL AND token = :token THEN 3 WHEN token <= :token + 1 THEN 0 ELSE 2 END
  FROM {{lock}} WHERE name = :name;
