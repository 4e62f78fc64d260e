-- How locks are granted, freed, renewed, fenced and reaped on PostgreSQL. schema/README.md says what the columns mean.
--
-- Now (fragments.sql) is read while the statement runs. A row can be taken when it is the asker's own, or when
-- reopens_at <= now and (owner IS NULL or expires_at <= now); but not by an owner that has given it back, which the
-- actor of a freed row names. Nothing of one owner makes the end of its lease earlier but what ends it: whatever is
-- sent twice, or arrives late, takes nothing away.

-- name: acquire(name, owner, node, label, actor, lease, at_least, meta, ticket)
-- A busy row makes the SELECT empty, so that nothing is written; the WHERE of the upsert says the same of the row as it
-- is once it is locked, and the times of a grant are read after that, once, so that its columns agree to the microsecond.
-- The same owner keeps what it was granted; its lease ends no sooner than it did. A takeover begins above the floor too
-- (excluded.token): a row that was given back because its token came from an old floor must not be granted with the next
-- small one; and a row that is made begins above the one that was read, which may be gone by then. Without the floor row
-- the token would be NULL, which the table refuses: a name that is not busy is an error then, and never called busy.
-- Where tickets may be live (next_ticket > served_ticket), those that come before this one's are looked for; a ticket
-- that is over counts as none. All of them were there before this one's was drawn; who has none is granted the row only
-- if no ticket was drawn since (next_ticket is what was read). The grant ends its ticket, or all that were passed over.
-- Who reads that the row is its own does not look for them; should it be nobody's by the time it is locked, what is said to
-- be read then (a smaller next_ticket, and a served_ticket of 0) passes nobody.
INSERT INTO {{lock}} AS l
       (name, owner, node, label, actor, token, acquired_at, expires_at, reopens_at, lease_us, meta,
        next_ticket, served_ticket)
SELECT :name::text, :owner::text, :node::text, :label::text, :actor::text,
       (SELECT greatest(f.token, b.token) FROM {{lock}} AS f WHERE f.name = '') + 1, n.now, n.now + :lease::bigint,
       CASE WHEN :at_least::bigint = 0 THEN 0 ELSE n.now + :at_least::bigint END,
       :lease::bigint, :meta::text,
       greatest(coalesce(b.next_ticket, 0) - CASE WHEN b.owner = :owner::text AND b.next_ticket > b.served_ticket
                                                  THEN 1 ELSE 0 END, :ticket::bigint),
       CASE WHEN b.owner = :owner::text AND b.next_ticket > b.served_ticket THEN 0
            WHEN :ticket::bigint > coalesce(b.served_ticket, 0) THEN :ticket::bigint ELSE coalesce(b.next_ticket, 0) END
  FROM (SELECT {{now}} AS now OFFSET 0) AS n
       LEFT JOIN {{lock}} AS b ON b.name = :name::text
 WHERE b.name IS NULL OR b.owner = :owner::text
    OR (b.reopens_at <= n.now AND (b.owner IS NULL OR b.expires_at <= n.now) AND b.actor <> :owner::text
        AND (b.next_ticket <= b.served_ticket
             OR NOT EXISTS (SELECT FROM {{waiter}} AS w
                             WHERE w.name = :name::text AND w.ticket > b.served_ticket AND w.expires_at > n.now
                               AND (:ticket::bigint <= b.served_ticket OR w.ticket < :ticket::bigint))))
ON CONFLICT (name) DO UPDATE SET
       token = CASE WHEN l.owner = excluded.owner THEN l.token ELSE greatest(l.token + 1, excluded.token) END,
       (acquired_at, expires_at, reopens_at) = (
         SELECT CASE WHEN l.owner = excluded.owner THEN l.acquired_at ELSE n.now END,
                CASE WHEN l.owner = excluded.owner THEN greatest(l.expires_at, n.now + :lease::bigint)
                     ELSE n.now + :lease::bigint END,
                CASE WHEN l.owner = excluded.owner THEN l.reopens_at WHEN :at_least::bigint = 0 THEN 0
                     ELSE n.now + :at_least::bigint END
           FROM (SELECT {{now}} AS now OFFSET 0) AS n),
       owner = excluded.owner,
       node = CASE WHEN l.owner = excluded.owner THEN l.node ELSE excluded.node END,
       label = CASE WHEN l.owner = excluded.owner THEN l.label ELSE excluded.label END,
       actor = CASE WHEN l.owner = excluded.owner THEN l.actor ELSE excluded.actor END,
       mode = '',
       lease_us = CASE WHEN l.owner = excluded.owner THEN greatest(l.lease_us, excluded.lease_us) ELSE excluded.lease_us END,
       meta = CASE WHEN l.owner = excluded.owner THEN l.meta ELSE excluded.meta END,
       next_ticket = greatest(l.next_ticket, excluded.next_ticket),
       served_ticket = CASE WHEN l.owner = excluded.owner THEN l.served_ticket
                            ELSE greatest(l.served_ticket, excluded.served_ticket) END
 WHERE l.owner = excluded.owner
    OR (l.reopens_at <= {{now}}
        AND (l.owner IS NULL OR l.expires_at <= {{now}})
        AND l.actor <> excluded.owner
        AND ((:ticket::bigint > l.served_ticket AND excluded.served_ticket = :ticket::bigint)
             OR (l.next_ticket = excluded.next_ticket
                 AND (:ticket::bigint = 0 OR excluded.served_ticket > :ticket::bigint))))
