-- What several statements of SQLite have in common: it stands there as {{now}}.

-- fragment: now
-- Microseconds since the epoch, in whole milliseconds: the same in all of a statement. A Julian day as a double is
-- exact to 40 us at best, and is what SQLite makes of its milliseconds: rounded to them again, it is exactly those.
(CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER) * 1000)
