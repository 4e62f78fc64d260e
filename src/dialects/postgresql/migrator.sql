-- What the migrator asks of PostgreSQL: the history of the schema, what its tables are, what a role may, and what
-- grants that. DDL is transactional here: one transaction a version. Times are microseconds since the epoch, by the
-- database's clock.

-- name: relations(schema, lock, status, history)
-- What is there: the schema, the table, the view, the history. The catalog is readable for every role.
SELECT (SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = :schema::text),
       count(*) FILTER (WHERE c.relname = :lock::text),
       count(*) FILTER (WHERE c.relname = :status::text),
       count(*) FILTER (WHERE c.relname = :history::text)
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = :schema::text AND c.relname IN (:lock::text, :status::text, :history::text);

-- name: begin_reading()
-- Around questions alone, whose answers look the same whatever the defaults are.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL quote_all_identifiers = off;
SET LOCAL DateStyle = 'ISO, MDY';
SET LOCAL IntervalStyle = 'postgres';

-- name: end_reading()
ROLLBACK;

-- name: begin()
-- READ COMMITTED whatever the server's default: the history is read again after the lock was obtained.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL quote_all_identifiers = off;

-- name: commit()
COMMIT;

-- name: rollback()
ROLLBACK;

-- name: set_timeouts(lock_ms, statement_ms)
-- For this transaction only, so that it works behind a pooler. Who is gone without a word, or stopped, keeps what it has
-- locked no longer than a minute.
SELECT set_config('lock_timeout', (:lock_ms::bigint)::text, true),
       set_config('idle_in_transaction_session_timeout', '60s', true),
       set_config('statement_timeout', (:statement_ms::bigint)::text, true);

-- name: try_lock(key)
-- Bound to the transaction: it cannot leak, and nobody waits in the server.
SELECT pg_try_advisory_xact_lock(('x' || left(:key::text, 16))::bit(64)::bigint)::int::bigint;

-- name: lock_holder(key)
SELECT format('server process %s (%s, %s, for %s s)', a.pid, coalesce(nullif(a.application_name, ''), 'unnamed'),
              coalesce(host(a.client_addr), 'local'), extract(epoch FROM clock_timestamp() - a.xact_start)::bigint)
  FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
 WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
   AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
   AND (l.classid::bigint << 32 | l.objid::bigint) = ('x' || left(:key::text, 16))::bit(64)::bigint
 LIMIT 1;

-- name: create_schema()
CREATE SCHEMA {{schema}};

-- name: create_history()
CREATE TABLE {{history}} (
  version integer PRIMARY KEY CHECK (version > 0),
  name text NOT NULL,
  checksum text NOT NULL,
  state text NOT NULL CHECK (state IN ('running', 'applied', 'failed', 'baseline')),
  steps_done integer NOT NULL,
  steps_total integer NOT NULL,
  min_client text NOT NULL,
  started_at bigint NOT NULL,
  finished_at bigint,
  tool_version text NOT NULL,
  applied_by text NOT NULL,
  error text NOT NULL DEFAULT '',
  owner text,
  lease_until bigint NOT NULL DEFAULT 0,
  format integer NOT NULL DEFAULT 1
);

-- name: drop_history()
DROP TABLE {{history}};

-- name: read_history()
SELECT version::bigint, name, checksum, state, steps_done::bigint, steps_total::bigint, min_client, started_at, finished_at,
       tool_version, applied_by, error, owner,
       lease_until - {{now}}, format::bigint
  FROM {{history}} ORDER BY version;

-- name: insert_version(version, name, checksum, steps_total, min_client, tool_version, applied_by, owner, lease)
-- The primary key is the guard.
INSERT INTO {{history}} (version, name, checksum, state, steps_done, steps_total, min_client, started_at, tool_version,
                         applied_by, owner, lease_until)
