-- Version 5 lets a row that nobody holds tell of its last run: how that ended, where it was not by a release.
-- min_client: 0.1.0

-- step: add how a grant ended to the lock table
ALTER TABLE {{lock}}
  ADD COLUMN ended_token BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN outcome VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  ADD COLUMN reason VARCHAR(255) NOT NULL DEFAULT '';
-- probe: they are there
SELECT CASE SUM(column_name IN ('ended_token', 'outcome', 'reason')) WHEN 0 THEN 0 WHEN 3 THEN 1 ELSE 2 END
  FROM information_schema.columns WHERE table_schema = :schema AND table_name = :lock;

-- step: tell of the last run in the view for people
CREATE OR REPLACE SQL SECURITY INVOKER VIEW {{status}} AS
SELECT CONVERT(l.name USING utf8mb4) AS name,
       CASE WHEN l.owner IS NOT NULL
                 AND l.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) THEN 'held'
            WHEN l.reopens_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) THEN 'closed'
            WHEN l.owner IS NOT NULL THEN 'expired'
            ELSE 'free' END AS state,
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
-- probe: it does
SELECT count(*) FROM information_schema.columns
 WHERE table_schema = :schema AND table_name = :status AND column_name = 'last_outcome';
