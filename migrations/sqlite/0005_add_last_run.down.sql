-- Version 5 is taken back: how the last runs ended is forgotten.

-- step: drop the view for people
DROP VIEW {{status}};

-- step: drop why a grant was ended
ALTER TABLE {{lock}} DROP COLUMN reason;

-- step: drop how
ALTER TABLE {{lock}} DROP COLUMN outcome;

-- step: drop the token of that
ALTER TABLE {{lock}} DROP COLUMN ended_token;

-- step: create the view for people as it was
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
