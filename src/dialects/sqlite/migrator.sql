-- This file knows what the migrator asks of SQLite. DDL is transactional here, and BEGIN IMMEDIATE is the lock.
-- Times are microseconds since the epoch, by the host's clock.

-- name: relations(schema, lock, status, history)
-- What is there: the schema (a file has one, "main"), the table, the view, the history.
SELECT :schema = 'main',
       count(*) FILTER (WHERE name = :lock), count(*) FILTER (WHERE name = :status), count(*) FILTER (WHERE name = :history)
  FROM main.sqlite_master WHERE :schema = 'main' AND type IN ('table', 'view') AND name IN (:lock, :status, :history);

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
-- Every column of the table, so that a missing one is noticed.
SELECT token, node, owner, entries, acquired_at, expires_at, reopens_at, lease_us, meta, label, actor
  FROM {{lock}} WHERE name = '';

-- name: verify(schema, lock, status)
-- What differs from the table as it should be today; no row if nothing does.
WITH expected (name, type, required, key) AS (VALUES
  ('name', 'TEXT', 1, 1), ('node', 'TEXT', 1, 0), ('owner', 'TEXT', 0, 0), ('entries', 'TEXT', 1, 0),
  ('token', 'INTEGER', 1, 0), ('acquired_at', 'INTEGER', 1, 0), ('expires_at', 'INTEGER', 1, 0),
  ('reopens_at', 'INTEGER', 1, 0), ('lease_us', 'INTEGER', 1, 0), ('meta', 'TEXT', 1, 0), ('label', 'TEXT', 1, 0),
  ('actor', 'TEXT', 1, 0)),
found AS (SELECT name, upper(type) AS type, "notnull" AS required, pk AS key FROM pragma_table_info(:lock, :schema))
SELECT 'column ' || e.name || ' should be ' || e.type || CASE WHEN e.required THEN ' not null' ELSE '' END || ' and is '
       || coalesce(f.type || CASE WHEN f.required THEN ' not null' ELSE '' END, 'absent')
  FROM expected e LEFT JOIN found f ON f.name = e.name
 WHERE f.type IS NOT e.type OR f.required IS NOT e.required
UNION ALL
SELECT 'the primary key should be (name)' FROM expected e JOIN found f ON f.name = e.name WHERE f.key <> e.key
UNION ALL
SELECT 'column ' || f.name || ' should be absent and is ' || f.type FROM found f WHERE f.name NOT IN (SELECT name FROM expected)
UNION ALL
SELECT 'the view ' || :status || ' is missing'
 WHERE NOT EXISTS (SELECT 1 FROM main.sqlite_master WHERE type = 'view' AND name = :status);

-- name: structure(schema, lock, status)
-- Everything that makes the table and the view what they are, one line each, in order. SQLite keeps the text of the
-- statement; quotes, the schema and blanks do not matter in it.
SELECT name || ': ' || type || ' ' ||
       replace(replace(replace(replace(sql, '"' || :schema || '".', ''), '"', ''), char(10), ''), ' ', '')
  FROM main.sqlite_master WHERE tbl_name IN (:lock, :status) AND sql IS NOT NULL
UNION ALL
SELECT :lock || '.' || name || ': column ' || cid || ', ' || type || iif("notnull", ' not null', '')
       || coalesce(' default ' || dflt_value, '') || iif(pk > 0, ' key ' || pk, '')
  FROM pragma_table_info(:lock, :schema)
 ORDER BY 1;
