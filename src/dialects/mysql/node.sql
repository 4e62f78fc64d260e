-- The entries of a node on MySQL and MariaDB, who share the lease of one row: ;<id>=<end>;<id>=<end>; with ends of 16
-- digits. They are written only as long as they are what was read (:seen), so that two who write at once do not undo
-- each other. The number of matched rows is the answer.

-- name: entries(name) -> fresh
SELECT owner, node, entries, token, COALESCE((SELECT f.token FROM {{lock}} f WHERE f.name = ''), 0),
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
       owner IS NOT NULL AND expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
  FROM {{lock}} WHERE name = :name AND name <> '';

-- name: add_entry(name, owner, token, seen, before, lease) -> matched
-- :before is all of the text that comes before the end of the new entry.
UPDATE {{lock}}
   SET entries = CONCAT(:before, LPAD(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :lease, 16, '0'), ';'),
       expires_at = GREATEST(expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :lease)
 WHERE name = :name AND owner = :owner AND token = :token AND entries = :seen;

-- name: replace(name, owner, token, seen, new_owner, new_token, label, actor, mark, lease, at_least, meta) -> matched
UPDATE {{lock}}
   SET owner = :new_owner, token = :new_token, label = :label, actor = :actor,
       entries = CONCAT(:mark, LPAD(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :lease, 16, '0'), ';'),
       acquired_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
       expires_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :lease,
       reopens_at = IF(:at_least = 0, 0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :at_least),
       lease_us = :lease, meta = :meta
 WHERE name = :name AND owner = :owner AND token = :token AND entries = :seen;

-- name: drop_entry(name, owner, token, seen, others) -> matched
UPDATE {{lock}} SET entries = :others
 WHERE name = :name AND owner = :owner AND token = :token AND entries = :seen;

-- name: drop_last_entry(name, owner, token, seen) -> wanted
UPDATE {{lock}} SET actor = owner, owner = NULL, entries = '', meta = '',
       expires_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
       wanted_until = wanted_until
                      + 0 * LAST_INSERT_ID(1 + (wanted_until > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
 WHERE name = :name AND owner = :owner AND token = :token AND entries = :seen;

-- name: renew_entry(name, owner, token, mark, lease, at_least) -> wanted
-- :mark is ;<id>= and the end after it is written over by a later one, whatever the other entries are. The row lives as
-- long as the longest of them. :at_least is as in extend.
UPDATE {{lock}}
   SET expires_at = GREATEST(expires_at + 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :lease)
                    + 0 * LAST_INSERT_ID(1 + EXISTS (SELECT 1 FROM {{waiter}} w
                                            WHERE w.name = :name AND w.owner <> :owner
                                              AND (w.ticket = 0 OR w.ticket > {{lock}}.served_ticket)
                                              AND w.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))),
       reopens_at = IF(:at_least = 0, reopens_at, GREATEST(reopens_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :at_least)),
       entries = INSERT(entries, LOCATE(:mark, entries) + CHAR_LENGTH(:mark), 16,
                        GREATEST(LPAD(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :lease, 16, '0'),
                                 SUBSTRING(entries, LOCATE(:mark, entries) + CHAR_LENGTH(:mark), 16)))
 WHERE name = :name AND owner = :owner AND token = :token AND LOCATE(:mark, entries) > 0;
