-- Version 5 lets a row that nobody holds tell of its last run: how that ended, where it was not by a release.
-- min_client: 0.1.0

-- step: drop the view for people
DROP VIEW {{status}};

-- step: add the token under which a row says how its grant ended
ALTER TABLE {{lock}} ADD COLUMN ended_token INTEGER NOT NULL DEFAULT 0;

-- step: add how it was ended
ALTER TABLE {{lock}} ADD COLUMN outcome TEXT NOT NULL DEFAULT '';

-- step: add why it was ended
ALTER TABLE {{lock}} ADD COLUMN reason TEXT NOT NULL DEFAULT '' CHECK (length(CAST(reason AS BLOB)) <= 255);

-- step: create the view for people, which tells of the last run
CREATE VIEW {{status}} AS
SELECT l.name,
       CASE WHEN l.owner IS NOT NULL AND l.expires_at > l.now THEN 'held'
            WHEN l.reopens_at > l.now THEN 'closed'
            WHEN l.owner IS NOT NULL THEN 'expired'
            ELSE 'free' END AS state,
       CASE WHEN l.owner IS NULL THEN '' ELSE l.node END AS node, CASE WHEN l.owner IS NULL THEN '' ELSE l.label END AS label,
       l.owner, l.token,
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
         WHERE w.name = l.name AND w.expires_at > l.now AND (w.ticket = 0 OR w.ticket > l.served_ticket)) AS waiters,
       CASE WHEN l.owner IS NOT NULL THEN '' ELSE l.node END AS last_node,
       CASE WHEN l.owner IS NOT NULL THEN '' ELSE l.label END AS last_label,
       CASE WHEN l.owner IS NOT NULL OR l.acquired_at = 0 THEN '' WHEN l.ended_token = l.token THEN l.outcome
            ELSE 'released' END AS last_outcome,
       CASE WHEN l.owner IS NULL AND l.ended_token = l.token THEN l.reason ELSE '' END AS last_reason,
       l.kept
  FROM (SELECT *, strftime('%s', 'now') * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 AS now
          FROM {{lock}} WHERE name <> '') AS l;
