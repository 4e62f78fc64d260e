-- What several statements of PostgreSQL have in common: it stands there as {{now}} or {{notify}}.

-- fragment: left_by_all
-- Of a row l that several hold: whether all of them have given it back. What has no token is a place of one of those, which stays
-- taken for its at-least time.
(l.owner IS NOT NULL AND l.mode <> ''
 AND NOT EXISTS (SELECT FROM {{holder}} AS k WHERE k.name = l.name AND k.gate = l.owner AND k.token > 0))

-- fragment: left_at
-- When the last of those went, who have left places: a place's lease_us is for how long it was held.
(SELECT max(least(k.acquired_at + k.lease_us, k.reopens_at)) FROM {{holder}} AS k WHERE k.name = l.name AND k.gate = l.owner AND k.token = 0)

-- fragment: now
-- Microseconds since the epoch, when it is computed: not the statement's or the transaction's start.
(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint

-- fragment: notify
-- 1, when it has told those who listen that the name of the row l is free, and to whose ticket, if there is one.
(pg_notify('dlock_{{channel}}', coalesce((SELECT w.owner FROM {{waiter}} AS w
                                           WHERE w.name = l.name AND w.ticket > l.served_ticket AND w.expires_at > {{now}}
                                           ORDER BY w.ticket LIMIT 1), repeat('-', 32)) || l.name) IS NOT NULL)::int::bigint
