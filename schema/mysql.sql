-- The lock table as it is today, version 1. The migration that makes it: ../migrations/mysql/.

-- The locks: one row a name. Columns, units and invariants: README.md.
CREATE TABLE resource_lock (
  name VARBINARY(255) NOT NULL,
  node VARCHAR(255) NOT NULL DEFAULT '',
  owner CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL,
  mode VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  token BIGINT NOT NULL,
  acquired_at BIGINT NOT NULL DEFAULT 0,
  expires_at BIGINT NOT NULL DEFAULT 0,
  reopens_at BIGINT NOT NULL DEFAULT 0,
  lease_us BIGINT NOT NULL DEFAULT 0,
  meta VARCHAR(4096) NOT NULL DEFAULT '',
  label VARCHAR(255) NOT NULL DEFAULT '',
  actor CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  next_ticket BIGINT NOT NULL DEFAULT 0,
  served_ticket BIGINT NOT NULL DEFAULT 0,
  wanted_until BIGINT NOT NULL DEFAULT 0,
  kept VARCHAR(4096) NOT NULL DEFAULT '',
  ended_token BIGINT NOT NULL DEFAULT 0,
  outcome VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  reason VARCHAR(255) NOT NULL DEFAULT '',
  PRIMARY KEY (name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The floor row: every new name begins above its token, and its metadata is the identity of the installation. Never to
-- be deleted.
INSERT INTO resource_lock (name, token, meta)
VALUES ('', 0, LEFT(SHA2(CONCAT_WS('/', UUID(), RAND(), RAND(), UTC_TIMESTAMP(6), CONNECTION_ID(), @@hostname, @@port,
                                   @@server_id), 256), 32));

-- Those who wait: one row a name and waiter.
CREATE TABLE resource_lock_waiter (
  name VARBINARY(255) NOT NULL,
  owner CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  actor CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  node VARCHAR(255) NOT NULL DEFAULT '',
  label VARCHAR(255) NOT NULL DEFAULT '',
  mode VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  wants VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'exclusive',
  ticket BIGINT NOT NULL DEFAULT 0,
  since BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  wants_until BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (name, owner)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Those who hold a name together, by shares or by permits: one row a name and holder.
CREATE TABLE resource_lock_holder (
  name VARBINARY(255) NOT NULL,
  owner CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  gate CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  token BIGINT NOT NULL,
  mode VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'shared',
  permits BIGINT NOT NULL DEFAULT 0,
  permit_limit BIGINT NOT NULL DEFAULT 0,
  node VARCHAR(255) NOT NULL DEFAULT '',
  label VARCHAR(255) NOT NULL DEFAULT '',
  actor CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  meta VARCHAR(4096) NOT NULL DEFAULT '',
  acquired_at BIGINT NOT NULL DEFAULT 0,
  expires_at BIGINT NOT NULL DEFAULT 0,
  reopens_at BIGINT NOT NULL DEFAULT 0,
  lease_us BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (name, owner)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- For people and dashboards: native times, the state in words.
CREATE SQL SECURITY INVOKER VIEW resource_lock_status AS
SELECT CONVERT(l.name USING utf8mb4) AS name,
       CASE WHEN l.owner IS NOT NULL
                 AND l.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) THEN 'held'
            WHEN l.reopens_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) THEN 'closed'
            WHEN l.owner IS NOT NULL THEN 'expired'
            ELSE 'free' END AS state,
       CASE WHEN l.owner IS NULL OR l.expires_at <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) THEN ''
            WHEN l.mode = '' THEN 'exclusive' ELSE l.mode END AS mode,
       CASE WHEN l.owner IS NULL OR l.expires_at <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) THEN 0
            WHEN l.mode = '' THEN 1
            ELSE (SELECT COUNT(*) FROM resource_lock_holder h
                   WHERE h.name = l.name AND h.gate = l.owner AND h.token > 0
                     AND h.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) END AS holders,
       CAST(COALESCE((SELECT SUM(h.permits) FROM resource_lock_holder h
                  WHERE l.mode = 'permits' AND h.name = l.name AND h.gate = l.owner
                    AND GREATEST(h.expires_at, h.reopens_at) > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0) AS SIGNED) AS permits,
       COALESCE((SELECT h.permit_limit FROM resource_lock_holder h
                  WHERE l.mode = 'permits' AND h.name = l.name AND h.gate = l.owner
                    AND GREATEST(h.expires_at, h.reopens_at) > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
                  ORDER BY h.acquired_at DESC, h.token DESC LIMIT 1), 0) AS permit_limit,
       CASE WHEN l.owner IS NULL THEN '' ELSE l.node END AS node, CASE WHEN l.owner IS NULL THEN '' ELSE l.label END AS label,
       l.owner, l.token,
       TIMESTAMP('1970-01-01') + INTERVAL l.acquired_at MICROSECOND AS acquired_at_utc,
       TIMESTAMP('1970-01-01') + INTERVAL l.expires_at MICROSECOND AS expires_at_utc,
       CASE WHEN l.reopens_at > 0 THEN TIMESTAMP('1970-01-01') + INTERVAL l.reopens_at MICROSECOND END AS reopens_at_utc,
       l.lease_us / 1000000 AS lease_seconds,
       l.meta AS metadata,
       (SELECT COUNT(*) FROM resource_lock_waiter w
         WHERE w.name = l.name AND w.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
           AND (w.ticket = 0 OR w.ticket > l.served_ticket)) AS waiters,
       CASE WHEN l.owner IS NOT NULL THEN '' ELSE l.node END AS last_node,
       CASE WHEN l.owner IS NOT NULL THEN '' ELSE l.label END AS last_label,
       CASE WHEN l.owner IS NOT NULL OR l.acquired_at = 0 THEN '' WHEN l.ended_token = l.token THEN l.outcome
            ELSE 'released' END AS last_outcome,
       CASE WHEN l.owner IS NULL AND l.ended_token = l.token THEN l.reason ELSE '' END AS last_reason,
       l.kept
  FROM resource_lock l WHERE l.name <> '';
