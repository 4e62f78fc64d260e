-- What dlock-bench sends to PostgreSQL beside the engine's own statements.

-- name: naive_acquire(name, owner, node, label, actor, lease)
-- A free row, or one whose lease is over, is taken; there are no tickets, no floor, no at-least time, and the
-- same owner is busy to itself, and a busy row is locked and written for.
INSERT INTO {{lock}} AS l (name, owner, node, label, actor, token, acquired_at, expires_at, lease_us)
SELECT :name::text, :owner::text, :node::text, :label::text, :actor::text, 1, n.now, n.now + :lease::bigint, :lease::bigint
  FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now OFFSET 0) AS n
ON CONFLICT (name) DO UPDATE SET
       token = l.token + 1, owner = excluded.owner, node = excluded.node, label = excluded.label, actor = excluded.actor,
       acquired_at = excluded.acquired_at, expires_at = excluded.expires_at, lease_us = excluded.lease_us
 WHERE l.owner IS NULL OR l.expires_at <= excluded.acquired_at
RETURNING l.token;

-- name: naive_release(name, owner, token)
UPDATE {{lock}} SET owner = NULL WHERE name = :name::text AND owner = :owner::text AND token = :token::bigint;

-- name: advisory_acquire(name)
SELECT 1 + length(pg_advisory_lock(hashtextextended(:name::text, 0))::text)::bigint;

-- name: advisory_release(name)
SELECT pg_advisory_unlock(hashtextextended(:name::text, 0));

-- name: read(name)
SELECT owner, token, expires_at FROM {{lock}} WHERE name = :name::text;

-- name: fill(prefix, first, count)
INSERT INTO {{lock}} (name, token)
SELECT :prefix::text || lpad(g::text, 9, '0'), 1
  FROM generate_series(:first::bigint, :first::bigint + :count::bigint - 1) AS g;

-- name: tidy()
VACUUM (ANALYZE) {{lock}};