SELECT :version::bigint::integer, :name::text, :checksum::text, 'running', 0, :steps_total::bigint::integer, :min_client::text, n.now,
       :tool_version::text, :applied_by::text, :owner::text, n.now + :lease::bigint
  FROM (SELECT {{now}} AS now) n;

-- name: take_version(version, steps_done, steps_total, tool_version, applied_by, owner, lease)
-- Unless another migrator is at work on it.
UPDATE {{history}}
   SET state = 'running', steps_done = :steps_done::bigint, steps_total = :steps_total::bigint, error = '',
       tool_version = :tool_version::text, applied_by = :applied_by::text, owner = :owner::text,
       started_at = {{now}}, finished_at = NULL,
       lease_until = {{now}} + :lease::bigint
 WHERE version = :version::bigint
   AND (state <> 'running' OR lease_until <= {{now}});

-- name: journal(version, owner, steps_done, lease)
-- Renews the migrator's lease too. No row: another migrator has taken over.
UPDATE {{history}}
   SET steps_done = :steps_done::bigint,
       lease_until = {{now}} + :lease::bigint
 WHERE version = :version::bigint AND owner = :owner::text AND state = 'running';

-- name: finish_version(version, owner)
UPDATE {{history}}
   SET state = 'applied', steps_done = steps_total, owner = NULL, lease_until = 0,
       finished_at = {{now}}
 WHERE version = :version::bigint AND owner = :owner::text AND state = 'running';

-- name: adopt_version(version, name, checksum, state, steps_total, min_client, owner)
-- The version is there without having been walked.
UPDATE {{history}}
   SET name = :name::text, checksum = :checksum::text, state = :state::text, steps_done = :steps_total::bigint, steps_total = :steps_total::bigint,
       min_client = :min_client::text, error = '', owner = NULL, lease_until = 0,
       finished_at = {{now}}
 WHERE version = :version::bigint AND owner = :owner::text AND state = 'running';

-- name: remove_version(version, owner)
DELETE FROM {{history}} WHERE version = :version::bigint AND owner = :owner::text AND state = 'running';

-- name: hold_table()
-- So that no lease begins between counting and dropping.
LOCK TABLE {{lock}} IN EXCLUSIVE MODE;

-- name: live_leases()
SELECT count(*) FROM {{lock}}
 WHERE name <> '' AND owner IS NOT NULL AND expires_at > {{now}};

-- name: lock_history_there(schema, lock_history)
-- Whether a history of the locks is kept (recording.sql): somebody else's table of that name is none.
SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
       JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = 'ended_at' AND NOT a.attisdropped
 WHERE n.nspname = :schema::text AND c.relname = :lock_history::text;

-- name: floor_row()
-- Every column of the tables, so that a missing one is noticed. Nobody waits for the floor row, or holds it by shares.
SELECT l.token, l.node, l.owner, l.mode, l.acquired_at, l.expires_at, l.reopens_at, l.lease_us, l.meta, l.label, l.actor,
       l.next_ticket, l.served_ticket, l.wanted_until, l.kept, l.ended_token, l.outcome, l.reason,
       w.owner, w.actor, w.node, w.label, w.mode, w.wants, w.ticket, w.since, w.expires_at, w.wants_until,
       h.owner, h.gate, h.token, h.mode, h.permits, h.permit_limit, h.node, h.label, h.actor, h.meta, h.acquired_at, h.expires_at,
       h.reopens_at, h.lease_us
  FROM {{lock}} l LEFT JOIN {{waiter}} w ON w.name = l.name LEFT JOIN {{holder}} h ON h.name = l.name WHERE l.name = '';

-- name: floors()
SELECT count(*) FROM {{lock}} WHERE name = '';

-- name: identity()
-- Whether the floor row says which installation this is.
SELECT count(*) FROM {{lock}} WHERE name = '' AND meta ~ '^[0-9a-f]{32}$';