RETURNING l.token;

-- name: acquire_free(name, owner, node, label, actor, lease, at_least, meta)
-- Asked first, since it costs less than an acquire: grants a row that is there and free, with no ticket outstanding, to
-- an owner that has not given it back, and says nothing of any other. A row whose token is not above the floor is left to
-- the acquire, and so is everything where there is no floor. What is busy is not locked. The times are read for the row as
-- it was locked: a sub-select that does not look at it would be asked once, before a wait for it.
UPDATE {{lock}} AS l SET
       token = l.token + 1, owner = :owner::text, node = :node::text, label = :label::text, actor = :actor::text,
       (acquired_at, expires_at, reopens_at) = (
         SELECT n.now, n.now + :lease::bigint, CASE WHEN :at_least::bigint = 0 THEN 0 ELSE n.now + :at_least::bigint END
           FROM (SELECT {{now}} AS now OFFSET 0) AS n
          WHERE l.name IS NOT NULL),
       lease_us = :lease::bigint, meta = :meta::text
 WHERE l.name = :name::text AND l.owner IS NULL AND l.actor <> :owner::text AND l.next_ticket <= l.served_ticket
   AND l.reopens_at <= {{now}}
   AND l.token >= (SELECT f.token FROM {{lock}} AS f WHERE f.name = '')
RETURNING l.token;

-- name: release(name, owner, token)
-- As in every statement that frees a row: the actor says who had it, so that an attempt of that owner which arrives
-- late is refused; and while somebody waits for it (wanted_until), the commit notifies, with the owner of the ticket that
-- is next, or dashes, and the name.
UPDATE {{lock}} AS l SET owner = NULL, actor = l.owner, mode = '', meta = '',
       expires_at = {{now}}
 WHERE name = :name::text AND owner = :owner::text AND token = :token::bigint
RETURNING CASE WHEN l.wanted_until <= {{now}} THEN 0 ELSE
       {{notify}} END;

-- name: withdraw(name, owner)
-- For an owner that gives up not knowing whether it was granted the row: frees what it holds, and where nobody holds
-- the row, or there is none, leaves its name there.
INSERT INTO {{lock}} AS l (name, token, actor, expires_at)
SELECT :name::text, f.token + 1, :owner::text, {{now}}
  FROM {{lock}} AS f WHERE f.name = ''
ON CONFLICT (name) DO UPDATE SET owner = NULL, actor = excluded.actor, mode = '', meta = '',
       expires_at = CASE WHEN l.owner IS NULL THEN l.expires_at
                         ELSE {{now}} END
 WHERE l.owner IS NULL OR l.owner = excluded.actor
RETURNING CASE WHEN l.wanted_until <= {{now}} THEN 0 ELSE
       {{notify}} END;

-- name: renew(name, owner, token, lease)
-- Every argument is an array, an element a lease. A row that is locked elsewhere is skipped, and told from a lost one
-- by what the snapshot shows of it. An update, never an upsert: a released row stays released. The answer: 0 skipped,
-- 1 renewed, and of a name that others wait for one more than 4 times the microseconds that the first of them has waited,
-- and 1 if they all want to share it, 2 if they want its permits, 3 if one wants it alone. What tells that are the rows of
-- those who wait, and not the mark on the lock's row, which outlives the wait of who made it: that may be who holds it now.
WITH wanted AS MATERIALIZED (
  SELECT w.name, w.owner, w.token, w.lease
    FROM unnest(:name::text[], :owner::text[], :token::bigint[], :lease::bigint[]) AS w (name, owner, token, lease)),
