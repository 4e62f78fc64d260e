-- This file knows how version 2 makes room for those who wait: their table, and what the lock's own row says of them.
-- min_client: 0.1.0

-- step: add the tickets and the mark of those who wait to the lock table
ALTER TABLE {{lock}}
  ADD COLUMN next_ticket BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN served_ticket BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN wanted_until BIGINT NOT NULL DEFAULT 0;
-- probe: they are there
SELECT CASE SUM(column_name IN ('next_ticket', 'served_ticket', 'wanted_until')) WHEN 0 THEN 0 WHEN 3 THEN 1 ELSE 2 END
  FROM information_schema.columns WHERE table_schema = :schema AND table_name = :lock;

-- step: create the table of those who wait
CREATE TABLE {{waiter}} (
  name VARBINARY(255) NOT NULL,
  owner CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  actor CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  node VARCHAR(255) NOT NULL DEFAULT '',
  label VARCHAR(255) NOT NULL DEFAULT '',
  mode VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  ticket BIGINT NOT NULL DEFAULT 0,
  since BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  wants_until BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (name, owner)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- probe: the table has exactly these columns
SELECT CASE WHEN count(*) = 0 THEN 0
            WHEN GROUP_CONCAT(CONVERT(column_name USING utf8mb4) ORDER BY ordinal_position) =
                 'name,owner,actor,node,label,mode,ticket,since,expires_at,wants_until' THEN 1
            ELSE 2 END
  FROM information_schema.columns WHERE table_schema = :schema AND table_name = :waiter;

-- step: count those who wait in the view for people
CREATE OR REPLACE SQL SECURITY INVOKER VIEW {{status}} AS
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
       l.meta AS metadata,
       (SELECT COUNT(*) FROM {{waiter}} w
         WHERE w.name = l.name AND w.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
           AND (w.ticket = 0 OR w.ticket > l.served_ticket)) AS waiters
  FROM {{lock}} l WHERE l.name <> '';
-- probe: it has that column
SELECT count(*) FROM information_schema.columns
 WHERE table_schema = :schema AND table_name = :status AND column_name = 'waiters';
