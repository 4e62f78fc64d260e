-- How many leases are acquired, looked for and released by one statement on PostgreSQL: what lock.sql does
-- for one.

-- name: acquire_free_many(name, owner, node, label, actor, lease, at_least, meta)
-- Asked first, as acquire_free is for one: an answer, its token, for each row that is there, free and not locked elsewhere.
-- Locked in the order of names, and written where they stand (ctid): a row that has moved meanwhile is not granted.
WITH open AS MATERIALIZED (
  SELECT l.ctid AS at, w.owner, w.node, w.label, w.actor, w.lease, w.at_least, w.meta
    FROM unnest(:name::text[], :owner::text[], :node::text[], :label::text[], :actor::text[], :lease::bigint[],
                :at_least::bigint[], :meta::text[]) AS w (name, owner, node, label, actor, lease, at_least, meta)
         JOIN {{lock}} AS l ON l.name = w.name
   WHERE l.owner IS NULL AND l.actor <> w.owner AND l.next_ticket <= l.served_ticket
     AND l.reopens_at <= {{now}}
     AND l.token >= (SELECT f.token FROM {{lock}} AS f WHERE f.name = '')
   ORDER BY l.name FOR UPDATE OF l SKIP LOCKED)
UPDATE {{lock}} AS l SET
       token = l.token + 1, owner = o.owner, node = o.node, label = o.label, actor = o.actor,
       (acquired_at, expires_at, reopens_at) = (
         SELECT n.now, n.now + o.lease, CASE WHEN o.at_least = 0 THEN 0 ELSE n.now + o.at_least END
           FROM (SELECT {{now}} AS now OFFSET 0) AS n),
       lease_us = o.lease, meta = o.meta
  FROM open AS o WHERE l.ctid = o.at
RETURNING l.name, l.token;

-- name: acquire_many(name, owner, node, label, actor, lease, at_least, meta)
-- Every argument is an array, an element an ask without a ticket; no name twice. In one transaction, and without
-- waiting for a row: the rows that are open and not locked elsewhere are locked in the order of names and taken as by
-- acquire, then absent ones are made in that order. An answer for each that is not busy: its token, or 0 where it has to
-- be asked for alone (its row is locked, or made or freed meanwhile; or tickets may be live). All busy: nothing is written.
WITH wanted AS MATERIALIZED (
  SELECT * FROM unnest(:name::text[], :owner::text[], :node::text[], :label::text[], :actor::text[], :lease::bigint[],
                       :at_least::bigint[], :meta::text[]) AS w (name, owner, node, label, actor, lease, at_least, meta)),
floor AS MATERIALIZED (SELECT f.token FROM {{lock}} AS f WHERE f.name = ''),
open AS MATERIALIZED (
  SELECT l.name FROM wanted AS w JOIN {{lock}} AS l ON l.name = w.name
   WHERE l.owner = w.owner
      OR (l.reopens_at <= {{now}}
          AND (l.owner IS NULL OR l.expires_at <= {{now}})
          AND l.actor <> w.owner
          AND l.next_ticket <= l.served_ticket)
   ORDER BY l.name FOR UPDATE OF l SKIP LOCKED),
taken AS (
  UPDATE {{lock}} AS l SET
         token = CASE WHEN l.owner = w.owner THEN l.token ELSE greatest(l.token, f.token) + 1 END,
         (acquired_at, expires_at, reopens_at) = (
           SELECT CASE WHEN l.owner = w.owner THEN l.acquired_at ELSE n.now END,
                  CASE WHEN l.owner = w.owner THEN greatest(l.expires_at, n.now + w.lease) ELSE n.now + w.lease END,
                  CASE WHEN l.owner = w.owner THEN l.reopens_at WHEN w.at_least = 0 THEN 0 ELSE n.now + w.at_least END
             FROM (SELECT {{now}} AS now OFFSET 0) AS n),
         owner = w.owner,
         node = CASE WHEN l.owner = w.owner THEN l.node ELSE w.node END,
         label = CASE WHEN l.owner = w.owner THEN l.label ELSE w.label END,
         actor = CASE WHEN l.owner = w.owner THEN l.actor ELSE w.actor END,
         mode = '',
         lease_us = CASE WHEN l.owner = w.owner THEN greatest(l.lease_us, w.lease) ELSE w.lease END,
         meta = CASE WHEN l.owner = w.owner THEN l.meta ELSE w.meta END
    FROM open AS o JOIN wanted AS w ON w.name = o.name, floor AS f
   WHERE l.name = o.name RETURNING l.name, l.token),
