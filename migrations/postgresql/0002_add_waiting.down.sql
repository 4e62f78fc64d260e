-- This file knows how version 2 is taken back. Who waits is forgotten, and so are the tickets that were drawn.

-- step: drop the view for people
DROP VIEW {{status}};

-- step: drop the table of those who wait
DROP TABLE {{waiter}};

-- step: drop the tickets and the mark of those who wait
ALTER TABLE {{lock}} DROP COLUMN next_ticket, DROP COLUMN served_ticket, DROP COLUMN wanted_until;

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
       l.meta AS metadata
  FROM (SELECT r.*, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now FROM {{lock}} r WHERE r.name <> '') l;
