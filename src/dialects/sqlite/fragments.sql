-- What several statements of SQLite have in common: it stands there as {{now}}.

-- fragment: now
-- Microseconds since the epoch, in whole milliseconds: the same in all of a statement.
(strftime('%s', 'now') * 1000000 + substr(strftime('%f', 'now'), 4) * 1000)
