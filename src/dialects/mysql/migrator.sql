-- This file knows what the migrator asks of MySQL and MariaDB. Each DDL commits by itself here: a version is walked
-- step by step, every step probed first, and the history keeps the place. Hence no begin and no commit.
-- Times are microseconds since the epoch, by the database's clock.

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

-- name: set_timeouts(lock_ms, statement_ms)
-- In whole seconds here, for metadata and rows. A statement's time is bounded by the client.
SET SESSION lock_wait_timeout = GREATEST(1, (:lock_ms + 999) DIV 1000),
            innodb_lock_wait_timeout = GREATEST(1, (:lock_ms + 999) DIV 1000);

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
       error, owner, lease_until - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), format
  FROM {{history}} ORDER BY version;

-- name: insert_version(version, name, checksum, steps_total, min_client, tool_version, applied_by, owner, lease)
-- The primary key is the guard.
INSERT INTO {{history}} (version, name, checksum, state, steps_done, steps_total, min_client, started_at, tool_version,
                         applied_by, owner, lease_until)
VALUES (:version, :name, :checksum, 'running', 0, :steps_total, :min_client,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), :tool_version, :applied_by, :owner,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :lease);

-- name: take_version(version, steps_done, steps_total, tool_version, applied_by, owner, lease)
-- Unless another migrator is at work on it. Assignments see columns already changed; none here reads one.
UPDATE {{history}}
   SET state = 'running', steps_done = :steps_done, steps_total = :steps_total, error = '', tool_version = :tool_version,
       applied_by = :applied_by, owner = :owner, finished_at = NULL,
       started_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
       lease_until = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :lease
 WHERE version = :version
   AND (state <> 'running' OR lease_until <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)));

-- name: journal(version, owner, steps_done, lease)
-- Renews the migrator's lease too. No row: another migrator has taken over.
UPDATE {{history}}
   SET steps_done = :steps_done, lease_until = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :lease
 WHERE version = :version AND owner = :owner AND state = 'running';

-- name: finish_version(version, owner)
UPDATE {{history}}
   SET state = 'applied', steps_done = steps_total, owner = NULL, lease_until = 0,
       finished_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
 WHERE version = :version AND owner = :owner AND state = 'running';

-- name: fail_version(version, owner, error)
-- Only where a step can stay behind: gives the version up, for the next run to resume.
UPDATE {{history}}
   SET state = 'failed', error = :error, owner = NULL, lease_until = 0,
       finished_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
 WHERE version = :version AND owner = :owner AND state = 'running';

-- name: remove_version(version, owner)
DELETE FROM {{history}} WHERE version = :version AND owner = :owner AND state = 'running';

-- name: live_leases()
SELECT count(*) FROM {{lock}}
 WHERE name <> '' AND owner IS NOT NULL AND expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));

-- name: floor_row()
-- Every column of both tables, so that a missing one is noticed. Nobody waits for the floor row.
SELECT l.token, l.node, l.owner, l.entries, l.acquired_at, l.expires_at, l.reopens_at, l.lease_us, l.meta, l.label, l.actor,
       l.next_ticket, l.served_ticket, l.wanted_until,
       w.owner, w.actor, w.node, w.label, w.mode, w.ticket, w.since, w.expires_at, w.wants_until
  FROM {{lock}} l LEFT JOIN {{waiter}} w ON w.name = l.name WHERE l.name = '';

