-- Version 5 is taken back: how the last runs ended is forgotten.

-- step: bring the view for people back to what it was
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
-- probe: it is there, and tells of no last run
SELECT CASE WHEN count(*) > 0 AND MAX(column_name = 'last_outcome') = 0 THEN 1 ELSE 0 END
  FROM information_schema.columns WHERE table_schema = :schema AND table_name = :status;

-- step: drop how a grant ended
ALTER TABLE {{lock}} DROP COLUMN ended_token, DROP COLUMN outcome, DROP COLUMN reason;
-- probe: they are gone
SELECT CASE SUM(column_name IN ('ended_token', 'outcome', 'reason')) WHEN 3 THEN 0 WHEN 0 THEN 1 ELSE 2 END
  FROM information_schema.columns WHERE table_schema = :schema AND table_name = :lock;
