-- Version 1 makes the lock table with its floor row, the tables of those who wait and of those who hold a name
-- together, and the view for people.
-- min_client: 0.1.0

-- step: create the lock table
CREATE TABLE {{lock}} (
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
-- probe: the table has exactly these columns
SELECT CASE WHEN count(*) = 0 THEN 0
            WHEN GROUP_CONCAT(CONVERT(column_name USING utf8mb4) ORDER BY ordinal_position) =
                 CONCAT('name,node,owner,mode,token,acquired_at,expires_at,reopens_at,lease_us,meta,label,',
                        'actor,next_ticket,served_ticket,wanted_until,kept,ended_token,outcome,reason') THEN 1
            ELSE 2 END
  FROM information_schema.columns WHERE table_schema = :schema AND table_name = :lock;

-- step: make the floor row
-- Its metadata is the identity of the installation, by which a connection to another database is told from one to this.
INSERT INTO {{lock}} (name, token, meta)
VALUES ('', 0, LEFT(SHA2(CONCAT_WS('/', UUID(), RAND(), RAND(), UTC_TIMESTAMP(6), CONNECTION_ID(), @@hostname, @@port,
                                   @@server_id), 256), 32));
-- probe: it is there
SELECT count(*) FROM {{lock}} WHERE name = '';

-- step: create the table of those who wait
CREATE TABLE {{waiter}} (
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
-- probe: the table has exactly these columns
SELECT CASE WHEN count(*) = 0 THEN 0
            WHEN GROUP_CONCAT(CONVERT(column_name USING utf8mb4) ORDER BY ordinal_position) =
                 'name,owner,actor,node,label,mode,wants,ticket,since,expires_at,wants_until' THEN 1
            ELSE 2 END
  FROM information_schema.columns WHERE table_schema = :schema AND table_name = :waiter;

-- step: create the table of those who hold a name together
CREATE TABLE {{holder}} (
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
-- probe: the table has exactly these columns
SELECT CASE WHEN count(*) = 0 THEN 0
            WHEN GROUP_CONCAT(CONVERT(column_name USING utf8mb4) ORDER BY ordinal_position) =
                 CONCAT('name,owner,gate,token,mode,permits,permit_limit,node,label,actor,meta,acquired_at,expires_at,',
                        'reopens_at,lease_us') THEN 1
            ELSE 2 END
  FROM information_schema.columns WHERE table_schema = :schema AND table_name = :holder;

-- step: create the view for people
CREATE SQL SECURITY INVOKER VIEW {{status}} AS
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
            ELSE (SELECT COUNT(*) FROM {{holder}} h
                   WHERE h.name = l.name AND h.gate = l.owner AND h.token > 0
                     AND h.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) END AS holders,
       CAST(COALESCE((SELECT SUM(h.permits) FROM {{holder}} h
                  WHERE l.mode = 'permits' AND h.name = l.name AND h.gate = l.owner
                    AND GREATEST(h.expires_at, h.reopens_at) > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0) AS SIGNED) AS permits,
       COALESCE((SELECT h.permit_limit FROM {{holder}} h
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
       (SELECT COUNT(*) FROM {{waiter}} w
         WHERE w.name = l.name AND w.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
           AND (w.ticket = 0 OR w.ticket > l.served_ticket)) AS waiters,
       CASE WHEN l.owner IS NOT NULL THEN '' ELSE l.node END AS last_node,
       CASE WHEN l.owner IS NOT NULL THEN '' ELSE l.label END AS last_label,
       CASE WHEN l.owner IS NOT NULL OR l.acquired_at = 0 THEN '' WHEN l.ended_token = l.token THEN l.outcome
            ELSE 'released' END AS last_outcome,
       CASE WHEN l.owner IS NULL AND l.ended_token = l.token THEN l.reason ELSE '' END AS last_reason,
       l.kept
  FROM {{lock}} l WHERE l.name <> '';
-- probe: it is there, and is a view
SELECT CASE count(*) WHEN 0 THEN 0 ELSE IF(min(table_type) = 'VIEW', 1, 2) END
  FROM information_schema.tables WHERE table_schema = :schema AND table_name = :status;
