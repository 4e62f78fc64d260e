-- What is asked of the history of the locks on MySQL and MariaDB, where one is kept. schema/README.md says what
-- the columns mean; recording.sql beside this one how its rows come about. Nothing here waits for whoever writes one.

-- name: history_kept(schema, lock, holder, lock_history, family) -> fresh
-- Whether its table is there, and all that writes it was made: its comment says so, since the catalog shows triggers only to
-- who may make them.
SELECT COUNT(*) FROM information_schema.tables
 WHERE table_schema = :schema AND table_name = :lock_history AND table_comment LIKE CONCAT('written by ', :family, '%');

-- name: history_of(name, limit) -> fresh
-- The newest grants first.
SELECT mode, token, owner, node, label, acquired_at, ended_at, outcome, reason
  FROM {{lock_history}} WHERE name = :name ORDER BY token DESC, id DESC LIMIT :limit;

-- name: history_above(keep) -> fresh
-- The newest row of those that are more than so many.
SELECT id FROM {{lock_history}} ORDER BY id DESC LIMIT :keep, 1;

-- name: history_count(after, last, batch)
-- How many rows the next piece has, and which is its last.
SELECT COUNT(*), COALESCE(MAX(p.id), 0) FROM (SELECT id FROM {{lock_history}} WHERE id > :after AND id <= :last ORDER BY id LIMIT :batch) p;

-- name: history_trim(last, batch)
-- As remove_idle: what a transaction has written and not committed yet is left for another time, and not waited for.
DELETE e
  FROM (SELECT o.id FROM {{lock_history}} o FORCE INDEX (PRIMARY)
         WHERE o.id <= :last ORDER BY o.id LIMIT :batch FOR UPDATE SKIP LOCKED) old
  STRAIGHT_JOIN {{lock_history}} e FORCE INDEX (PRIMARY) ON e.id = old.id;
