-- What the migrator asks of MySQL and MariaDB: the history of the schema, what its tables are, what a role may, what
-- grants that. Each DDL commits by itself: a version is walked step by step, every step probed first, and the history
-- keeps the place. Hence no begin and no commit. Times are microseconds since the epoch, by the database's clock.

-- name: relations(schema, lock, status, history)
-- What is there: the schema, the table, the view, the history. Only what the role may see.
SELECT (SELECT count(*) FROM information_schema.schemata WHERE schema_name = :schema),
       (SELECT count(*) FROM information_schema.tables WHERE table_schema = :schema AND table_name = :lock),
       (SELECT count(*) FROM information_schema.tables WHERE table_schema = :schema AND table_name = :status),
       (SELECT count(*) FROM information_schema.tables WHERE table_schema = :schema AND table_name = :history);

-- name: begin_reading()
-- Around questions alone.
START TRANSACTION READ ONLY;

-- name: end_reading()
ROLLBACK;

-- name: settings()
-- In front of a script for people, whose client may have defaults under which it means something else, or stores
-- nothing.
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO', autocommit = 1,
            sql_safe_updates = 0;
SET SESSION TRANSACTION READ WRITE;

-- name: set_timeouts(lock_ms, statement_ms)
-- In whole seconds here, for metadata and rows. A statement's time is bounded by the client, and what it leaves behind
-- then must not go on waiting. Who is gone without a word, or stopped, keeps the migrators' lock no longer than a minute.
SET SESSION lock_wait_timeout = GREATEST(1, (IF(:statement_ms > 0, LEAST(:lock_ms + 0, :statement_ms + 0), :lock_ms) + 999) DIV 1000),
            innodb_lock_wait_timeout = GREATEST(1, (IF(:statement_ms > 0, LEAST(:lock_ms + 0, :statement_ms + 0), :lock_ms) + 999) DIV 1000),
            wait_timeout = 60, sql_safe_updates = 0;

-- name: try_lock(key)
-- One second at a time. Local to a node of a cluster: the history's primary key is the guard that counts there.
SELECT GET_LOCK(CONCAT('dlock:', :key), 1);

-- name: unlock(key)
SELECT RELEASE_LOCK(CONCAT('dlock:', :key));

-- name: lock_holder(key)
SELECT CONCAT('connection ', IS_USED_LOCK(CONCAT('dlock:', :key)));

-- name: create_schema()
CREATE DATABASE IF NOT EXISTS {{schema}} CHARACTER SET utf8mb4;

