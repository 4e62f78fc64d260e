-- How many leases are acquired, looked for and released by one statement on SQLite: what lock.sql does
-- for one.

-- name: acquire_many(name, owner, node, label, actor, lease, at_least, meta)
-- acquire, for asks without a ticket: once a row, all rows in one transaction. No name twice. An answer for each
-- that is not busy: its name and token.
INSERT INTO {{lock}} AS l
       (name, node, owner, token, acquired_at, expires_at, reopens_at, lease_us, meta, label, actor, next_ticket,
        served_ticket)
SELECT :name, :node, :owner, (SELECT f.token FROM {{lock}} AS f WHERE f.name = '') + 1, t.now, t.now + :lease,
       CASE WHEN :at_least = 0 THEN 0 ELSE t.now + :at_least END, :lease, :meta, :label, :actor,
       coalesce(b.next_ticket, 0), coalesce(b.next_ticket, 0)
  FROM (SELECT {{now}} AS now) AS t
       LEFT JOIN {{lock}} AS b ON b.name = :name
 WHERE b.name IS NULL OR b.owner = :owner
    OR (b.reopens_at <= t.now AND (b.owner IS NULL OR b.expires_at <= t.now) AND b.actor <> :owner
        AND (b.next_ticket <= b.served_ticket
             OR NOT EXISTS (SELECT 1 FROM {{waiter}} AS w
                             WHERE w.name = :name AND w.ticket > b.served_ticket AND w.expires_at > t.now)))
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
       served_ticket = CASE WHEN l.owner IS excluded.owner THEN l.served_ticket
                            ELSE max(l.served_ticket, excluded.served_ticket) END
RETURNING name, token;

-- name: busy_many(name)
-- As busy, once a row: an answer for every name that nobody can take now.
SELECT name, 1 FROM {{lock}}
 WHERE name = :name
   AND max(reopens_at, CASE WHEN owner IS NULL THEN 0 ELSE expires_at END)
       > {{now}};

-- name: unwanted_many(name, owner, token)
-- Once a row: an answer for each key that still stands, 1 if nobody waits for its name.
SELECT name, wanted_until <= {{now}}
             AND next_ticket <= served_ticket
  FROM {{lock}} WHERE name = :name AND owner = :owner AND token = :token;

-- name: release_many(name, owner, token)
-- Once a row, all rows in one transaction. No name twice. An answer for each that was freed.
UPDATE {{lock}}
   SET owner = NULL, mode = '', meta = '', actor = owner,
       expires_at = {{now}}
 WHERE name = :name AND owner = :owner AND token = :token
RETURNING name, 1;