made AS (
  INSERT INTO {{lock}} AS l
         (name, owner, node, label, actor, token, acquired_at, expires_at, reopens_at, lease_us, meta)
  SELECT w.name, w.owner, w.node, w.label, w.actor, f.token + 1, n.now, n.now + w.lease,
         CASE WHEN w.at_least = 0 THEN 0 ELSE n.now + w.at_least END, w.lease, w.meta
    FROM (SELECT {{now}} AS now OFFSET 0) AS n, floor AS f, wanted AS w
   WHERE NOT EXISTS (SELECT FROM {{lock}} AS b WHERE b.name = w.name)
   ORDER BY w.name
  ON CONFLICT (name) DO NOTHING RETURNING l.name, l.token),
granted AS (SELECT t.name, t.token FROM taken AS t UNION ALL SELECT m.name, m.token FROM made AS m)
SELECT g.name, g.token FROM granted AS g
UNION ALL
SELECT w.name, 0::bigint
  FROM wanted AS w LEFT JOIN {{lock}} AS l ON l.name = w.name
 WHERE (l.name IS NULL OR l.owner = w.owner
        OR (l.reopens_at <= {{now}}
            AND (l.owner IS NULL OR l.expires_at <= {{now}})))
   AND NOT EXISTS (SELECT FROM granted AS g WHERE g.name = w.name);

-- name: busy_many(name)
-- As busy, for each of an array of names: a row for every one that nobody can take now.
SELECT l.name, 1::bigint FROM {{lock}} AS l
 WHERE l.name = ANY (:name::text[])
   AND greatest(l.reopens_at, CASE WHEN l.owner IS NULL THEN 0 ELSE l.expires_at END)
       > {{now}};

-- name: unwanted_many(name, owner, token)
-- Every argument is an array, an element a key. An answer for each that still stands: 1 if nobody waits for its name.
SELECT l.name, CASE WHEN l.wanted_until <= {{now}}
                     AND l.next_ticket <= l.served_ticket THEN 1 ELSE 0 END::bigint
  FROM unnest(:name::text[], :owner::text[], :token::bigint[]) AS w (name, owner, token)
       JOIN {{lock}} AS l ON l.name = w.name AND l.owner = w.owner AND l.token = w.token;

-- name: release_many(name, owner, token)
-- Every argument is an array, an element a key; no name twice. An answer for each that is the key's: 1 freed, 2 freed
-- and notified of as by release, 0 not freed, since its row is locked elsewhere or has moved: it has to be released alone.
WITH wanted AS MATERIALIZED (
  SELECT w.name, w.owner, w.token
    FROM unnest(:name::text[], :owner::text[], :token::bigint[]) AS w (name, owner, token)),
mine AS MATERIALIZED (
  SELECT l.ctid AS at FROM wanted AS w JOIN {{lock}} AS l ON l.name = w.name AND l.owner = w.owner AND l.token = w.token
   ORDER BY l.name FOR UPDATE OF l SKIP LOCKED),
freed AS (
  UPDATE {{lock}} AS l SET owner = NULL, actor = l.owner, mode = '', meta = '',
         expires_at = {{now}}
    FROM mine WHERE l.ctid = mine.at
  RETURNING l.name, CASE WHEN l.wanted_until <= {{now}} THEN 1 ELSE
       1 + {{notify}} END AS said)
SELECT f.name, f.said FROM freed AS f
UNION ALL
SELECT w.name, 0::bigint
  FROM wanted AS w JOIN {{lock}} AS l ON l.name = w.name AND l.owner = w.owner AND l.token = w.token
 WHERE NOT EXISTS (SELECT FROM freed AS f WHERE f.name = w.name);