-- name: make_floor()
-- Where it was lost, and with it what it was: above every token in the table, and above every one that was ever handed
-- out, as long as they were fewer than a million a second since 1970.
INSERT INTO {{lock}} (name, token)
SELECT '', greatest(coalesce(max(l.token), 0), {{now}}) FROM {{lock}} AS l
ON CONFLICT (name) DO NOTHING;

-- name: make_identity()
-- Where the floor row does not have one.
UPDATE {{lock}}
   SET meta = left(encode(sha256(convert_to(concat_ws('/', random(), random(), clock_timestamp(), pg_backend_pid(),
                                                      pg_postmaster_start_time(), txid_current(), current_database(),
                                                      inet_server_addr()), 'UTF8')), 'hex'), 32)
 WHERE name = '' AND meta !~ '^[0-9a-f]{32}$';

-- name: structure(schema, lock, status, waiter, holder)
-- What the tables and the view must be, one line each: "part: what it is", "part.column: what it is". Said so that the
-- same tables give the same lines, whatever their names, the server's version and the order of their columns.
WITH relation AS (
  SELECT c.oid, c.relkind, c.relpersistence,
         CASE c.relname WHEN :lock::text THEN 'lock' WHEN :status::text THEN 'status'
                        WHEN :waiter::text THEN 'waiter' ELSE 'holder' END AS part
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname = :schema::text AND c.relname IN (:lock::text, :status::text, :waiter::text, :holder::text))
SELECT line FROM (
  SELECT format('%s: %s%s', part, CASE relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' ELSE 'of kind ' || relkind::text END,
                CASE relpersistence WHEN 'u' THEN ', unlogged' WHEN 't' THEN ', temporary' ELSE '' END) AS line
    FROM relation
  UNION ALL
  SELECT format('%s.%s: ', r.part, a.attname)
         || CASE r.relkind WHEN 'v' THEN 'column' ELSE pg_catalog.format_type(a.atttypid, a.atttypmod) END
         || CASE WHEN a.attnotnull THEN ', not null' ELSE '' END
         || CASE WHEN r.relkind <> 'v' AND c.collname <> 'default' THEN ', collation ' || c.collname ELSE '' END
         || coalesce(', default ' || pg_catalog.pg_get_expr(d.adbin, d.adrelid), '')
    FROM relation r JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  UNION ALL
  SELECT format('%s: %s', r.part, pg_catalog.pg_get_constraintdef(c.oid))
    FROM relation r JOIN pg_catalog.pg_constraint c ON c.conrelid = r.oid AND c.contype IN ('p', 'u', 'c', 'f', 'x')
  UNION ALL
  SELECT format('%s: %s', r.part, regexp_replace(pg_catalog.pg_get_indexdef(i.indexrelid),
                                                 '^CREATE (UNIQUE )?INDEX .* USING ', '\1INDEX '))
    FROM relation r JOIN pg_catalog.pg_index i ON i.indrelid = r.oid
   WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_constraint c WHERE c.conindid = i.indexrelid)) lines;

-- name: details(schema, lock, status, waiter, holder)
-- All that the server says of the tables and the view, in its own words, one line each, in order.
WITH relation AS (
  SELECT c.oid, c.relname::text AS name, c.relkind, c.relpersistence, c.reloptions
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname = :schema::text AND c.relname IN (:lock::text, :status::text, :waiter::text, :holder::text))
SELECT line FROM (
  SELECT format('%s: kind %s, persistence %s, options %s', name, relkind, relpersistence,
                (SELECT string_agg(o, ' ' ORDER BY o) FROM unnest(reloptions) o)) AS line
    FROM relation
  UNION ALL
  SELECT format('%s.%s: column %s, %s%s%s%s', r.name, a.attname, a.attnum, pg_catalog.format_type(a.atttypid, a.atttypmod),
                CASE WHEN a.attnotnull THEN ' not null' ELSE '' END,
                coalesce(' collate ' || quote_ident(c.collname), ''),
                coalesce(' default ' || pg_catalog.pg_get_expr(d.adbin, d.adrelid), ''))
    FROM relation r JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  UNION ALL
  SELECT format('%s: constraint %s', r.name, pg_catalog.pg_get_constraintdef(c.oid))
    FROM relation r JOIN pg_catalog.pg_constraint c ON c.conrelid = r.oid
  UNION ALL
  SELECT format('%s: index %s', r.name, pg_catalog.pg_get_indexdef(i.indexrelid))
    FROM relation r JOIN pg_catalog.pg_index i ON i.indrelid = r.oid
  UNION ALL
  SELECT format('%s: view %s', r.name, pg_catalog.pg_get_viewdef(r.oid)) FROM relation r WHERE r.relkind = 'v') lines
 ORDER BY line COLLATE "C";