mine AS MATERIALIZED (
  SELECT l.name, w.lease FROM {{lock}} AS l JOIN wanted AS w ON l.name = w.name AND l.owner = w.owner AND l.token = w.token
   ORDER BY l.name FOR UPDATE OF l SKIP LOCKED),
renewed AS (
  UPDATE {{lock}} AS l
     SET expires_at = greatest(l.expires_at, {{now}} + mine.lease)
    FROM mine WHERE l.name = mine.name RETURNING l.name, l.owner, l.served_ticket)
SELECT r.owner,
       1 + coalesce((SELECT greatest(0, max({{now}} - w.since)) * 4
                            + max(CASE w.wants WHEN 'shared' THEN 1 WHEN 'permits' THEN 2 ELSE 3 END)
                       FROM {{waiter}} AS w
                      WHERE w.name = r.name AND w.owner <> r.owner AND (w.ticket = 0 OR w.ticket > r.served_ticket)
                        AND w.expires_at > {{now}}), 0)
  FROM renewed AS r
UNION ALL
SELECT l.owner, 0::bigint
  FROM {{lock}} AS l JOIN wanted AS w ON l.name = w.name AND l.owner = w.owner AND l.token = w.token
 WHERE l.owner NOT IN (SELECT owner FROM renewed);

-- name: extend(name, owner, token, lease, at_least)
-- Answers what a renewal does of those who wait, or 0.
-- Within its at-least time a name is nobody else's; :at_least, unless it is 0, moves that on, and never back; below 0, it ends.
UPDATE {{lock}} AS l
   SET lease_us = :lease::bigint,
       reopens_at = CASE WHEN :at_least::bigint = 0 THEN reopens_at WHEN :at_least::bigint < 0 THEN 0
                         ELSE greatest(reopens_at, {{now}} + :at_least::bigint) END,
       expires_at = greatest(expires_at, {{now}} + :lease::bigint)
 WHERE name = :name::text AND owner = :owner::text AND token = :token::bigint
RETURNING coalesce((SELECT greatest(0, max({{now}} - w.since)) * 4
                           + max(CASE w.wants WHEN 'shared' THEN 1 WHEN 'permits' THEN 2 ELSE 3 END)
                      FROM {{waiter}} AS w
                     WHERE w.name = l.name AND w.owner <> l.owner AND (w.ticket = 0 OR w.ticket > l.served_ticket)
                       AND w.expires_at > {{now}}), 0);

-- name: update_metadata(name, owner, token, meta, keep)
-- No test of time: as long as nobody took the row, it may be written. What is kept is only written by who holds the name,
-- and by no other statement taken away.
UPDATE {{lock}}
   SET meta = :meta::text, kept = CASE WHEN :keep::bigint = 0 THEN kept ELSE :meta::text END
 WHERE name = :name::text AND owner = :owner::text AND token = :token::bigint;

-- name: adopt(name, owner, token, new_owner, node, label, actor, lease, meta)
-- The same grant under another owner, so that only one of those who know it has it. Once more after an answer that was
-- lost: the row is the new owner's already.
UPDATE {{lock}}
   SET owner = :new_owner::text, node = :node::text, label = :label::text, actor = :actor::text, lease_us = :lease::bigint,
       meta = CASE WHEN :meta::text = '' THEN meta ELSE :meta::text END,
       expires_at = greatest(expires_at, {{now}} + :lease::bigint)
 WHERE name = :name::text AND token = :token::bigint AND owner IN (:owner::text, :new_owner::text) AND mode = '';

-- name: force_release(name, token, reason)
-- The token moves on, so that the holder's next renewal is refused; what is said of the end under that token says why.
UPDATE {{lock}} AS l SET owner = NULL, token = token + 1, actor = l.owner, mode = '', meta = '',
       ended_token = token + 1, outcome = 'forced', reason = :reason::text,
       expires_at = least(l.expires_at, {{now}})
 WHERE name = :name::text AND owner IS NOT NULL AND token = :token::bigint
RETURNING CASE WHEN l.wanted_until <= {{now}} THEN 0 ELSE
       {{notify}} END;

