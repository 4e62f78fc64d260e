-- This file knows what the migrator asks of SQLite. DDL is transactional here, and BEGIN IMMEDIATE is the lock.
-- Times are microseconds since the epoch, by the host's clock.

-- name: relations(schema, lock, status, history)
-- What is there: the schema (a file has one, "main"), the table, the view, the history.
SELECT :schema = 'main',
       count(*) FILTER (WHERE name = :lock), count(*) FILTER (WHERE name = :status), count(*) FILTER (WHERE name = :history)
  FROM main.sqlite_master WHERE :schema = 'main' AND type IN ('table', 'view') AND name IN (:lock, :status, :history);

-- name: begin_reading()
-- Around questions alone.
BEGIN;

-- name: end_reading()
ROLLBACK;

-- name: begin()
BEGIN IMMEDIATE;

-- name: commit()
COMMIT;

-- name: rollback()
ROLLBACK;

-- name: create_history()
CREATE TABLE {{history}} (
  version INTEGER PRIMARY KEY CHECK (version > 0),
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running', 'applied', 'failed', 'baseline')),
  steps_done INTEGER NOT NULL,
  steps_total INTEGER NOT NULL,
  min_client TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  finished_at INTEGER,
  tool_version TEXT NOT NULL,
  applied_by TEXT NOT NULL,
  error TEXT NOT NULL DEFAULT '',
  owner TEXT,
  lease_until INTEGER NOT NULL DEFAULT 0,
  format INTEGER NOT NULL DEFAULT 1
);

-- name: drop_history()
DROP TABLE {{history}};

-- name: read_history()
SELECT version, name, checksum, state, steps_done, steps_total, min_client, started_at, finished_at, tool_version, applied_by,
       error, owner,
       lease_until - (strftime('%s', 'now') * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000), format
  FROM {{history}} ORDER BY version;

-- name: insert_version(version, name, checksum, steps_total, min_client, tool_version, applied_by, owner, lease)
INSERT INTO {{history}} (version, name, checksum, state, steps_done, steps_total, min_client, started_at, tool_version,
                         applied_by, owner, lease_until)
SELECT :version, :name, :checksum, 'running', 0, :steps_total, :min_client, n.now, :tool_version, :applied_by, :owner,
       n.now + :lease
  FROM (SELECT strftime('%s', 'now') * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 AS now) n;

-- name: take_version(version, steps_done, steps_total, tool_version, applied_by, owner, lease)
-- Unless another migrator is at work on it.
UPDATE {{history}}
   SET state = 'running', steps_done = :steps_done, steps_total = :steps_total, error = '', tool_version = :tool_version,
       applied_by = :applied_by, owner = :owner, finished_at = NULL,
       started_at = strftime('%s', 'now') * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000,
       lease_until = strftime('%s', 'now') * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 + :lease
 WHERE version = :version
   AND (state <> 'running'
        OR lease_until <= strftime('%s', 'now') * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000);

-- name: journal(version, owner, steps_done, lease)
-- Renews the migrator's lease too. No row: another migrator has taken over.
UPDATE {{history}}
   SET steps_done = :steps_done,
       lease_until = strftime('%s', 'now') * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 + :lease
 WHERE version = :version AND owner = :owner AND state = 'running';

-- name: finish_version(version, owner)
UPDATE {{history}}
   SET state = 'applied', steps_done = steps_total, owner = NULL, lease_until = 0,
       finished_at = strftime('%s', 'now') * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
 WHERE version = :version AND owner = :owner AND state = 'running';

-- name: remove_version(version, owner)
DELETE FROM {{history}} WHERE version = :version AND owner = :owner AND state = 'running';

-- name: live_leases()
SELECT count(*) FROM {{lock}}
 WHERE name <> '' AND owner IS NOT NULL
   AND expires_at > strftime('%s', 'now') * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000;

-- name: floor_row()
-- Every column of both tables, so that a missing one is noticed. Nobody waits for the floor row.
SELECT l.token, l.node, l.owner, l.entries, l.acquired_at, l.expires_at, l.reopens_at, l.lease_us, l.meta, l.label, l.actor,
       l.next_ticket, l.served_ticket, l.wanted_until,
       w.owner, w.actor, w.node, w.label, w.mode, w.ticket, w.since, w.expires_at, w.wants_until
  FROM {{lock}} l LEFT JOIN {{waiter}} w ON w.name = l.name WHERE l.name = '';

