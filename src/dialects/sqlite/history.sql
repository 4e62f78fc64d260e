-- What is asked of the history of the locks on SQLite, where one is kept. schema/README.md says what the columns
-- mean; recording.sql beside this one how its rows come about.

-- name: history_kept(schema, lock, holder, lock_history, family)
-- Whether its table is there, and each of the triggers that write it.
SELECT (SELECT count(*) FROM main.sqlite_master WHERE type = 'table' AND name = :lock_history) = 1
       AND (SELECT count(*) FROM main.sqlite_master
             WHERE type = 'trigger' AND tbl_name IN (:lock, :holder) AND substr(name, 1, length(:family)) = :family) >= 5
       AND :schema = 'main';

-- name: history_of(name, limit)
-- The newest grants first.
SELECT mode, token, owner, node, label, acquired_at, ended_at, outcome, reason
  FROM {{lock_history}} WHERE name = :name ORDER BY token DESC, id DESC LIMIT :limit;

-- name: history_above(keep)
-- The newest row of those that are more than so many.
SELECT id FROM {{lock_history}} ORDER BY id DESC LIMIT 1 OFFSET :keep;

-- name: history_count(after, last, batch)
-- How many rows the next piece has, and which is its last.
SELECT count(*), coalesce(max(p.id), 0) FROM (SELECT id FROM {{lock_history}} WHERE id > :after AND id <= :last ORDER BY id LIMIT :batch) AS p;

-- name: history_trim(last, batch)
DELETE FROM {{lock_history}}
 WHERE id IN (SELECT o.id FROM {{lock_history}} AS o WHERE o.id <= :last ORDER BY o.id LIMIT :batch);