-- name: busy(name)
-- A row if nobody can take the name now: as of a read, at less cost than an acquire that is in vain. 2: perhaps nobody
-- holds it, and it lingers in a process that lets go of it when somebody else wants it (see lease/lingering.cpp).
SELECT CASE WHEN l.owner IS NOT NULL AND l.actor LIKE '%ffffffffffffffff' THEN 2 ELSE 1 END::bigint FROM {{lock}} AS l
 WHERE l.name = :name::text
   AND greatest(l.reopens_at, CASE WHEN l.owner IS NULL THEN 0 ELSE l.expires_at END)
       > {{now}};

-- name: lingering()
-- A row if some engine on this table lets locks linger, or ever did: the floor row says so in the place of a node.
SELECT 1::bigint FROM {{lock}} AS l WHERE l.name = '' AND l.node = 'lingering';

-- name: tell_lingering()
UPDATE {{lock}} SET node = 'lingering' WHERE name = '' AND node <> 'lingering';

-- name: look(name, ticket)
-- Free, when it opens by itself, whether a live ticket comes first, the actor of who holds it, for how long it is
-- marked as wanted, under which owner and token it is held, and whether by several.
SELECT (greatest(s.opens_at, s.queued_until) <= s.now)::int::bigint,
       greatest(0, s.opens_at - s.now, s.queued_until - s.now), (s.queued_until > s.now)::int::bigint,
       CASE WHEN s.owner IS NOT NULL AND s.expires_at > s.now THEN s.actor ELSE '' END, greatest(0, s.wanted_until - s.now),
       CASE WHEN s.expires_at > s.now THEN coalesce(s.owner, '') ELSE '' END, s.token,
       (s.expires_at > s.now AND s.mode <> '')::int::bigint
  FROM (SELECT l.owner, l.mode, l.token, l.expires_at, l.actor, l.wanted_until, n.now,
               greatest(l.reopens_at, CASE WHEN l.owner IS NULL THEN 0 ELSE l.expires_at END) AS opens_at,
               CASE WHEN l.next_ticket <= l.served_ticket THEN 0
                    ELSE coalesce((SELECT max(w.expires_at) FROM {{waiter}} AS w
                                    WHERE w.name = :name::text AND w.ticket > l.served_ticket AND w.expires_at > n.now
                                      AND (:ticket::bigint <= l.served_ticket OR w.ticket < :ticket::bigint)), 0)
               END AS queued_until
          FROM (SELECT {{now}} AS now OFFSET 0) AS n, {{lock}} AS l
         WHERE l.name = :name::text OFFSET 0) AS s;

-- name: floor()
SELECT token FROM {{lock}} WHERE name = '';

-- name: raise_floor(retention)
UPDATE {{lock}}
   SET token = greatest(token, coalesce((SELECT max(c.token) FROM {{lock}} AS c
         WHERE c.name <> ''
           AND greatest(c.expires_at, c.reopens_at)
               <= {{now}} - :retention::bigint), 0))
 WHERE name = '';

-- name: begin_reaping(reaper, label, lease, pause)
-- A turn of the reaper is a lease on the floor row. Times that no clock can have written are those of a clock that was
-- stepped back, and bind nobody: a minute more than the longest, since this statement's now may have waited for another
-- reaper's commit.
UPDATE {{lock}} AS f
   SET owner = :reaper::text, label = :label::text, expires_at = n.now + :lease::bigint
  FROM (SELECT {{now}} AS now OFFSET 0) AS n
 WHERE f.name = ''
   AND (f.owner IS NULL OR f.owner = :reaper::text OR f.expires_at <= n.now OR f.expires_at > n.now + :lease::bigint + 60000000)
   AND (f.owner = :reaper::text OR f.reopens_at <= n.now OR :pause::bigint = 0
        OR f.reopens_at > n.now + :pause::bigint + 60000000);

-- name: end_reaping(reaper, pause)
UPDATE {{lock}}
   SET owner = NULL, label = '', expires_at = {{now}},
       reopens_at = CASE WHEN :pause::bigint = 0 THEN reopens_at
                         ELSE {{now}} + :pause::bigint END
 WHERE name = '' AND owner = :reaper::text;

-- name: idle(prefix, after, floor, retention, limit)
SELECT c.name, c.token, c.expires_at
  FROM (SELECT {{now}} AS now OFFSET 0) AS n, {{lock}} AS c
 WHERE c.name > :after::text AND c.name >= :prefix::text AND starts_with(c.name, :prefix::text)
   AND c.owner IS NULL AND c.token <= :floor::bigint AND c.kept = ''
   AND greatest(c.expires_at, c.reopens_at) <= n.now - :retention::bigint
 ORDER BY c.name LIMIT :limit::bigint;

