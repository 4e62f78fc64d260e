-- The lock table as it is today, version 1. The migration that makes it: ../migrations/sqlite/.

-- The locks: one row a name. Columns, units and invariants: README.md.
CREATE TABLE resource_lock (
  name TEXT NOT NULL PRIMARY KEY CHECK (typeof(name) = 'text' AND length(CAST(name AS BLOB)) <= 255),
  node TEXT NOT NULL DEFAULT '',
  owner TEXT,
  mode TEXT NOT NULL DEFAULT '',
  token INTEGER NOT NULL CHECK (typeof(token) = 'integer'),
  acquired_at INTEGER NOT NULL DEFAULT 0,
  expires_at INTEGER NOT NULL DEFAULT 0,
  reopens_at INTEGER NOT NULL DEFAULT 0,
  lease_us INTEGER NOT NULL DEFAULT 0,
  meta TEXT NOT NULL DEFAULT '' CHECK (length(CAST(meta AS BLOB)) <= 4096),
  label TEXT NOT NULL DEFAULT '',
  actor TEXT NOT NULL DEFAULT '',
  next_ticket INTEGER NOT NULL DEFAULT 0,
  served_ticket INTEGER NOT NULL DEFAULT 0,
  wanted_until INTEGER NOT NULL DEFAULT 0,
  kept TEXT NOT NULL DEFAULT '' CHECK (length(CAST(kept AS BLOB)) <= 4096),
  ended_token INTEGER NOT NULL DEFAULT 0,
  outcome TEXT NOT NULL DEFAULT '',
  reason TEXT NOT NULL DEFAULT '' CHECK (length(CAST(reason AS BLOB)) <= 255)
) WITHOUT ROWID;

-- The floor row: every new name begins above its token, and its metadata is the identity of the installation. Never to
-- be deleted.
INSERT INTO resource_lock (name, token, meta) VALUES ('', 0, lower(hex(randomblob(16))));

-- Those who wait: one row a name and waiter.
CREATE TABLE resource_lock_waiter (
  name TEXT NOT NULL CHECK (typeof(name) = 'text' AND length(CAST(name AS BLOB)) <= 255),
  owner TEXT NOT NULL,
  actor TEXT NOT NULL DEFAULT '',
  node TEXT NOT NULL DEFAULT '',
  label TEXT NOT NULL DEFAULT '',
  mode TEXT NOT NULL,
  wants TEXT NOT NULL DEFAULT 'exclusive',
  ticket INTEGER NOT NULL DEFAULT 0 CHECK (typeof(ticket) = 'integer'),
  since INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  wants_until INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (name, owner)
) WITHOUT ROWID;

-- Those who hold a name together, by shares or by permits: one row a name and holder.
CREATE TABLE resource_lock_holder (
  name TEXT NOT NULL CHECK (typeof(name) = 'text' AND length(CAST(name AS BLOB)) <= 255),
  owner TEXT NOT NULL,
  gate TEXT NOT NULL,
  token INTEGER NOT NULL CHECK (typeof(token) = 'integer'),
  mode TEXT NOT NULL DEFAULT 'shared',
  permits INTEGER NOT NULL DEFAULT 0,
  permit_limit INTEGER NOT NULL DEFAULT 0,
  node TEXT NOT NULL DEFAULT '',
  label TEXT NOT NULL DEFAULT '',
  actor TEXT NOT NULL DEFAULT '',
  meta TEXT NOT NULL DEFAULT '' CHECK (length(CAST(meta AS BLOB)) <= 4096),
  acquired_at INTEGER NOT NULL DEFAULT 0,
  expires_at INTEGER NOT NULL DEFAULT 0,
  reopens_at INTEGER NOT NULL DEFAULT 0,
  lease_us INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (name, owner)
) WITHOUT ROWID;

-- For people and dashboards: native times, the state in words.
CREATE VIEW resource_lock_status AS
SELECT l.name,
       CASE WHEN l.owner IS NOT NULL AND l.expires_at > l.now THEN 'held'
            WHEN l.reopens_at > l.now THEN 'closed'
            WHEN l.owner IS NOT NULL THEN 'expired'
            ELSE 'free' END AS state,
       CASE WHEN l.owner IS NULL OR l.expires_at <= l.now THEN '' WHEN l.mode = '' THEN 'exclusive'
            ELSE l.mode END AS mode,
       CASE WHEN l.owner IS NULL OR l.expires_at <= l.now THEN 0 WHEN l.mode = '' THEN 1
            ELSE (SELECT count(*) FROM resource_lock_holder AS h
                   WHERE h.name = l.name AND h.gate = l.owner AND h.token > 0 AND h.expires_at > l.now) END AS holders,
       coalesce((SELECT sum(h.permits) FROM resource_lock_holder AS h
                  WHERE l.mode = 'permits' AND h.name = l.name AND h.gate = l.owner
                    AND max(h.expires_at, h.reopens_at) > l.now), 0) AS permits,
       coalesce((SELECT h.permit_limit FROM resource_lock_holder AS h
                  WHERE l.mode = 'permits' AND h.name = l.name AND h.gate = l.owner
                    AND max(h.expires_at, h.reopens_at) > l.now
                  ORDER BY h.acquired_at DESC, h.token DESC LIMIT 1), 0) AS permit_limit,
       CASE WHEN l.owner IS NULL THEN '' ELSE l.node END AS node, CASE WHEN l.owner IS NULL THEN '' ELSE l.label END AS label,
       l.owner, l.token,
       strftime('%Y-%m-%d %H:%M:%S', l.acquired_at / 1000000, 'unixepoch')
         || printf('.%06d', l.acquired_at % 1000000) AS acquired_at_utc,
       strftime('%Y-%m-%d %H:%M:%S', l.expires_at / 1000000, 'unixepoch')
         || printf('.%06d', l.expires_at % 1000000) AS expires_at_utc,
       CASE WHEN l.reopens_at > 0
            THEN strftime('%Y-%m-%d %H:%M:%S', l.reopens_at / 1000000, 'unixepoch')
                 || printf('.%06d', l.reopens_at % 1000000) END AS reopens_at_utc,
       l.lease_us / 1000000.0 AS lease_seconds,
       l.meta AS metadata,
       (SELECT count(*) FROM resource_lock_waiter AS w
         WHERE w.name = l.name AND w.expires_at > l.now AND (w.ticket = 0 OR w.ticket > l.served_ticket)) AS waiters,
       CASE WHEN l.owner IS NOT NULL THEN '' ELSE l.node END AS last_node,
       CASE WHEN l.owner IS NOT NULL THEN '' ELSE l.label END AS last_label,
       CASE WHEN l.owner IS NOT NULL OR l.acquired_at = 0 THEN '' WHEN l.ended_token = l.token THEN l.outcome
            ELSE 'released' END AS last_outcome,
       CASE WHEN l.owner IS NULL AND l.ended_token = l.token THEN l.reason ELSE '' END AS last_reason,
       l.kept
  FROM (SELECT *, strftime('%s', 'now') * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 AS now
          FROM resource_lock WHERE name <> '') AS l;
