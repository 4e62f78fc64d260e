-- What several statements of SQLite have in common: it stands there as {{now}}.

-- fragment: left_by_all
-- Of a row l that several hold: whether all of them have given it back. What has no token is a place of one of those, which stays
-- taken for its at-least time.
(l.owner IS NOT NULL AND l.mode <> ''
 AND NOT EXISTS (SELECT 1 FROM {{holder}} AS k WHERE k.name = l.name AND k.gate = l.owner AND k.token > 0))

-- fragment: left_at
-- When the last of those went, who have left places: a place's lease_us is for how long it was held.
(SELECT max(min(k.acquired_at + k.lease_us, k.reopens_at)) FROM {{holder}} AS k WHERE k.name = l.name AND k.gate = l.owner AND k.token = 0)

-- fragment: now
-- Microseconds since the epoch, in whole milliseconds: the same in all of a statement. A Julian day as a double is
-- exact to 40 us at best, and is what SQLite makes of its milliseconds: rounded to them again, it is exactly those.
(CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER) * 1000)
