-- What is asked of the history of the locks on PostgreSQL, where one is kept. schema/README.md says what the
-- columns mean; recording.sql beside this one how its rows come about. Nothing here waits for whoever writes one.

-- name: history_kept(schema, lock, holder, lock_history, family)
-- Whether its table is there, and each of the triggers that write it is at work.
SELECT (EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
                 WHERE n.nspname = :schema::text AND c.relname = :lock_history::text AND c.relkind = 'r')
        AND (SELECT count(*) FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
                    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
              WHERE n.nspname = :schema::text AND c.relname IN (:lock::text, :holder::text) AND t.tgenabled IN ('O', 'A')
                AND starts_with(t.tgname::text, :family::text)) >= 3)::int::bigint;

-- name: history_of(name, limit)
-- The newest grants first.
SELECT e.mode, e.token, e.owner, e.node, e.label, e.acquired_at, e.ended_at, e.outcome, e.reason
  FROM {{lock_history}} AS e WHERE e.name = :name::text ORDER BY e.token DESC, e.id DESC LIMIT :limit::bigint;

-- name: history_above(keep)
-- The newest row of those that are more than so many.
SELECT e.id FROM {{lock_history}} AS e ORDER BY e.id DESC LIMIT 1 OFFSET :keep::bigint;

-- name: history_count(after, last, batch)
-- How many rows the next piece has, and which is its last.
SELECT count(*), coalesce(max(p.id), 0)
  FROM (SELECT e.id FROM {{lock_history}} AS e WHERE e.id > :after::bigint AND e.id <= :last::bigint ORDER BY e.id LIMIT :batch::bigint) AS p;

-- name: history_trim(last, batch)
DELETE FROM {{lock_history}} AS e
 WHERE e.id IN (SELECT o.id FROM {{lock_history}} AS o WHERE o.id <= :last::bigint ORDER BY o.id LIMIT :batch::bigint);
