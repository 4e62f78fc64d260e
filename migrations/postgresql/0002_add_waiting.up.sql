-- This file knows how version 2 makes room for those who wait: their table, and what the lock's own row says of them.
-- min_client: 0.1.0

-- step: add the tickets and the mark of those who wait to the lock table
ALTER TABLE {{lock}}
  ADD COLUMN next_ticket bigint NOT NULL DEFAULT 0,
  ADD COLUMN served_ticket bigint NOT NULL DEFAULT 0,
  ADD COLUMN wanted_until bigint NOT NULL DEFAULT 0;

-- step: create the table of those who wait
CREATE TABLE {{waiter}} (
  name text COLLATE "C" NOT NULL CHECK (octet_length(name) <= 255),
  owner text NOT NULL,
  actor text NOT NULL DEFAULT '',
  node text NOT NULL DEFAULT '' CHECK (octet_length(node) <= 255),
  label text NOT NULL DEFAULT '' CHECK (octet_length(label) <= 255),
  mode text NOT NULL,
  ticket bigint NOT NULL DEFAULT 0,
  since bigint NOT NULL,
  expires_at bigint NOT NULL,
  wants_until bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (name, owner)
) WITH (
  -- Few rows that come, are renewed in place, and go: vacuum soon, and never truncate, which takes an exclusive lock.
  fillfactor = 60,
  autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500, autovacuum_analyze_scale_factor = 0.2,
  vacuum_truncate = off
);

-- step: count those who wait in the view for people
-- Replaced, not dropped: the rights on it stay.
CREATE OR REPLACE VIEW {{status}} AS
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