-- name: idle_row(name)
SELECT l.name, l.token, l.expires_at FROM {{lock}} AS l
 WHERE l.name = :name::text AND l.name <> '' AND l.owner IS NULL
   AND l.reopens_at <= {{now}};

-- name: raise_floor_to(token)
UPDATE {{lock}} SET token = :token::bigint WHERE name = '' AND token < :token::bigint;

-- name: remove_idle(name, token, expires_at)
-- Every argument is an array, an element a row: exactly what was seen idle, or nothing,
-- and nothing while somebody waits for it. A row that is locked elsewhere
-- is left for another time. The floor is what it is now: a restore may have taken it back since it was raised.
WITH wanted AS MATERIALIZED (
  SELECT w.name, w.token, w.expires_at
    FROM unnest(:name::text[], :token::bigint[], :expires_at::bigint[]) AS w (name, token, expires_at)),
gone AS MATERIALIZED (
  SELECT l.name FROM {{lock}} AS l JOIN wanted AS w
      ON l.name = w.name AND l.token = w.token AND l.expires_at = w.expires_at
   WHERE l.name <> '' AND l.wanted_until <= {{now}}
     AND l.reopens_at <= {{now}}
     AND l.token <= (SELECT f.token FROM {{lock}} AS f WHERE f.name = '')
   ORDER BY l.name FOR UPDATE OF l SKIP LOCKED)
DELETE FROM {{lock}} AS l USING gone WHERE l.name = gone.name;

-- name: abandoned(prefix, after, limit)
-- A row that several hold names nobody, and says how many of them there are that dead_holders does not list yet.
SELECT c.name, CASE WHEN c.mode <> '' THEN '' ELSE c.node END, c.label, c.token, n.now - c.expires_at,
       CASE WHEN c.mode = '' THEN 0
            ELSE (SELECT count(*) FROM {{holder}} AS h WHERE h.name = c.name AND h.gate = c.owner AND h.token > 0
                     AND greatest(h.expires_at, h.reopens_at) > n.now - 60000000) END
  FROM (SELECT {{now}} AS now OFFSET 0) AS n, {{lock}} AS c
 WHERE c.name > :after::text AND c.name >= :prefix::text AND starts_with(c.name, :prefix::text)
   AND c.owner IS NOT NULL AND c.expires_at <= n.now
 ORDER BY c.name LIMIT :limit::bigint;

-- name: settle(name, token, settler)
-- The actor says who did it, until the next grant: an answer that was lost can be asked for again.
-- Of several who held it, it was the last run of the one whose lease ended last. Where all of them have given it back only their
-- places are taken away: no lease has ended.
UPDATE {{lock}} AS l SET owner = NULL, token = token + CASE WHEN {{left_by_all}} THEN 0 ELSE 1 END, actor = :settler::text, mode = '', meta = '',
       expires_at = CASE WHEN {{left_by_all}} THEN coalesce({{left_at}}, expires_at) ELSE expires_at END,
       ended_token = CASE WHEN {{left_by_all}} THEN ended_token ELSE token + 1 END,
       outcome = CASE WHEN {{left_by_all}} THEN outcome ELSE 'expired' END, reason = CASE WHEN {{left_by_all}} THEN reason ELSE '' END,
       (node, label) = (SELECT x.node, x.label
                          FROM (SELECT l.node, l.label, 0 AS expires_at, 0 AS token UNION ALL
                                SELECT h.node, h.label, h.expires_at, h.token FROM {{holder}} AS h
                                 WHERE h.name = l.name AND h.gate = l.owner AND h.token > 0) AS x
                         ORDER BY x.expires_at DESC, x.token DESC LIMIT 1)
 WHERE name = :name::text AND owner IS NOT NULL AND token = :token::bigint
   AND expires_at <= {{now}}
RETURNING CASE WHEN l.wanted_until <= {{now}} THEN 0 ELSE
       {{notify}} END;

-- name: installation()
-- Which installation this is, what the database says of itself without a table (nothing here), and which it is for people.
-- A copy of a database has the identity of its original, but on the same server not its name.
SELECT i.meta || '@' || current_database(), '',
       current_database() || coalesce(' at ' || host(inet_server_addr()) || ':' || inet_server_port(), '')
  FROM {{lock}} AS i WHERE i.name = '';

