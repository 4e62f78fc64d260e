-- Version 5 lets a row that nobody holds tell of its last run: how that ended, where it was not by a release.
-- min_client: 0.1.0

-- step: add how a grant ended to the lock table
ALTER TABLE {{lock}}
  ADD COLUMN ended_token bigint NOT NULL DEFAULT 0,
  ADD COLUMN outcome text NOT NULL DEFAULT '',
  ADD COLUMN reason text NOT NULL DEFAULT '' CHECK (octet_length(reason) <= 255);

-- step: tell of the last run in the view for people
-- Replaced, not dropped: the rights on it stay.
CREATE OR REPLACE VIEW {{status}} AS
SELECT l.name,
       CASE WHEN l.owner IS NOT NULL AND l.expires_at > l.now THEN 'held'
            WHEN l.reopens_at > l.now THEN 'closed'
            WHEN l.owner IS NOT NULL THEN 'expired'
            ELSE 'free' END AS state,
       CASE WHEN l.owner IS NULL THEN '' ELSE l.node END AS node, CASE WHEN l.owner IS NULL THEN '' ELSE l.label END AS label,
       l.owner, l.token,
       timestamp '1970-01-01' + l.acquired_at * interval '1 microsecond' AS acquired_at_utc,
       timestamp '1970-01-01' + l.expires_at * interval '1 microsecond' AS expires_at_utc,
       CASE WHEN l.reopens_at > 0 THEN timestamp '1970-01-01' + l.reopens_at * interval '1 microsecond' END AS reopens_at_utc,
       l.lease_us * interval '1 microsecond' AS lease,
       l.meta AS metadata,
       (SELECT count(*) FROM {{waiter}} w
         WHERE w.name = l.name AND w.expires_at > l.now AND (w.ticket = 0 OR w.ticket > l.served_ticket)) AS waiters,
       CASE WHEN l.owner IS NOT NULL THEN '' ELSE l.node END AS last_node,
       CASE WHEN l.owner IS NOT NULL THEN '' ELSE l.label END AS last_label,
       CASE WHEN l.owner IS NOT NULL OR l.acquired_at = 0 THEN '' WHEN l.ended_token = l.token THEN l.outcome
            ELSE 'released' END AS last_outcome,
       CASE WHEN l.owner IS NULL AND l.ended_token = l.token THEN l.reason ELSE '' END AS last_reason,
       l.kept
  FROM (SELECT r.*, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now FROM {{lock}} r WHERE r.name <> '') l;
