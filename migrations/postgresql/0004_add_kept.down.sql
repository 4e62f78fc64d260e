-- Version 4 is taken back: what holders left for the next ones is forgotten.

-- step: drop the view for people
-- It knows all columns that were there when it was made.
DROP VIEW {{status}};

-- step: drop what is kept
ALTER TABLE {{lock}} DROP COLUMN kept;

-- step: create the view for people as it was
CREATE VIEW {{status}} AS
SELECT l.name,
       CASE WHEN l.owner IS NOT NULL AND l.expires_at > l.now THEN 'held'
            WHEN l.reopens_at > l.now THEN 'closed'
            WHEN l.owner IS NOT NULL THEN 'expired'
            ELSE 'free' END AS state,
       l.node, l.label, l.owner, l.token,
       timestamp '1970-01-01' + l.acquired_at * interval '1 microsecond' AS acquired_at_utc,
       timestamp '1970-01-01' + l.expires_at * interval '1 microsecond' AS expires_at_utc,
       CASE WHEN l.reopens_at > 0 THEN timestamp '1970-01-01' + l.reopens_at * interval '1 microsecond' END AS reopens_at_utc,
       l.lease_us * interval '1 microsecond' AS lease,
       l.meta AS metadata,
       (SELECT count(*) FROM {{waiter}} w
         WHERE w.name = l.name AND w.expires_at > l.now AND (w.ticket = 0 OR w.ticket > l.served_ticket)) AS waiters
  FROM (SELECT r.*, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now FROM {{lock}} r WHERE r.name <> '') l;