-- name: may_select_lock()
-- Nothing is read. Likewise all that follow: a statement that is only explained needs the rights of one that is run.
SELECT 1 FROM {{lock}} WHERE 1 = 0;

-- name: may_insert_lock()
EXPLAIN INSERT INTO {{lock}} (name, token) VALUES ('', 0);

-- name: may_update_lock()
EXPLAIN UPDATE {{lock}} SET expires_at = 0 WHERE 1 = 0;

-- name: may_delete_lock()
EXPLAIN DELETE FROM {{lock}} WHERE 1 = 0;

-- name: may_select_waiter()
SELECT 1 FROM {{waiter}} WHERE 1 = 0;

-- name: may_insert_waiter()
EXPLAIN INSERT INTO {{waiter}} (name, owner, mode, since, expires_at) VALUES ('', '', '', 0, 0);

-- name: may_update_waiter()
EXPLAIN UPDATE {{waiter}} SET expires_at = 0 WHERE 1 = 0;

-- name: may_delete_waiter()
EXPLAIN DELETE FROM {{waiter}} WHERE 1 = 0;

-- name: may_select_holder()
SELECT 1 FROM {{holder}} WHERE 1 = 0;

-- name: may_insert_holder()
EXPLAIN INSERT INTO {{holder}} (name, owner, gate, token) VALUES ('', '', '', 0);

-- name: may_update_holder()
EXPLAIN UPDATE {{holder}} SET expires_at = 0 WHERE 1 = 0;

-- name: may_delete_holder()
EXPLAIN DELETE FROM {{holder}} WHERE 1 = 0;

-- name: may_select_lock_history()
SELECT 1 FROM {{lock_history}} WHERE 1 = 0;

-- name: may_delete_lock_history()
EXPLAIN DELETE FROM {{lock_history}} WHERE 1 = 0;

-- name: may_select_status()
SELECT 1 FROM {{status}} WHERE 1 = 0;

-- name: may_select_history()
SELECT 1 FROM {{history}} WHERE 1 = 0;

-- name: grants_migrator(role)
-- Never run: printed for a person, and where a right is missing. Tables that are there already must belong to the role.
GRANT USAGE, CREATE ON SCHEMA {{schema}} TO :role;

-- name: grants_runtime(role)
GRANT USAGE ON SCHEMA {{schema}} TO :role;
GRANT SELECT, INSERT, UPDATE, DELETE ON {{lock}}, {{waiter}}, {{holder}} TO :role;
GRANT SELECT ON {{history}} TO :role;

-- name: grants_read_only(role)
GRANT USAGE ON SCHEMA {{schema}} TO :role;
GRANT SELECT ON {{lock}}, {{waiter}}, {{holder}}, {{status}}, {{history}} TO :role;

-- name: grants_history_runtime(role)
-- Where a history of the locks is kept. What writes it does so without a right of the role.
GRANT SELECT, DELETE ON {{lock_history}} TO :role;

-- name: grants_history_read_only(role)
GRANT SELECT ON {{lock_history}} TO :role;
