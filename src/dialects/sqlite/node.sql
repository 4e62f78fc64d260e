-- The entries of a node on SQLite, who share the lease of one row: ;<id>=<end>;<id>=<end>; with ends of 16 digits. They
-- are written only as long as they are what was read (:seen), so that two who write at once do not undo each other.

-- name: entries(name)
SELECT owner, node, entries, token, coalesce((SELECT f.token FROM {{lock}} AS f WHERE f.name = ''), 0), now,
       owner IS NOT NULL AND expires_at > now
  FROM (SELECT *, strftime('%s', 'now') * 1000000 + substr(strftime('%f', 'now'), 4) * 1000 AS now
          FROM {{lock}} WHERE name = :name AND name <> '');

-- name: add_entry(name, owner, token, seen, before, lease)
-- :before is all of the text that comes before the end of the new entry.
UPDATE {{lock}}
   SET entries = :before || printf('%016d', strftime('%s', 'now') * 1000000 + substr(strftime('%f', 'now'), 4) * 1000 + :lease) || ';',
       expires_at = max(expires_at, strftime('%s', 'now') * 1000000 + substr(strftime('%f', 'now'), 4) * 1000 + :lease)
 WHERE name = :name AND owner = :owner AND token = :token AND entries = :seen;

-- name: replace(name, owner, token, seen, new_owner, new_token, label, actor, mark, lease, at_least, meta)
UPDATE {{lock}}
   SET owner = :new_owner, token = :new_token, label = :label, actor = :actor,
       entries = :mark || printf('%016d', strftime('%s', 'now') * 1000000 + substr(strftime('%f', 'now'), 4) * 1000 + :lease) || ';',
       acquired_at = strftime('%s', 'now') * 1000000 + substr(strftime('%f', 'now'), 4) * 1000,
       expires_at = strftime('%s', 'now') * 1000000 + substr(strftime('%f', 'now'), 4) * 1000 + :lease,
       reopens_at = CASE WHEN :at_least = 0 THEN 0
                         ELSE strftime('%s', 'now') * 1000000 + substr(strftime('%f', 'now'), 4) * 1000 + :at_least END,
       lease_us = :lease, meta = :meta
 WHERE name = :name AND owner = :owner AND token = :token AND entries = :seen;

-- name: drop_entry(name, owner, token, seen, others)
UPDATE {{lock}} SET entries = :others
 WHERE name = :name AND owner = :owner AND token = :token AND entries = :seen;

-- name: drop_last_entry(name, owner, token, seen)
UPDATE {{lock}}
   SET owner = NULL, entries = '', meta = '', actor = owner,
       expires_at = strftime('%s', 'now') * 1000000 + substr(strftime('%f', 'now'), 4) * 1000
 WHERE name = :name AND owner = :owner AND token = :token AND entries = :seen;

-- name: renew_entry(name, owner, token, mark, lease, at_least)
-- :mark is ;<id>= and the end after it is written over by a later one, whatever the other entries are. The row lives as
-- long as the longest of them. :at_least is as in extend.
UPDATE {{lock}}
   SET entries = substr(entries, 1, instr(entries, :mark) + length(:mark) - 1)
                 || max(printf('%016d', strftime('%s', 'now') * 1000000 + substr(strftime('%f', 'now'), 4) * 1000 + :lease),
                        substr(entries, instr(entries, :mark) + length(:mark), 16))
                 || substr(entries, instr(entries, :mark) + length(:mark) + 16),
       expires_at = max(expires_at, strftime('%s', 'now') * 1000000 + substr(strftime('%f', 'now'), 4) * 1000 + :lease),
       reopens_at = CASE WHEN :at_least = 0 THEN reopens_at
                         ELSE max(reopens_at, strftime('%s', 'now') * 1000000 + substr(strftime('%f', 'now'), 4) * 1000 + :at_least) END
 WHERE name = :name AND owner = :owner AND token = :token AND instr(entries, :mark) > 0
RETURNING EXISTS (SELECT 1 FROM {{waiter}} AS w
                   WHERE w.name = :name AND w.owner <> :owner AND (w.ticket = 0 OR w.ticket > served_ticket)
                     AND w.expires_at > strftime('%s', 'now') * 1000000 + substr(strftime('%f', 'now'), 4) * 1000);