-- name: verify(schema, lock, status, waiter)
-- What differs from the tables as they should be today; no row if nothing does.
-- Columns of the table of those who wait are named with it.
SELECT CONCAT('column ', IF(e.part = 'lock', '', CONCAT(:waiter, '.')), e.name, ' should be ', e.type, IF(e.nullable = 'NO', ' not null', ''), ' and is ',
              COALESCE(CONCAT(c.data_type, IF(c.is_nullable = 'NO', ' not null', '')), 'absent'))
  FROM (SELECT 'lock' AS part, 'name' AS name, 'varbinary' AS type, 'NO' AS nullable
        UNION ALL SELECT 'lock', 'node', 'varchar', 'NO' UNION ALL SELECT 'lock', 'owner', 'char', 'YES'
        UNION ALL SELECT 'lock', 'entries', 'varchar', 'NO' UNION ALL SELECT 'lock', 'token', 'bigint', 'NO'
        UNION ALL SELECT 'lock', 'acquired_at', 'bigint', 'NO' UNION ALL SELECT 'lock', 'expires_at', 'bigint', 'NO'
        UNION ALL SELECT 'lock', 'reopens_at', 'bigint', 'NO' UNION ALL SELECT 'lock', 'lease_us', 'bigint', 'NO'
        UNION ALL SELECT 'lock', 'meta', 'varchar', 'NO' UNION ALL SELECT 'lock', 'label', 'varchar', 'NO'
        UNION ALL SELECT 'lock', 'actor', 'char', 'NO' UNION ALL SELECT 'lock', 'next_ticket', 'bigint', 'NO'
        UNION ALL SELECT 'lock', 'served_ticket', 'bigint', 'NO' UNION ALL SELECT 'lock', 'wanted_until', 'bigint', 'NO'
        UNION ALL SELECT 'waiter', 'name', 'varbinary', 'NO' UNION ALL SELECT 'waiter', 'owner', 'char', 'NO'
        UNION ALL SELECT 'waiter', 'actor', 'char', 'NO' UNION ALL SELECT 'waiter', 'node', 'varchar', 'NO'
        UNION ALL SELECT 'waiter', 'label', 'varchar', 'NO' UNION ALL SELECT 'waiter', 'mode', 'varchar', 'NO'
        UNION ALL SELECT 'waiter', 'ticket', 'bigint', 'NO' UNION ALL SELECT 'waiter', 'since', 'bigint', 'NO'
        UNION ALL SELECT 'waiter', 'expires_at', 'bigint', 'NO'
        UNION ALL SELECT 'waiter', 'wants_until', 'bigint', 'NO') e
  LEFT JOIN information_schema.columns c
         ON c.table_schema = :schema AND c.table_name = IF(e.part = 'lock', :lock, :waiter)
        AND CONVERT(c.column_name USING utf8mb4) COLLATE utf8mb4_bin = e.name
 WHERE (c.data_type IS NULL OR CONVERT(c.data_type USING utf8mb4) COLLATE utf8mb4_bin <> e.type
        OR CONVERT(c.is_nullable USING utf8mb4) COLLATE utf8mb4_bin <> e.nullable)
   AND (e.part = 'lock' OR EXISTS (SELECT 1 FROM information_schema.tables
                                    WHERE table_schema = :schema AND table_name = :waiter))
UNION ALL
SELECT CONCAT('the table ', :waiter, ' is missing') FROM (SELECT 1) one
 WHERE NOT EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema = :schema AND table_name = :waiter)
UNION ALL
SELECT CONCAT('column ', IF(table_name = :lock, '', CONCAT(:waiter, '.')), CONVERT(column_name USING utf8mb4),
              ' should be absent')
  FROM information_schema.columns
 WHERE (table_schema = :schema AND table_name = :lock
        AND column_name NOT IN ('name', 'node', 'owner', 'entries', 'token', 'acquired_at', 'expires_at', 'reopens_at',
                                'lease_us', 'meta', 'label', 'actor', 'next_ticket', 'served_ticket', 'wanted_until'))
    OR (table_schema = :schema AND table_name = :waiter
        AND column_name NOT IN ('name', 'owner', 'actor', 'node', 'label', 'mode', 'ticket', 'since', 'expires_at',
                                'wants_until'))
