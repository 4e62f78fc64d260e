-- This file knows how version 2 makes room for those who wait: their table, and what the lock's own row says of them.
-- min_client: 0.1.0

-- step: drop the view for people
DROP VIEW {{status}};

-- step: add the last ticket drawn to the lock table
ALTER TABLE {{lock}} ADD COLUMN next_ticket INTEGER NOT NULL DEFAULT 0;

-- step: add the last ticket that is over
ALTER TABLE {{lock}} ADD COLUMN served_ticket INTEGER NOT NULL DEFAULT 0;

-- step: add the mark of those who wait
ALTER TABLE {{lock}} ADD COLUMN wanted_until INTEGER NOT NULL DEFAULT 0;

-- step: create the table of those who wait
CREATE TABLE {{waiter}} (
  name TEXT NOT NULL CHECK (typeof(name) = 'text' AND length(CAST(name AS BLOB)) <= 255),
  owner TEXT NOT NULL,
  actor TEXT NOT NULL DEFAULT '',
  node TEXT NOT NULL DEFAULT '',
  label TEXT NOT NULL DEFAULT '',
  mode TEXT NOT NULL,
  ticket INTEGER NOT NULL DEFAULT 0 CHECK (typeof(ticket) = 'integer'),
  since INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  wants_until INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (name, owner)
) WITHOUT ROWID;

-- step: create the view for people, with a count of those who wait
CREATE VIEW {{status}} AS
SELECT l.name,
       CASE WHEN l.owner IS NOT NULL AND l.expires_at > l.now THEN 'held'
            WHEN l.reopens_at > l.now THEN 'closed'
            WHEN l.owner IS NOT NULL THEN 'expired'
            ELSE 'free' END AS state,
       l.node, l.label, l.owner, l.token,
       strftime('%Y-%m-%d %H:%M:%S', l.acquired_at / 1000000, 'unixepoch')
         || printf('.%06d', l.acquired_at % 1000000) AS acquired_at_utc,
       strftime('%Y-%m-%d %H:%M:%S', l.expires_at / 1000000, 'unixepoch')
         || printf('.%06d', l.expires_at % 1000000) AS expires_at_utc,
       CASE WHEN l.reopens_at > 0
            THEN strftime('%Y-%m-%d %H:%M:%S', l.reopens_at / 1000000, 'unixepoch')
                 || printf('.%06d', l.reopens_at % 1000000) END AS reopens_at_utc,
       l.lease_us / 1000000.0 AS lease_seconds,
       l.meta AS metadata,
       (SELECT count(*) FROM {{waiter}} AS w
         WHERE w.name = l.name AND w.expires_at > l.now AND (w.ticket = 0 OR w.ticket > l.served_ticket)) AS waiters
  FROM (SELECT *, strftime('%s', 'now') * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 AS now
          FROM {{lock}} WHERE name <> '') AS l;