-- name: fence(name, owner, token, lease, installation)
-- In the caller's transaction: proves the lease by writing its row, and fails, which aborts the transaction, if the
-- lease is not the caller's any more, or if this is another installation. No test of time: as long as nobody took the
-- row, it may be fenced. What the failure says is not in the text of the statement, which drivers put into their errors.
WITH f AS (
  UPDATE {{lock}} AS l
     SET expires_at = greatest(l.expires_at + 1, {{now}} + :lease::bigint)
   WHERE l.name = :name::text AND l.owner = :owner::text AND l.token = :token::bigint
     AND EXISTS (SELECT FROM {{lock}} AS i WHERE i.name = '' AND i.meta || '@' || current_database() = :installation::text)
  RETURNING 1)
SELECT CASE WHEN count(*) = 1 THEN 1
            WHEN EXISTS (SELECT FROM {{lock}} AS i
                          WHERE i.name = '' AND i.meta || '@' || current_database() = :installation::text)
              THEN ('dlock' || ': lease lost' || left(count(*)::text, 0))::int
            ELSE ('dlock' || ': another database, ' || current_database() || coalesce(
                    (SELECT ' (' || i.meta || ')' FROM {{lock}} AS i WHERE i.name = ''), ', without a floor row')
                  || left(count(*)::text, 0))::int END FROM f;

-- name: row_availability(name)
-- Asked on the engine's own connection before a transaction lock: is there a row, can it be taken, when will it open,
-- and the floor, read not before the row.
SELECT (r.name IS NOT NULL)::int::bigint,
       coalesce((r.reopens_at <= n.now AND (r.owner IS NULL OR r.expires_at <= n.now)), true)::int::bigint,
       coalesce(greatest(0, greatest(r.reopens_at, CASE WHEN r.owner IS NULL THEN 0 ELSE r.expires_at END) - n.now), 0),
       f.token
  FROM (SELECT {{now}} AS now OFFSET 0) AS n,
       {{lock}} AS f LEFT JOIN {{lock}} AS r ON r.name = :name::text
 WHERE f.name = '';

-- name: make(name)
-- A free row, in a commit of its own: an insert in a caller's transaction would stall everybody else's.
INSERT INTO {{lock}} (name, token, expires_at)
SELECT :name::text, f.token + 1, {{now}}
  FROM {{lock}} AS f WHERE f.name = ''
ON CONFLICT (name) DO NOTHING;

-- name: take(name, floor, installation)
-- In the caller's transaction: locks the row if it is free and nobody else has it locked, and answers its next token. In
-- another installation nothing.
SELECT greatest(token, :floor::bigint) + 1 FROM {{lock}}
 WHERE name = :name::text AND reopens_at <= {{now}}
   AND (owner IS NULL OR expires_at <= {{now}})
   AND EXISTS (SELECT FROM {{lock}} AS i WHERE i.name = '' AND i.meta || '@' || current_database() = :installation::text)
   FOR UPDATE SKIP LOCKED;

-- name: taken(name, token, owner, node, label, actor, lease, at_least, meta)
-- Writes the row that was locked. Without an owner it is as good as free for others, once the transaction has ended,
-- and remembers who gave it back; with one it is a lease.
UPDATE {{lock}} AS l
   SET token = :token::bigint, owner = :owner::text, node = :node::text, label = :label::text,
       actor = CASE WHEN :owner::text IS NULL THEN l.actor ELSE :actor::text END,
       mode = '', meta = :meta::text, acquired_at = n.now, expires_at = n.now + :lease::bigint,
       reopens_at = CASE WHEN :at_least::bigint = 0 THEN 0 ELSE n.now + :at_least::bigint END, lease_us = :lease::bigint
  FROM (SELECT {{now}} AS now OFFSET 0) AS n
 WHERE l.name = :name::text;

-- name: sees(name)
SELECT 1::bigint FROM {{lock}} WHERE name = :name::text;

-- name: settled(name, token, settler)
-- 1: by this settler. 2, or no row: by another one, or by this one, and a withdrawn attempt or a later grant has taken its
-- signature away. 3: by nobody, and it is held still. 0: it was released, forced or taken over.
SELECT (CASE WHEN ended_token = :token::bigint + 1 AND outcome = 'expired'
               THEN CASE WHEN actor = :settler::text THEN 1 ELSE 2 END
             WHEN owner IS NOT NULL AND token = :token::bigint THEN 3
             WHEN token <= :token::bigint + 1 THEN 0 ELSE 2 END)::bigint
  FROM {{lock}} WHERE name = :name::text;
