-- What dlock-bench sends to MySQL and MariaDB beside the engine's own statements.

-- name: naive_acquire(name, owner, node, label, actor, lease)
-- A free row, or one whose lease is over, is taken; there are no tickets, no floor, no at-least time, and the
-- same owner is busy to itself, and a busy row is locked and written for. The answer is the insert id.
INSERT INTO {{lock}} (name, owner, node, label, actor, token, acquired_at, expires_at, lease_us)
VALUES (:name, :owner, :node, :label, :actor, LAST_INSERT_ID(1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :lease, :lease)
ON DUPLICATE KEY UPDATE
  token = IF(owner IS NULL OR expires_at <= VALUES(acquired_at), LAST_INSERT_ID(token + 1), token + LAST_INSERT_ID(0)),
  owner = IF(owner IS NULL OR expires_at <= VALUES(acquired_at), VALUES(owner), owner),
  node = IF(owner = VALUES(owner), VALUES(node), node),
  label = IF(owner = VALUES(owner), VALUES(label), label),
  actor = IF(owner = VALUES(owner), VALUES(actor), actor),
  acquired_at = IF(owner = VALUES(owner), VALUES(acquired_at), acquired_at),
  expires_at = IF(owner = VALUES(owner), VALUES(expires_at), expires_at),
  lease_us = IF(owner = VALUES(owner), VALUES(lease_us), lease_us);

-- name: naive_release(name, owner, token)
UPDATE {{lock}} SET owner = NULL WHERE name = :name AND owner = :owner AND token = :token;

-- name: getlock_acquire(name)
SELECT GET_LOCK(:name, 60);

-- name: getlock_release(name)
SELECT RELEASE_LOCK(:name);

-- name: read(name)
SELECT owner, token, expires_at FROM {{lock}} WHERE name = :name;

-- name: fill(prefix, first, count)
INSERT INTO {{lock}} (name, token)
SELECT CONCAT(:prefix, LPAD(:first + a.i + 10 * b.i + 100 * c.i + 1000 * d.i, 9, '0')), 1
  FROM (SELECT 0 AS i UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5
        UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9) AS a
 CROSS JOIN (SELECT 0 AS i UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5
        UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9) AS b
 CROSS JOIN (SELECT 0 AS i UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5
        UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9) AS c
 CROSS JOIN (SELECT 0 AS i UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5
        UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9) AS d
 WHERE a.i + 10 * b.i + 100 * c.i + 1000 * d.i < :count;

-- name: tidy()
ANALYZE TABLE {{lock}};