-- name: verify(schema, lock, status, waiter)
-- What differs from the tables as they should be today; no row if nothing does.
-- Columns of the table of those who wait are named with it.
WITH expected (part, name, type, required, key) AS (VALUES
  ('', 'name', 'TEXT', 1, 1), ('', 'node', 'TEXT', 1, 0), ('', 'owner', 'TEXT', 0, 0), ('', 'entries', 'TEXT', 1, 0),
  ('', 'token', 'INTEGER', 1, 0), ('', 'acquired_at', 'INTEGER', 1, 0), ('', 'expires_at', 'INTEGER', 1, 0),
  ('', 'reopens_at', 'INTEGER', 1, 0), ('', 'lease_us', 'INTEGER', 1, 0), ('', 'meta', 'TEXT', 1, 0),
  ('', 'label', 'TEXT', 1, 0), ('', 'actor', 'TEXT', 1, 0), ('', 'next_ticket', 'INTEGER', 1, 0),
  ('', 'served_ticket', 'INTEGER', 1, 0), ('', 'wanted_until', 'INTEGER', 1, 0),
  (:waiter || '.', 'name', 'TEXT', 1, 1), (:waiter || '.', 'owner', 'TEXT', 1, 2), (:waiter || '.', 'actor', 'TEXT', 1, 0),
  (:waiter || '.', 'node', 'TEXT', 1, 0), (:waiter || '.', 'label', 'TEXT', 1, 0), (:waiter || '.', 'mode', 'TEXT', 1, 0),
  (:waiter || '.', 'ticket', 'INTEGER', 1, 0), (:waiter || '.', 'since', 'INTEGER', 1, 0),
  (:waiter || '.', 'expires_at', 'INTEGER', 1, 0), (:waiter || '.', 'wants_until', 'INTEGER', 1, 0)),
found AS (
  SELECT '' AS part, name, upper(type) AS type, "notnull" AS required, pk AS key FROM pragma_table_info(:lock, :schema)
  UNION ALL
  SELECT :waiter || '.', name, upper(type), "notnull", pk FROM pragma_table_info(:waiter, :schema))
SELECT 'column ' || e.part || e.name || ' should be ' || e.type || CASE WHEN e.required THEN ' not null' ELSE '' END || ' and is '
       || coalesce(f.type || CASE WHEN f.required THEN ' not null' ELSE '' END, 'absent')
  FROM expected e LEFT JOIN found f ON f.part = e.part AND f.name = e.name
 WHERE (f.type IS NOT e.type OR f.required IS NOT e.required)
   AND (e.part = '' OR EXISTS (SELECT 1 FROM found w WHERE w.part <> ''))
UNION ALL
SELECT 'the table ' || :waiter || ' is missing' WHERE NOT EXISTS (SELECT 1 FROM found w WHERE w.part <> '')
UNION ALL
SELECT DISTINCT 'the primary key of ' || CASE f.part WHEN '' THEN 'the table should be (name)'
                                         ELSE 'the table ' || :waiter || ' should be (name, owner)' END
  FROM expected e JOIN found f ON f.part = e.part AND f.name = e.name WHERE f.key <> e.key
UNION ALL
SELECT 'column ' || f.part || f.name || ' should be absent and is ' || f.type
  FROM found f LEFT JOIN expected e ON e.part = f.part AND e.name = f.name WHERE e.name IS NULL
UNION ALL
SELECT 'the view ' || :status || ' is missing'
 WHERE NOT EXISTS (SELECT 1 FROM main.sqlite_master WHERE type = 'view' AND name = :status);

-- name: structure(schema, lock, status, waiter)
-- Everything that makes the tables and the view what they are, one line each, in order. SQLite keeps the text of the
-- statement; quotes, the schema and blanks do not matter in it.
SELECT name || ': ' || type || ' ' ||
       replace(replace(replace(replace(sql, '"' || :schema || '".', ''), '"', ''), char(10), ''), ' ', '')
  FROM main.sqlite_master WHERE tbl_name IN (:lock, :status, :waiter) AND sql IS NOT NULL
UNION ALL
SELECT :lock || '.' || name || ': column ' || cid || ', ' || type || iif("notnull", ' not null', '')
       || coalesce(' default ' || dflt_value, '') || iif(pk > 0, ' key ' || pk, '')
  FROM pragma_table_info(:lock, :schema)
UNION ALL
SELECT :waiter || '.' || name || ': column ' || cid || ', ' || type || iif("notnull", ' not null', '')
       || coalesce(' default ' || dflt_value, '') || iif(pk > 0, ' key ' || pk, '')
  FROM pragma_table_info(:waiter, :schema)
 ORDER BY 1;
