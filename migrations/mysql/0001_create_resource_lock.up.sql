-- This file knows how version 1 makes the lock table, its floor row, and the view for people.
-- min_client: 0.1.0

-- step: create the lock table
CREATE TABLE {{lock}} (
  name VARBINARY(255) NOT NULL,
  node VARCHAR(255) NOT NULL DEFAULT '',
  owner CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL,
  entries VARCHAR(4096) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  token BIGINT NOT NULL,
  acquired_at BIGINT NOT NULL DEFAULT 0,
  expires_at BIGINT NOT NULL DEFAULT 0,
  reopens_at BIGINT NOT NULL DEFAULT 0,
  lease_us BIGINT NOT NULL DEFAULT 0,
  meta VARCHAR(4096) NOT NULL DEFAULT '',
  label VARCHAR(255) NOT NULL DEFAULT '',
  actor CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  PRIMARY KEY (name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- probe: the table has exactly these columns
SELECT CASE WHEN count(*) = 0 THEN 0
            WHEN GROUP_CONCAT(CONVERT(column_name USING utf8mb4) ORDER BY ordinal_position) =
                 'name,node,owner,entries,token,acquired_at,expires_at,reopens_at,lease_us,meta,label,actor' THEN 1
            ELSE 2 END
  FROM information_schema.columns WHERE table_schema = :schema AND table_name = :lock;

-- step: make the floor row
INSERT INTO {{lock}} (name, token) VALUES ('', 0);
-- probe: it is there
SELECT count(*) FROM {{lock}} WHERE name = '';

-- step: create the view for people
CREATE SQL SECURITY INVOKER VIEW {{status}} AS
SELECT CONVERT(l.name USING utf8mb4) AS name,
       CASE WHEN l.owner IS NOT NULL
                 AND l.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) THEN 'held'
            WHEN l.reopens_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) THEN 'closed'
            WHEN l.owner IS NOT NULL THEN 'expired'
            ELSE 'free' END AS state,
       l.node, l.label, l.owner, l.token,
       TIMESTAMP('1970-01-01') + INTERVAL l.acquired_at MICROSECOND AS acquired_at_utc,
       TIMESTAMP('1970-01-01') + INTERVAL l.expires_at MICROSECOND AS expires_at_utc,
       CASE WHEN l.reopens_at > 0 THEN TIMESTAMP('1970-01-01') + INTERVAL l.reopens_at MICROSECOND END AS reopens_at_utc,
       l.lease_us / 1000000 AS lease_seconds,
       l.meta AS metadata
  FROM {{lock}} l WHERE l.name <> '';
-- probe: it is there, and is a view
SELECT CASE count(*) WHEN 0 THEN 0 ELSE IF(min(table_type) = 'VIEW', 1, 2) END
  FROM information_schema.tables WHERE table_schema = :schema AND table_name = :status;