UNION ALL
SELECT CONCAT('column ', IF(table_name = :lock, '', CONCAT(:waiter, '.')), 'name should hold 255 bytes and holds ',
              character_octet_length)
  FROM information_schema.columns
 WHERE table_schema = :schema AND table_name IN (:lock, :waiter) AND column_name = 'name' AND character_octet_length <> 255
UNION ALL
SELECT CONCAT('the engine of the table', IF(table_name = :lock, '', CONCAT(' ', :waiter)), ' should be InnoDB and is ', engine)
  FROM information_schema.tables
 WHERE table_schema = :schema AND table_name IN (:lock, :waiter) AND engine <> 'InnoDB'
UNION ALL
SELECT CONCAT('the primary key of the table ', :waiter, ' should be (name, owner)')
  FROM information_schema.tables t
 WHERE t.table_schema = :schema AND t.table_name = :waiter
   AND COALESCE((SELECT GROUP_CONCAT(s.column_name ORDER BY s.seq_in_index) FROM information_schema.statistics s
                  WHERE s.table_schema = :schema AND s.table_name = :waiter AND s.index_name = 'PRIMARY'
                    AND s.sub_part IS NULL), '') <> 'name,owner'
UNION ALL
SELECT 'the primary key should be (name)' FROM (SELECT 1) one
 WHERE (SELECT GROUP_CONCAT(column_name) FROM information_schema.statistics
         WHERE table_schema = :schema AND table_name = :lock AND index_name = 'PRIMARY' AND sub_part IS NULL) IS NULL
    OR (SELECT GROUP_CONCAT(column_name) FROM information_schema.statistics
         WHERE table_schema = :schema AND table_name = :lock AND index_name = 'PRIMARY' AND sub_part IS NULL) <> 'name'
UNION ALL
SELECT CONCAT('the view ', :status, ' is missing') FROM (SELECT 1) one
 WHERE NOT EXISTS (SELECT 1 FROM information_schema.tables
                    WHERE table_schema = :schema AND table_name = :status AND table_type = 'VIEW');

-- name: structure(schema, lock, status, waiter)
-- Everything that makes the tables and the view what they are, one line each, in order.
SELECT line FROM (
  SELECT CONVERT(CONCAT_WS(' ', table_name, table_type, engine, row_format, table_collation, create_options) USING utf8mb4) AS line
    FROM information_schema.tables WHERE table_schema = :schema AND table_name IN (:lock, :status, :waiter)
  UNION ALL
  SELECT CONVERT(CONCAT_WS(' ', table_name, 'column', ordinal_position, column_name, column_type, collation_name,
                           IF(is_nullable = 'NO', 'not null', 'null'), CONCAT('default ', column_default), extra) USING utf8mb4)
    FROM information_schema.columns WHERE table_schema = :schema AND table_name IN (:lock, :status, :waiter)
  UNION ALL
  SELECT CONVERT(CONCAT_WS(' ', table_name, 'index', index_name, seq_in_index, column_name, sub_part,
                           IF(non_unique, 'not unique', 'unique'), index_type) USING utf8mb4)
    FROM information_schema.statistics WHERE table_schema = :schema AND table_name IN (:lock, :status, :waiter)
  UNION ALL
  SELECT CONVERT(CONCAT_WS(' ', table_name, 'view', security_type,
                           REPLACE(view_definition, CONCAT('`', :schema, '`.'), '')) USING utf8mb4)
    FROM information_schema.views WHERE table_schema = :schema AND table_name IN (:lock, :status, :waiter)) found
 ORDER BY line;

-- name: needed_to_migrate()
-- Never run: printed where a right is missing.
GRANT CREATE, ALTER, DROP, INDEX, CREATE VIEW, SHOW VIEW, SELECT, INSERT, UPDATE, DELETE ON {{schema}}.* TO the user;

-- name: needed_to_read()
-- Never run: printed where a right is missing.
GRANT SELECT ON {{lock}} TO the user; GRANT SELECT ON {{waiter}} TO the user; GRANT SELECT ON {{history}} TO the user;
