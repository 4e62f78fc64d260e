-- What several statements of MySQL and MariaDB have in common: it stands there as {{now}}.

-- fragment: now
-- Microseconds since the epoch, of the statement's start, whatever the session's time zone is.
TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
