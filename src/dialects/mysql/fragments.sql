-- What several statements of MySQL and MariaDB have in common: it stands there as {{now}}.

-- fragment: left_by_all
-- Of a row l that several hold: whether all of them have given it back. What has no token is a place of one of those, which stays
-- taken for its at-least time.
(l.owner IS NOT NULL AND l.mode <> ''
 AND NOT EXISTS (SELECT 1 FROM {{holder}} k WHERE k.name = l.name AND k.gate = l.owner AND k.token > 0))

-- fragment: left_at
-- When the last of those went, who have left places: a place's lease_us is for how long it was held.
(SELECT MAX(LEAST(k.acquired_at + k.lease_us, k.reopens_at)) FROM {{holder}} k WHERE k.name = l.name AND k.gate = l.owner AND k.token = 0)

-- fragment: now
-- Microseconds since the epoch, of the statement's start, whatever the session's time zone is.
TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
