-- What several statements of PostgreSQL have in common: it stands there as {{now}} or {{notify}}.

-- fragment: now
-- Microseconds since the epoch, when it is computed: not the statement's or the transaction's start.
(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint

-- fragment: notify
-- 1, when it has told those who listen that the name of the row l is free, and to whose ticket, if there is one.
(pg_notify('dlock_{{channel}}', coalesce((SELECT w.owner FROM {{waiter}} AS w
                                           WHERE w.name = l.name AND w.ticket > l.served_ticket AND w.expires_at > {{now}}
                                           ORDER BY w.ticket LIMIT 1), repeat('-', 32)) || l.name) IS NOT NULL)::int::bigint
