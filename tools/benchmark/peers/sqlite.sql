-- What dlock-bench sends to SQLite beside the engine's own statements.

-- name: naive_acquire(name, owner, node, label, actor, lease)
-- A free row, or one whose lease is over, is taken; there are no tickets, no floor, no at-least time, and the
-- same owner is busy to itself.
INSERT INTO {{lock}} AS l (name, owner, node, label, actor, token, acquired_at, expires_at, lease_us)
SELECT :name, :owner, :node, :label, :actor, 1, t.now, t.now + :lease, :lease
  FROM (SELECT CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER) * 1000 AS now) AS t WHERE true
ON CONFLICT (name) DO UPDATE SET
       token = l.token + 1, owner = excluded.owner, node = excluded.node, label = excluded.label, actor = excluded.actor,
       acquired_at = excluded.acquired_at, expires_at = excluded.expires_at, lease_us = excluded.lease_us
 WHERE l.owner IS NULL OR l.expires_at <= excluded.acquired_at
RETURNING token;

-- name: naive_release(name, owner, token)
UPDATE {{lock}} SET owner = NULL WHERE name = :name AND owner = :owner AND token = :token;

-- name: read(name)
SELECT owner, token, expires_at FROM {{lock}} WHERE name = :name;

-- name: fill(prefix, first, count)
WITH RECURSIVE n (i) AS (VALUES (:first) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :first + :count)
INSERT INTO {{lock}} (name, token) SELECT :prefix || printf('%09d', i), 1 FROM n;

-- name: tidy()
PRAGMA wal_checkpoint(TRUNCATE);
