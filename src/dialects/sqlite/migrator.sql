-- What the migrator asks of SQLite: the history of the schema, what its tables are, and whether the file may be
-- written. DDL is transactional here, and BEGIN IMMEDIATE is the lock. Times are microseconds since the epoch, by the
-- host's clock.

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
       lease_until - {{now}}, format
  FROM {{history}} ORDER BY version;

-- name: insert_version(version, name, checksum, steps_total, min_client, tool_version, applied_by, owner, lease)
INSERT INTO {{history}} (version, name, checksum, state, steps_done, steps_total, min_client, started_at, tool_version,
                         applied_by, owner, lease_until)
SELECT :version, :name, :checksum, 'running', 0, :steps_total, :min_client, n.now, :tool_version, :applied_by, :owner,
       n.now + :lease
  FROM (SELECT {{now}} AS now) n;

-- name: take_version(version, steps_done, steps_total, tool_version, applied_by, owner, lease)
-- Unless another migrator is at work on it.
UPDATE {{history}}
   SET state = 'running', steps_done = :steps_done, steps_total = :steps_total, error = '', tool_version = :tool_version,
       applied_by = :applied_by, owner = :owner, finished_at = NULL,
       started_at = {{now}},
       lease_until = {{now}} + :lease
 WHERE version = :version
   AND (state <> 'running'
        OR lease_until <= {{now}});

-- name: journal(version, owner, steps_done, lease)
-- Renews the migrator's lease too. No row: another migrator has taken over.
UPDATE {{history}}
   SET steps_done = :steps_done,
       lease_until = {{now}} + :lease
 WHERE version = :version AND owner = :owner AND state = 'running';

-- name: finish_version(version, owner)
UPDATE {{history}}
   SET state = 'applied', steps_done = steps_total, owner = NULL, lease_until = 0,
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
 WHERE name <> '' AND owner IS NOT NULL
   AND expires_at > {{now}};

-- name: lock_history_there(schema, lock_history)
-- Whether a history of the locks is kept (recording.sql): somebody else's table of that name is none.
SELECT count(*) FROM pragma_table_info(:lock_history, 'main') WHERE :schema = 'main' AND name = 'ended_at';

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
SELECT count(*) FROM {{lock}} WHERE name = '' AND length(meta) = 32 AND meta NOT GLOB '*[^0-9a-f]*';

-- name: make_floor()
-- Where it was lost, and with it what it was: above every token in the table, and above every one that was ever handed
-- out, as long as they were fewer than a million a second since 1970.
INSERT OR IGNORE INTO {{lock}} (name, token)
SELECT '', max(coalesce(max(l.token), 0), {{now}})
  FROM {{lock}} AS l;

-- name: make_identity()
-- Where the floor row does not have one.
UPDATE {{lock}} SET meta = lower(hex(randomblob(16)))
 WHERE name = '' AND (length(meta) <> 32 OR meta GLOB '*[^0-9a-f]*');

-- name: structure(schema, lock, status, waiter, holder)
-- What the tables and the view must be, one line each: "part: what it is", "part.column: what it is". Said so that the
-- same tables give the same lines, whatever their names, the server's version and the order of their columns.
WITH relation (part, name, kind, text) AS (
  SELECT CASE name WHEN :lock THEN 'lock' WHEN :status THEN 'status' WHEN :waiter THEN 'waiter' ELSE 'holder' END, name, type, upper(sql)
    FROM main.sqlite_master WHERE type IN ('table', 'view') AND name IN (:lock, :status, :waiter, :holder))
SELECT part || ': ' || kind || CASE WHEN text LIKE '%WITHOUT%ROWID%' THEN ', without rowid' ELSE '' END FROM relation
UNION ALL
SELECT r.part || '.' || c.name || ': '
       || CASE r.kind WHEN 'view' THEN 'column'
          ELSE upper(c.type) || CASE WHEN c."notnull" THEN ', not null' ELSE '' END
               || coalesce(', default ' || c.dflt_value, '') END
  FROM relation r JOIN pragma_table_info(r.name, :schema) c
UNION ALL
SELECT part || ': primary key (' || (SELECT group_concat(name, ', ')
                                       FROM (SELECT name FROM pragma_table_info(r.name, :schema) WHERE pk > 0 ORDER BY pk)) || ')'
  FROM relation r WHERE kind = 'table'
UNION ALL
SELECT r.part || ': ' || CASE WHEN i."unique" THEN 'unique index (' ELSE 'index (' END
       || (SELECT group_concat(coalesce(c.name, 'an expression'), ', ') FROM pragma_index_info(i.name, :schema) c) || ')'
  FROM relation r JOIN pragma_index_list(r.name, :schema) i
 WHERE r.kind = 'table' AND i.origin <> 'pk';

-- name: details(schema, lock, status, waiter, holder)
-- All that the server says of the tables and the view, in its own words, one line each, in order. SQLite keeps the text of the
-- statement; quotes, the schema and blanks do not matter in it.
SELECT name || ': ' || type || ' ' ||
       replace(replace(replace(replace(sql, '"' || :schema || '".', ''), '"', ''), char(10), ''), ' ', '')
  FROM main.sqlite_master WHERE tbl_name IN (:lock, :status, :waiter, :holder) AND sql IS NOT NULL
UNION ALL
SELECT :lock || '.' || name || ': column ' || cid || ', ' || type || iif("notnull", ' not null', '')
       || coalesce(' default ' || dflt_value, '') || iif(pk > 0, ' key ' || pk, '')
  FROM pragma_table_info(:lock, :schema)
UNION ALL
SELECT :waiter || '.' || name || ': column ' || cid || ', ' || type || iif("notnull", ' not null', '')
       || coalesce(' default ' || dflt_value, '') || iif(pk > 0, ' key ' || pk, '')
  FROM pragma_table_info(:waiter, :schema)
UNION ALL
SELECT :holder || '.' || name || ': column ' || cid || ', ' || type || iif("notnull", ' not null', '')
       || coalesce(' default ' || dflt_value, '') || iif(pk > 0, ' key ' || pk, '')
  FROM pragma_table_info(:holder, :schema)
 ORDER BY 1;

-- name: may_update_lock()
-- The right of the file. Takes the writer's turn for a moment, and changes nothing.
UPDATE {{lock}} SET token = token WHERE 1 = 0;