-- name: create_history()
CREATE TABLE IF NOT EXISTS {{history}} (
  version INT NOT NULL PRIMARY KEY,
  name VARCHAR(255) NOT NULL,
  checksum VARCHAR(80) NOT NULL,
  state VARCHAR(16) NOT NULL,
  steps_done INT NOT NULL,
  steps_total INT NOT NULL,
  min_client VARCHAR(32) NOT NULL,
  started_at BIGINT NOT NULL,
  finished_at BIGINT NULL,
  tool_version VARCHAR(32) NOT NULL,
  applied_by VARCHAR(255) NOT NULL,
  error VARCHAR(2000) NOT NULL DEFAULT '',
  owner CHAR(32) NULL,
  lease_until BIGINT NOT NULL DEFAULT 0,
  format INT NOT NULL DEFAULT 1
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- name: drop_history()
DROP TABLE {{history}};

-- name: read_history()
SELECT version, name, checksum, state, steps_done, steps_total, min_client, started_at, finished_at, tool_version, applied_by,
       error, owner, lease_until - {{now}}, format
  FROM {{history}} ORDER BY version;

-- name: insert_version(version, name, checksum, steps_total, min_client, tool_version, applied_by, owner, lease)
-- The primary key is the guard.
INSERT INTO {{history}} (version, name, checksum, state, steps_done, steps_total, min_client, started_at, tool_version,
                         applied_by, owner, lease_until)
VALUES (:version, :name, :checksum, 'running', 0, :steps_total, :min_client,
        {{now}}, :tool_version, :applied_by, :owner,
        {{now}} + :lease);

-- name: take_version(version, steps_done, steps_total, tool_version, applied_by, owner, lease)
-- Unless another migrator is at work on it. Assignments see columns already changed; none here reads one.
UPDATE {{history}}
   SET state = 'running', steps_done = :steps_done, steps_total = :steps_total, error = '', tool_version = :tool_version,
       applied_by = :applied_by, owner = :owner, finished_at = NULL,
       started_at = {{now}},
       lease_until = {{now}} + :lease
 WHERE version = :version
   AND (state <> 'running' OR lease_until <= {{now}});

-- name: journal(version, owner, steps_done, lease)
-- Renews the migrator's lease too. No row: another migrator has taken over.
UPDATE {{history}}
   SET steps_done = :steps_done, lease_until = {{now}} + :lease
 WHERE version = :version AND owner = :owner AND state = 'running';

-- name: finish_version(version, owner)
UPDATE {{history}}
   SET state = 'applied', steps_done = steps_total, owner = NULL, lease_until = 0,
       finished_at = {{now}}
 WHERE version = :version AND owner = :owner AND state = 'running';

-- name: fail_version(version, owner, error)
-- Only where a step can stay behind: gives the version up, for the next run to resume.
UPDATE {{history}}
   SET state = 'failed', error = :error, owner = NULL, lease_until = 0,
       finished_at = {{now}}
 WHERE version = :version AND owner = :owner AND state = 'running';

-- name: adopt_version(version, name, checksum, state, steps_total, min_client, owner)
-- The version is there without having been walked.
UPDATE {{history}}
   SET name = :name, checksum = :checksum, state = :state, steps_done = :steps_total, steps_total = :steps_total,
       min_client = :min_client, error = '', owner = NULL, lease_until = 0,
       finished_at = {{now}}
 WHERE version = :version AND owner = :owner AND state = 'running';

-- name: remove_version(version, owner)
DELETE FROM {{history}} WHERE version = :version AND owner = :owner AND state = 'running';

-- name: live_leases()
SELECT count(*) FROM {{lock}}
 WHERE name <> '' AND owner IS NOT NULL AND expires_at > {{now}};

-- name: triggers_seen(schema, lock, holder)
-- Whether this role is shown triggers, as far as can be told: not if it may make them by a role that it was granted.
SELECT EXISTS (SELECT * FROM information_schema.user_privileges p WHERE p.privilege_type = 'TRIGGER' AND p.grantee = me.grantee)
    OR EXISTS (SELECT * FROM information_schema.schema_privileges p
                WHERE p.privilege_type = 'TRIGGER' AND p.grantee = me.grantee AND :schema LIKE p.table_schema)
    OR (SELECT COUNT(*) FROM information_schema.table_privileges p
         WHERE p.privilege_type = 'TRIGGER' AND p.grantee = me.grantee AND p.table_schema = :schema
           AND p.table_name IN (:lock, :holder)) = 2
  FROM (SELECT CONCAT('''', LEFT(u, CHAR_LENGTH(u) - CHAR_LENGTH(SUBSTRING_INDEX(u, '@', -1)) - 1), '''@''',
                      SUBSTRING_INDEX(u, '@', -1), '''') AS grantee
          FROM (SELECT CURRENT_USER() AS u) a) me;

-- name: lock_history_there(schema, lock_history)
-- Whether a history of the locks is kept (recording.sql): somebody else's table of that name is none.
SELECT count(*) FROM information_schema.columns
 WHERE table_schema = :schema AND table_name = :lock_history AND column_name = 'ended_at';

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
SELECT count(*) FROM {{lock}} WHERE name = '' AND meta REGEXP '^[0-9a-f]{32}$';

-- name: make_floor()
-- Where it was lost, and with it what it was: above every token in the table, and above every one that was ever handed
-- out, as long as they were fewer than a million a second since 1970.
INSERT INTO {{lock}} (name, token)
SELECT '', GREATEST(COALESCE(MAX(l.token), 0), {{now}}) FROM {{lock}} l
ON DUPLICATE KEY UPDATE token = {{lock}}.token;

-- name: doubt_tokens()
-- Where the floor row was lost, rows may have come from a backup: their next tokens have to be above the floor. Tickets that
-- were served are in the way no longer than the rows of those who waited last.
UPDATE {{lock}} SET served_ticket = 0 WHERE served_ticket > 0;

-- name: make_identity()
-- Where the floor row does not have one.
UPDATE {{lock}}
   SET meta = LEFT(SHA2(CONCAT_WS('/', UUID(), RAND(), RAND(), UTC_TIMESTAMP(6), CONNECTION_ID(), @@hostname, @@port,
                                  @@server_id), 256), 32)
 WHERE name = '' AND meta NOT REGEXP '^[0-9a-f]{32}$';

-- name: structure(schema, lock, status, waiter, holder)
-- What the tables and the view must be, one line each: "part: what it is", "part.column: what it is". Said so that the
-- same tables give the same lines, whatever their names, the server's version and the order of their columns, and in
-- every sql_mode: a CONCAT of NULL is not always NULL. A list of names finds those that differ from them in case only,
-- which are other tables unless the server holds them to be the same.
SELECT line FROM (
  SELECT CONVERT(CONCAT(CASE table_name WHEN :lock THEN 'lock' WHEN :status THEN 'status' WHEN :waiter THEN 'waiter'
                             ELSE 'holder' END, ': ',
                        CASE table_type WHEN 'BASE TABLE' THEN 'table' ELSE LOWER(table_type) END,
                        CASE WHEN engine <> 'InnoDB' THEN CONCAT(', engine ', engine) ELSE '' END) USING utf8mb4) AS line
    FROM information_schema.tables WHERE table_schema = :schema AND table_name IN (:lock, :status, :waiter, :holder)
     AND (@@lower_case_table_names <> 0 OR CAST(table_name AS BINARY) IN (:lock, :status, :waiter, :holder))
  UNION ALL
  SELECT CONVERT(CONCAT(CASE table_name WHEN :lock THEN 'lock' WHEN :status THEN 'status' WHEN :waiter THEN 'waiter'
                             ELSE 'holder' END,
                        '.', column_name, ': ',
                        CASE WHEN table_name = :status THEN 'column' ELSE CONCAT(
                          data_type, IF(character_maximum_length IS NULL, '', CONCAT('(', character_maximum_length, ')')),
                          CASE WHEN column_type LIKE '%unsigned%' THEN ' unsigned' ELSE '' END,
                          CASE is_nullable WHEN 'NO' THEN ', not null' ELSE '' END,
                          IF(collation_name IS NULL, '', CONCAT(', collation ', collation_name)),
                          CASE WHEN column_default IS NULL OR column_default = 'NULL' THEN ''
                               ELSE CONCAT(', default ''', TRIM(BOTH '''' FROM column_default), '''') END) END)
                 USING utf8mb4)
    FROM information_schema.columns WHERE table_schema = :schema AND table_name IN (:lock, :status, :waiter, :holder)
     AND (@@lower_case_table_names <> 0 OR CAST(table_name AS BINARY) IN (:lock, :status, :waiter, :holder))
  UNION ALL
  SELECT CONVERT(CONCAT(CASE table_name WHEN :lock THEN 'lock' WHEN :status THEN 'status' WHEN :waiter THEN 'waiter'
                             ELSE 'holder' END, ': ',
                        CASE WHEN index_name = 'PRIMARY' THEN 'primary key'
                             WHEN MIN(non_unique) = 0 THEN 'unique index' ELSE 'index' END,
                        ' (', GROUP_CONCAT(CONCAT(column_name, IF(sub_part IS NULL, '', CONCAT('(', sub_part, ')')))
                                           ORDER BY seq_in_index SEPARATOR ', '), ')') USING utf8mb4)
    FROM information_schema.statistics WHERE table_schema = :schema AND table_name IN (:lock, :status, :waiter, :holder)
     AND (@@lower_case_table_names <> 0 OR CAST(table_name AS BINARY) IN (:lock, :status, :waiter, :holder))
   GROUP BY table_name, index_name) found;

-- name: details(schema, lock, status, waiter, holder)
-- All that the server says of the tables and the view, in its own words, one line each, in order.
SELECT line FROM (
  SELECT CONVERT(CONCAT_WS(' ', table_name, table_type, engine, row_format, table_collation, create_options) USING utf8mb4) AS line
    FROM information_schema.tables WHERE table_schema = :schema AND table_name IN (:lock, :status, :waiter, :holder)
     AND (@@lower_case_table_names <> 0 OR CAST(table_name AS BINARY) IN (:lock, :status, :waiter, :holder))
  UNION ALL
  SELECT CONVERT(CONCAT_WS(' ', table_name, 'column', ordinal_position, column_name, column_type, collation_name,
                           IF(is_nullable = 'NO', 'not null', 'null'),
                           IF(column_default IS NULL, NULL, CONCAT('default ', column_default)), extra) USING utf8mb4)
    FROM information_schema.columns WHERE table_schema = :schema AND table_name IN (:lock, :status, :waiter, :holder)
     AND (@@lower_case_table_names <> 0 OR CAST(table_name AS BINARY) IN (:lock, :status, :waiter, :holder))
  UNION ALL
  SELECT CONVERT(CONCAT_WS(' ', table_name, 'index', index_name, seq_in_index, column_name, sub_part,
                           IF(non_unique, 'not unique', 'unique'), index_type) USING utf8mb4)
    FROM information_schema.statistics WHERE table_schema = :schema AND table_name IN (:lock, :status, :waiter, :holder)
     AND (@@lower_case_table_names <> 0 OR CAST(table_name AS BINARY) IN (:lock, :status, :waiter, :holder))
  UNION ALL
  SELECT CONVERT(CONCAT_WS(' ', table_name, 'view', security_type,
                           REPLACE(view_definition, CONCAT('`', :schema, '`.'), '')) USING utf8mb4)
    FROM information_schema.views WHERE table_schema = :schema AND table_name IN (:lock, :status, :waiter, :holder)
     AND (@@lower_case_table_names <> 0 OR CAST(table_name AS BINARY) IN (:lock, :status, :waiter, :holder))) found
 ORDER BY line;

-- name: may_see_status()
-- The catalog shows a role only what it has some right to.
SELECT 1 FROM {{status}} WHERE 1 = 0;

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
-- Never run: printed for a person, and where a right is missing. CREATE lets the rest be granted before there is a table.
GRANT CREATE, ALTER, DROP, SELECT, INSERT, UPDATE ON {{lock}} TO :role;
GRANT CREATE, DROP, SELECT ON {{waiter}} TO :role;
GRANT CREATE, DROP, SELECT ON {{holder}} TO :role;
GRANT CREATE, CREATE VIEW, DROP, SELECT ON {{status}} TO :role;
GRANT CREATE, DROP, SELECT, INSERT, UPDATE, DELETE ON {{history}} TO :role;
GRANT CREATE, SELECT ON {{lock_history}} TO :role;

-- name: grants_runtime(role)
GRANT SELECT, INSERT, UPDATE, DELETE ON {{lock}} TO :role;
GRANT SELECT, INSERT, UPDATE, DELETE ON {{waiter}} TO :role;
GRANT SELECT, INSERT, UPDATE, DELETE ON {{holder}} TO :role;
GRANT SELECT ON {{history}} TO :role;

-- name: grants_read_only(role)
GRANT SELECT ON {{lock}} TO :role;
GRANT SELECT ON {{waiter}} TO :role;
GRANT SELECT ON {{holder}} TO :role;
GRANT SELECT ON {{status}} TO :role;
GRANT SELECT ON {{history}} TO :role;

-- name: grants_history_runtime(role)
-- Where a history of the locks is kept. What writes it does so without a right of the role.
GRANT SELECT, DELETE ON {{lock_history}} TO :role;

-- name: grants_history_read_only(role)
GRANT SELECT ON {{lock_history}} TO :role;
