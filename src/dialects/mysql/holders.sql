-- How several hold one name on MySQL and MariaDB: readers, those who have permits, the entries of a node.
-- schema/README.md says what the columns mean; fragments.sql how now is read. Nothing here may need MariaDB: no
-- RETURNING.
--
-- Each holder has a row of its own, and the lock's row is the gate: its owner is none of theirs but the gate that their
-- rows name, its mode says how it is held, its token grows with each of them, and it ends when the last of them does. So
-- whoever asks exclusively looks at nothing else. Who may hold is decided and written with the gate locked.
-- A holder whose gate is not the owner of the lock's row holds nothing any more, however late it ends.
-- The entries of a node have its token, the gate's: to others they are one holder. Its at-least time is the gate's as well,
-- and its metadata is written there too.
--
-- A gate that is locked elsewhere is waited for a moment.
--
-- MySQL may answer a SELECT that it has interrupted (KILL QUERY, max_execution_time), and without an error: what it
-- had not asked yet of a subquery among the values is NULL then, or false. So nothing that is kept or decided here is
-- the value of one: what a join reads is an error then, as is an UPDATE or a DELETE.
-- A cluster may undo the transaction between two statements of a packet, and MariaDB tells nobody: what comes later writes
-- nothing outside of it, or what is right by itself, and the answer is read behind the COMMIT, where it is told from what
-- could not be done: -1 is to be repeated. A lease that was there before proves nothing: it has to end late enough. See
-- draw_ticket.
--
-- A server of a cluster that is behind may not know of a holder yet. A packet that finds none is run again when it has
-- caught up: what is "matched" answers no row then, and what is "counted" answers 0 first. See lock.sql.

-- name: add_holder(name, owner, gate, node, label, actor, lease, at_least, meta, mode, permits, limit, ticket, alone) -> packet
-- Makes the gate where there is none, locks it, takes out who is counted no more, and adds the holder where it may come in;
-- then the gate says so, if it is still as it was seen: the holder's token is larger than the gate's. Only after that it names
-- the newest holder: until then, what a trigger sees of a row that is taken over is who had it. The answer is the token;
-- 0: busy; -1: the gate was removed meanwhile, or what was written has been undone; and no row without the floor row. Once
-- more by the same owner, or late: it has the same token, and its lease ends no sooner; who has given it back (a row
-- without a gate) is refused.
-- A permit that is over is taken out by who asks for permits, so that it cannot be renewed after that; others are counted
-- by nobody, and only go with the others of their gate. Whose lease was over is marked for the reaper: its gate is '-', its
-- token negated, its acquired_at the moment of that; marks older than a day, and all but the newest 100, go then. Each
-- statement has a moment of its own: what was not over at that of the mark is left. Tickets are as in acquire, but for who
-- comes in where its node is already: it waits for nobody. Where :alone is not 0 it makes a gate of its own there, unless
-- its engine (the first half of the actor) is in: the others of its node are out.
START TRANSACTION;
SET @dlock_gate = '', @dlock_token = 0, @dlock_begun = 0, @dlock_until = 0, @dlock_seen = 0, @dlock_before = NULL, @dlock_end = 0,
    @dlock_came = 0, @dlock_now = {{now}};
INSERT INTO {{lock}} (name, token, expires_at)
SELECT :name, f.token + 1, {{now}} FROM {{lock}} f
 WHERE f.name = '' AND NOT EXISTS (SELECT 1 FROM {{lock}} l WHERE l.name = :name)
ON DUPLICATE KEY UPDATE token = {{lock}}.token;
/*M! SET STATEMENT max_statement_time = 0.05 FOR */
SELECT /*+ MAX_EXECUTION_TIME(50) */ l.token, l.owner, IF(l.owner IS NULL, 0, l.expires_at) INTO @dlock_seen, @dlock_before, @dlock_end FROM {{lock}} l WHERE l.name = :name FOR UPDATE;
UPDATE {{holder}} h JOIN {{lock}} l ON l.name = h.name SET h.gate = '-', h.token = -h.token, h.permits = 0, h.acquired_at = {{now}}
 WHERE h.name = :name AND (:mode = _binary 'permits' AND l.mode = :mode OR l.owner IS NULL OR GREATEST(l.expires_at, l.reopens_at) <= {{now}}) AND h.token > 0
   AND IF(l.owner IS NULL OR l.expires_at <= {{now}} OR h.gate <> l.owner, h.expires_at,
          GREATEST(h.expires_at, h.reopens_at)) <= {{now}} /*M! AND @@in_transaction = 1 */;
DELETE h FROM {{holder}} h JOIN {{lock}} l ON l.name = h.name
 WHERE h.name = :name AND (:mode = _binary 'permits' AND l.mode = :mode OR l.owner IS NULL OR GREATEST(l.expires_at, l.reopens_at) <= {{now}})
   AND CASE WHEN h.gate = '' THEN h.expires_at <= {{now}}
            WHEN h.token < 0 THEN h.acquired_at <= {{now}} - 86400000000
                   OR h.acquired_at < (SELECT t.acquired_at FROM (SELECT m.acquired_at FROM {{holder}} m
                                                                   WHERE m.name = :name AND m.token < 0
                                                                   ORDER BY m.acquired_at DESC LIMIT 99, 1) t)
            WHEN l.owner IS NULL OR l.expires_at <= {{now}} OR h.gate <> l.owner THEN h.token = 0 OR h.expires_at > {{now}}
            ELSE h.token = 0 AND GREATEST(h.expires_at, h.reopens_at) <= {{now}} END /*M! AND @@in_transaction = 1 */;
UPDATE {{holder}} h JOIN {{lock}} l ON l.name = h.name AND l.owner = h.gate
   SET h.expires_at = GREATEST(h.expires_at + 1, {{now}} + :lease), h.lease_us = GREATEST(h.lease_us, :lease)
 WHERE h.name = :name AND h.owner = :owner AND h.token > 0 /*M! AND @@in_transaction = 1 */;
INSERT INTO {{holder}} (name, owner, gate, token, mode, permits, permit_limit, node, label, actor, meta, acquired_at, expires_at,
                        reopens_at, lease_us)
SELECT l.name, :owner, IF(l.joins, l.owner, :gate), IF(l.joins AND :mode = _binary 'node', l.token, GREATEST(l.token, f.token) + 1),
       :mode, IF(:mode = _binary 'permits', :permits, 0), :limit, :node, :label, :actor, :meta, {{now}}, {{now}} + :lease,
       IF(:at_least = 0 OR :mode = _binary 'node', 0, {{now}} + :at_least), :lease
  FROM (SELECT b.*, b.owner IS NOT NULL AND b.expires_at > {{now}} AS live,
               b.owner IS NOT NULL AND b.expires_at > {{now}}
               AND (:alone = 0 OR EXISTS (SELECT 1 FROM {{holder}} x
                                           WHERE x.name = b.name AND x.gate = b.owner AND x.token > 0
                                             AND x.expires_at > {{now}}
                                             AND LEFT(x.actor, 16) = LEFT(:actor, 16))) AS joins
          FROM {{lock}} b WHERE b.name = :name) l JOIN {{lock}} f ON f.name = ''
 WHERE IF(l.live, l.mode = :mode AND (:mode <> _binary 'node' OR l.node = :node),
          l.reopens_at <= {{now}}) /*M! AND @@in_transaction = 1 */
   AND NOT EXISTS (SELECT 1 FROM {{holder}} x
                    WHERE x.name = :name AND x.owner = :owner
                      AND (x.gate = '' OR (l.live AND (x.gate = l.owner OR x.token > 0))))
   AND (:mode <> _binary 'permits'
        OR :permits <= :limit - (SELECT COALESCE(SUM(x.permits), 0) FROM {{holder}} x
                                  WHERE l.live AND x.name = :name AND x.gate = l.owner))
   AND (l.next_ticket <= l.served_ticket OR (l.live AND :mode = _binary 'node')
        OR NOT EXISTS (SELECT 1 FROM {{waiter}} w
                        WHERE w.name = :name AND w.ticket > l.served_ticket AND w.expires_at > {{now}}
                          AND (:ticket <= l.served_ticket OR w.ticket < :ticket)))
ON DUPLICATE KEY UPDATE
  gate = VALUES(gate), token = VALUES(token), mode = VALUES(mode), permits = VALUES(permits), permit_limit = VALUES(permit_limit),
  node = VALUES(node), label = VALUES(label), actor = VALUES(actor), meta = VALUES(meta), acquired_at = VALUES(acquired_at),
  expires_at = VALUES(expires_at), reopens_at = VALUES(reopens_at), lease_us = VALUES(lease_us);
SELECT h.gate, h.token, h.acquired_at, GREATEST(h.expires_at, h.reopens_at)
  INTO @dlock_gate, @dlock_token, @dlock_begun, @dlock_until
  FROM {{holder}} h WHERE h.name = :name AND h.owner = :owner;
UPDATE {{lock}}
   SET acquired_at = IF(owner <=> @dlock_gate, acquired_at, @dlock_begun),
       lease_us = IF(owner <=> @dlock_gate, GREATEST(lease_us, :lease), :lease),
       expires_at = IF(owner <=> @dlock_gate, GREATEST(expires_at + 1, @dlock_until), @dlock_until),
       served_ticket = IF(:mode = _binary 'node' AND @dlock_end > @dlock_begun, served_ticket, GREATEST(served_ticket, :ticket)),
       mode = :mode, actor = '', owner = @dlock_gate, token = GREATEST(token, @dlock_token),
       next_ticket = GREATEST(next_ticket, :ticket)
 WHERE name = :name AND @dlock_token > 0 /*M! AND @@in_transaction = 1 */
   AND (owner = @dlock_gate OR (@dlock_gate = :gate AND @dlock_token > token));
SET @dlock_came = ROW_COUNT() > 0 /*M! OR @@in_transaction = 0 */;
UPDATE {{lock}} l JOIN {{holder}} h ON h.name = l.name AND h.owner = :owner AND h.gate = l.owner
   SET l.node = IF(h.token > @dlock_seen, h.node, l.node), l.label = IF(h.token > @dlock_seen, h.label, l.label),
       l.meta = IF(@dlock_before <=> h.gate, l.meta, IF(:mode = _binary 'node', h.meta, '')),
       l.reopens_at = IF(:mode = _binary 'node' AND :at_least > 0, GREATEST(l.reopens_at, h.acquired_at + :at_least), l.reopens_at)
 WHERE l.name = :name AND h.token > 0 /*M! AND @@in_transaction = 1 */;
COMMIT;
SELECT CASE WHEN h.gate <=> l.owner AND h.token > 0 THEN IF(h.expires_at >= @dlock_now + :lease, h.token, -1)
            WHEN l.name IS NULL OR @dlock_came THEN -1 ELSE 0 END,
       COALESCE(h.gate <=> l.owner AND h.token > 0 AND :ticket > 0 AND l.wanted_until > {{now}}, 0)
  FROM {{lock}} f LEFT JOIN {{lock}} l ON l.name = :name LEFT JOIN {{holder}} h ON h.name = l.name AND h.owner = :owner
 WHERE f.name = '';

-- name: drop_holder(name, owner, token, refused) -> packet counted
-- The gate ends with the longest of those who are left, and is free when nobody is. Within its at-least time the holder's
-- place stays taken, by nobody. Without a token (0) whatever the owner has is dropped, or all but what has this one, negative;
-- and where :refused is not 0 it is not granted the name any more for so long. Those whose lease is over keep no gate closed.
-- The gate's end always moves, since an update that changes nothing writes nothing: of two who go at once through servers of a
-- cluster one is refused, and neither leaves a gate behind that is kept by the other.
-- The answer: whether it was there, or that it is refused from now on; whether somebody waits, who listens to one of the
-- holders at a time, and whether others of its node hold the name.
START TRANSACTION;
SET @dlock_gate = NULL, @dlock_until = NULL, @dlock_others = 0, @dlock_left = 0;
INSERT INTO {{lock}} (name, token, expires_at)
SELECT :name, f.token + 1, {{now}} FROM {{lock}} f
 WHERE f.name = '' AND :refused > 0 AND NOT EXISTS (SELECT 1 FROM {{lock}} l WHERE l.name = :name)
ON DUPLICATE KEY UPDATE token = {{lock}}.token;
/*M! SET STATEMENT max_statement_time = 0.05 FOR */
SELECT /*+ MAX_EXECUTION_TIME(50) */ l.token INTO @dlock_seen FROM {{lock}} l WHERE l.name = :name FOR UPDATE;
DELETE h FROM {{holder}} h LEFT JOIN {{lock}} l ON l.name = h.name AND l.owner = h.gate
 WHERE h.name = :name AND h.owner = :owner AND h.gate <> '' AND l.name IS NULL /*M! AND @@in_transaction = 1 */;
SELECT m.gate, MAX(IF(h.owner = :owner, h.reopens_at, GREATEST(h.expires_at, h.reopens_at))),
       COALESCE(SUM(h.token > 0 AND h.owner <> :owner), 0) INTO @dlock_gate, @dlock_until, @dlock_others
  FROM {{holder}} m LEFT JOIN {{holder}} h ON h.name = m.name AND h.gate = m.gate
       AND IF(h.owner = :owner, h.reopens_at, GREATEST(h.expires_at, h.reopens_at)) > {{now}}
 WHERE m.name = :name AND m.owner = :owner AND m.gate <> '' AND IF(:token <= 0, m.token > 0 AND m.token <> (0 - :token), m.token = :token)
 GROUP BY m.gate;
UPDATE {{lock}} l JOIN {{holder}} m ON m.name = l.name AND m.owner = :owner
   SET l.node = m.node, l.label = m.label
 WHERE l.name = :name AND l.owner = @dlock_gate AND (@dlock_until IS NULL OR @dlock_others = 0) /*M! AND @@in_transaction = 1 */;
UPDATE {{lock}}
   SET mode = IF(@dlock_until IS NULL, '', mode), meta = IF(@dlock_until IS NULL, '', meta),
       expires_at = COALESCE(@dlock_until + (expires_at = @dlock_until), {{now}}),
       owner = IF(@dlock_until IS NULL, NULL, owner)
 WHERE name = :name AND owner = @dlock_gate /*M! AND @@in_transaction = 1 */;
UPDATE {{holder}} SET token = 0, expires_at = reopens_at, lease_us = GREATEST(0, {{now}} - acquired_at)
 WHERE name = :name AND owner = :owner AND gate <> '' AND reopens_at > {{now}}
   AND IF(:token <= 0, token > 0 AND token <> (0 - :token), token = :token) /*M! AND @@in_transaction = 1 */;
SET @dlock_left = @dlock_left + ROW_COUNT();
INSERT INTO {{holder}} (name, owner, gate, token, expires_at)
SELECT :name, :owner, '', 0, {{now}} + :refused FROM {{lock}} f
 WHERE f.name = '' AND :refused > 0 /*M! AND @@in_transaction = 1 */
   AND NOT EXISTS (SELECT 1 FROM {{holder}} k
                    WHERE k.name = :name AND k.owner = :owner
                      AND ((k.token = (0 - :token) AND k.token > 0) OR (k.gate <> '' AND k.token = 0 AND k.reopens_at > {{now}})))
ON DUPLICATE KEY UPDATE gate = '', token = 0, permits = 0, expires_at = VALUES(expires_at), reopens_at = 0;
DELETE FROM {{holder}}
 WHERE name = :name AND owner = :owner AND :refused = 0
   AND IF(:token <= 0, token > 0 AND token <> (0 - :token), token = :token) /*M! AND @@in_transaction = 1 */;
SET @dlock_left = @dlock_left + ROW_COUNT();
COMMIT;
SELECT CASE WHEN :refused > 0 AND f.name IS NULL THEN 1
            WHEN h.token > 0 AND IF(:token <= 0, h.token <> (0 - :token), h.token = :token) THEN -1
            WHEN :refused = 0 THEN @dlock_left > 0 WHEN h.name IS NOT NULL THEN 1 ELSE -1 END,
       COALESCE(l.wanted_until > {{now}}, 0), COALESCE(l.mode = 'node' AND l.token = :token, 0)
  FROM (SELECT 1 AS one) o LEFT JOIN {{lock}} f ON f.name = '' LEFT JOIN {{lock}} l ON l.name = :name
       LEFT JOIN {{holder}} h ON h.name = :name AND h.owner = :owner;

-- name: renew_holders(name, owner, token, lease) -> matched
-- As renew, with the holders as a list of tuples at /*rows*/. The gate is locked with the holder; one that is locked
-- elsewhere is skipped. What is told of those who wait is the same for all holders of a name, and is read once: who holds it
-- waits no more.
SET @dlock_now = {{now}};
START TRANSACTION;
INSERT INTO {{holder}}
SELECT h.* FROM {{holder}} h JOIN {{lock}} l ON l.name = h.name AND l.owner = h.gate
 WHERE (h.name, h.owner, h.token) IN (/*rows*/) /*M! AND @@in_transaction = 1 */
 ORDER BY h.name, h.owner FOR UPDATE SKIP LOCKED
ON DUPLICATE KEY UPDATE expires_at = GREATEST({{holder}}.expires_at + 1, {{now}} + :lease);
UPDATE {{lock}} l
       JOIN (SELECT h.name, h.gate, MAX(GREATEST(h.expires_at, h.reopens_at)) AS until FROM {{holder}} h
              WHERE (h.name, h.owner, h.token) IN (/*rows*/) AND h.expires_at >= @dlock_now + :lease
              GROUP BY h.name, h.gate) r ON r.name = l.name AND r.gate = l.owner
   SET l.expires_at = GREATEST(l.expires_at + 1, r.until) WHERE true /*M! AND @@in_transaction = 1 */;
COMMIT;
SELECT h.owner,
       IF(h.expires_at >= @dlock_now + :lease AND l.expires_at >= h.expires_at,
          1 + COALESCE(q.said, 0), 0)
  FROM {{holder}} h JOIN {{lock}} l ON l.name = h.name AND l.owner = h.gate
       LEFT JOIN (SELECT w.name, GREATEST(0, MAX(@dlock_now - w.since)) * 4
                                 + MAX(CASE w.wants WHEN 'shared' THEN 1 WHEN 'permits' THEN 2 ELSE 3 END) AS said
                    FROM {{waiter}} w JOIN {{lock}} g ON g.name = w.name
                         LEFT JOIN {{holder}} m ON m.name = w.name AND m.owner = w.owner AND m.gate = g.owner
                   WHERE w.name IN (/*rows 1*/) AND m.owner IS NULL AND (w.ticket = 0 OR w.ticket > g.served_ticket)
                     AND w.expires_at > @dlock_now
                   GROUP BY w.name) q ON q.name = h.name
 WHERE (h.name, h.owner, h.token) IN (/*rows*/);

-- name: extend_holder(name, owner, token, lease, at_least) -> packet matched
SET @dlock_now = {{now}};
START TRANSACTION;
/*M! SET STATEMENT max_statement_time = 0.05 FOR */
SELECT /*+ MAX_EXECUTION_TIME(50) */ l.token INTO @dlock_seen FROM {{lock}} l WHERE l.name = :name FOR UPDATE;
UPDATE {{holder}} h JOIN {{lock}} l ON l.name = h.name AND l.owner = h.gate
   SET h.lease_us = :lease, h.expires_at = GREATEST(h.expires_at + 1, {{now}} + :lease),
       h.reopens_at = IF(:at_least = 0 OR l.mode = 'node', h.reopens_at, GREATEST(h.reopens_at, {{now}} + :at_least))
 WHERE h.name = :name AND h.owner = :owner AND h.token = :token AND h.token > 0 /*M! AND @@in_transaction = 1 */;
UPDATE {{lock}} l JOIN {{holder}} h ON h.name = l.name AND h.gate = l.owner
   SET l.expires_at = GREATEST(l.expires_at + 1, h.expires_at, h.reopens_at),
       l.reopens_at = IF(:at_least = 0 OR l.mode <> 'node', l.reopens_at, GREATEST(l.reopens_at, {{now}} + :at_least))
 WHERE h.name = :name AND h.owner = :owner AND h.token = :token AND h.token > 0 /*M! AND @@in_transaction = 1 */;
COMMIT;
SELECT IF(l.expires_at >= h.expires_at AND h.expires_at >= @dlock_now + :lease AND h.lease_us = :lease
          AND (:at_least = 0 OR IF(l.mode = 'node', l.reopens_at, h.reopens_at) >= @dlock_now + :at_least),
          COALESCE((SELECT GREATEST(0, MAX({{now}} - w.since)) * 4
                           + MAX(CASE w.wants WHEN 'shared' THEN 1 WHEN 'permits' THEN 2 ELSE 3 END)
                      FROM {{waiter}} w
                     WHERE w.name = :name AND (w.ticket = 0 OR w.ticket > l.served_ticket) AND NOT EXISTS (
                           SELECT 1 FROM {{holder}} m WHERE m.name = w.name AND m.owner = w.owner AND m.gate = l.owner)
                       AND w.expires_at > {{now}}), 0), -1)
  FROM {{holder}} h JOIN {{lock}} l ON l.name = h.name AND l.owner = h.gate
 WHERE h.name = :name AND h.owner = :owner AND h.token = :token AND h.token > 0;

-- name: update_holder_metadata(name, owner, token, meta, keep) -> matched
UPDATE {{holder}} h JOIN {{lock}} l ON l.name = h.name AND l.owner = h.gate
   SET h.meta = :meta, h.expires_at = h.expires_at + 1, l.expires_at = l.expires_at + 1, l.kept = IF(:keep = 0, l.kept, :meta),
       l.meta = IF(l.mode = 'node', :meta, l.meta)
 WHERE h.name = :name AND h.owner = :owner AND h.token = :token AND h.token > 0;

-- name: adopt_holder(name, owner, token, new_owner, node, label, actor, lease, meta) -> packet matched
-- As adopt. The answer is how many permits it has: 0 for a reader.
SET @dlock_now = {{now}};
START TRANSACTION;
/*M! SET STATEMENT max_statement_time = 0.05 FOR */
SELECT /*+ MAX_EXECUTION_TIME(50) */ l.token INTO @dlock_seen FROM {{lock}} l WHERE l.name = :name FOR UPDATE;
UPDATE {{holder}} h JOIN {{lock}} l ON l.name = h.name AND l.owner = h.gate
   SET h.owner = :new_owner, h.node = :node, h.label = :label, h.actor = :actor, h.lease_us = :lease,
       h.meta = IF(LENGTH(:meta) = 0, h.meta, :meta), h.expires_at = GREATEST(h.expires_at + 1, {{now}} + :lease)
 WHERE h.name = :name AND h.token = :token AND h.token > 0 AND h.owner IN (:owner, :new_owner) /*M! AND @@in_transaction = 1 */;
UPDATE {{lock}} l JOIN {{holder}} h ON h.name = l.name AND h.gate = l.owner
   SET l.expires_at = GREATEST(l.expires_at + 1, h.expires_at, h.reopens_at)
 WHERE h.name = :name AND h.owner = :new_owner AND h.token = :token /*M! AND @@in_transaction = 1 */;
COMMIT;
SELECT IF(h.owner = :new_owner AND l.expires_at >= h.expires_at AND h.expires_at >= @dlock_now + :lease, h.permits, -1)
  FROM {{holder}} h JOIN {{lock}} l ON l.name = h.name AND l.owner = h.gate
 WHERE h.name = :name AND h.owner IN (:owner, :new_owner) AND h.token = :token AND h.token > 0;

-- name: rename_holder(name, owner, token, actor)
UPDATE {{holder}} SET actor = :actor WHERE name = :name AND owner = :owner AND token = :token;

-- name: look_to_join(name, owner, mode, node, permits, limit, ticket)
-- As look, for who would come in beside others. The owner is answered where it is in already.
SELECT GREATEST(s.opens_at, s.queued_until) <= {{now}}, GREATEST(0, GREATEST(s.opens_at, s.queued_until) - {{now}}),
       s.queued_until > {{now}}, IF(s.live,
          IF(s.mode <> '',
             COALESCE((SELECT MAX(x.actor) FROM {{holder}} x WHERE x.name = :name AND x.gate = s.owner AND x.token > 0), ''),
             s.actor), ''), GREATEST(0, s.wanted_until - {{now}}),
       IF(s.live AND EXISTS (SELECT 1 FROM {{holder}} x
                              WHERE x.name = :name AND x.owner = :owner AND x.gate = s.owner AND x.token > 0), :owner, ''),
       s.token, s.live AND s.mode <> ''
  FROM (SELECT l.*, l.owner IS NOT NULL AND l.expires_at > {{now}} AS live,
               CASE WHEN l.owner IS NULL OR l.expires_at <= {{now}} THEN l.reopens_at
                    WHEN l.mode <> :mode OR (:mode = _binary 'node' AND l.node <> :node) THEN GREATEST(l.reopens_at, l.expires_at)
                    WHEN :mode = _binary 'permits'
                         AND :permits > :limit - (SELECT COALESCE(SUM(x.permits), 0) FROM {{holder}} x
                                                   WHERE x.name = :name AND x.gate = l.owner
                                                     AND GREATEST(x.expires_at, x.reopens_at) > {{now}})
                      THEN COALESCE((SELECT MIN(GREATEST(x.expires_at, x.reopens_at)) FROM {{holder}} x
                                      WHERE x.name = :name AND x.gate = l.owner AND x.permits > 0
                                        AND GREATEST(x.expires_at, x.reopens_at) > {{now}}), l.expires_at)
                    ELSE 0 END AS opens_at,
               IF(l.next_ticket <= l.served_ticket
                  OR (:mode = _binary 'node' AND l.mode = :mode AND l.node = :node AND l.expires_at > {{now}}), 0,
                  COALESCE((SELECT MAX(w.expires_at) FROM {{waiter}} w
                             WHERE w.name = :name AND w.ticket > l.served_ticket AND w.expires_at > {{now}}
                               AND (:ticket <= l.served_ticket OR w.ticket < :ticket)), 0)) AS queued_until
          FROM {{lock}} l WHERE l.name = :name) s;

-- name: fence_holder(name, owner, token, lease, installation)
-- As fence: proves the gate and the holder by writing both, the gate first: two rows are changed, or none.
UPDATE {{lock}} l STRAIGHT_JOIN {{holder}} h ON h.name = l.name AND h.gate = l.owner
   SET l.expires_at = GREATEST(l.expires_at + 1, {{now}} + :lease),
       h.expires_at = GREATEST(h.expires_at + 1, {{now}} + :lease), h.acquired_at = h.acquired_at + 1
 WHERE l.name = :name AND h.name = :name AND h.owner = :owner AND h.token = :token;

-- name: fenced_holder(name, owner, token)
-- As fenced.
SELECT acquired_at FROM {{holder}} WHERE name = :name AND owner = :owner AND token = :token

-- name: fence_holder_text(name, owner, token, lease, installation)
-- The same for other drivers, to which one changed row is the proof: the holder's is locked, after the gate, and not written.
UPDATE {{lock}} l
   SET l.expires_at = GREATEST(l.expires_at + 1, {{now}} + :lease)
 WHERE l.name = :name
   AND EXISTS (SELECT 1 FROM {{holder}} h
                WHERE h.name = l.name AND h.owner = :owner AND h.token = :token AND h.gate = l.owner LOCK IN SHARE MODE);

-- name: holder_lease(name, owner, token) -> fresh
-- The length of a holder's lease; the gate's is that of the longest it has had.
SELECT h.lease_us FROM {{holder}} h JOIN {{lock}} l ON l.name = h.name AND l.owner = h.gate WHERE h.name = :name AND h.owner = :owner AND h.token = :token;

-- name: downgrade(name, owner, token, new_owner, gate, lease) -> packet matched
-- From the one holder to the first of those who share it, under the next token. Once more after an answer that was lost: it
-- is in already. Rows of earlier gates go or stay as where a gate is made by who comes in. The answer is its token.
START TRANSACTION;
/*M! SET STATEMENT max_statement_time = 0.05 FOR */
SELECT /*+ MAX_EXECUTION_TIME(50) */ l.token INTO @dlock_seen FROM {{lock}} l WHERE l.name = :name FOR UPDATE;
UPDATE {{lock}} l JOIN {{holder}} h ON h.name = l.name
   SET h.gate = '-', h.token = -h.token, h.permits = 0, h.acquired_at = {{now}}
 WHERE l.name = :name AND l.owner = :owner AND l.token = :token AND l.mode = ''
   AND h.token > 0 AND h.expires_at <= {{now}} /*M! AND @@in_transaction = 1 */;
DELETE h FROM {{lock}} l JOIN {{holder}} h ON h.name = l.name
 WHERE l.name = :name AND l.owner = :owner AND l.token = :token AND l.mode = '' AND h.gate <> ''
   AND (h.token = 0 OR h.token > 0 AND h.expires_at > {{now}}) /*M! AND @@in_transaction = 1 */;
INSERT INTO {{holder}} (name, owner, gate, token, node, label, actor, meta, acquired_at, expires_at, reopens_at, lease_us)
SELECT l.name, :new_owner, :gate, l.token + 1, l.node, l.label, l.actor, l.meta, {{now}}, GREATEST(l.expires_at, {{now}} + :lease),
       l.reopens_at, l.lease_us
  FROM {{lock}} l WHERE l.name = :name AND l.owner = :owner AND l.token = :token AND l.mode = '' /*M! AND @@in_transaction = 1 */
ON DUPLICATE KEY UPDATE token = {{holder}}.token;
UPDATE {{lock}} l JOIN {{holder}} h ON h.name = l.name AND h.owner = :new_owner AND h.token = l.token + 1
   SET l.owner = h.gate, l.mode = 'shared', l.actor = '', l.meta = '', l.expires_at = GREATEST(h.expires_at, h.reopens_at),
       l.acquired_at = h.acquired_at, l.token = :token + 1
 WHERE l.name = :name AND l.owner = :owner AND l.token = :token AND l.mode = '' /*M! AND @@in_transaction = 1 */;
COMMIT;
SELECT COALESCE(h.token, -1) FROM {{lock}} l LEFT JOIN {{holder}} h ON h.name = l.name AND h.owner = :new_owner
 WHERE l.name = :name AND IF(h.name IS NULL, l.owner = :owner AND l.token = :token AND l.mode = '',
                             h.gate = l.owner AND h.token = :token + 1);

-- name: upgrade(name, owner, token, new_owner, lease) -> packet matched
-- From the only one who shares it to its one holder, under the next token; others whose lease lasts keep it from that. Once
-- more after an answer that was lost: it is the holder already. The answer is its token.
START TRANSACTION;
/*M! SET STATEMENT max_statement_time = 0.05 FOR */
SELECT /*+ MAX_EXECUTION_TIME(50) */ l.token INTO @dlock_seen FROM {{lock}} l WHERE l.name = :name FOR UPDATE;
UPDATE {{lock}} l JOIN {{holder}} h ON h.name = l.name AND h.gate = l.owner
       LEFT JOIN {{holder}} x ON x.name = h.name AND x.gate = h.gate AND x.owner <> h.owner
                             AND GREATEST(x.expires_at, x.reopens_at) > {{now}}
   SET l.owner = :new_owner, l.mode = '', l.node = h.node, l.label = h.label, l.actor = h.actor, l.meta = h.meta,
       l.acquired_at = {{now}}, l.lease_us = h.lease_us, l.reopens_at = GREATEST(l.reopens_at, h.reopens_at),
       l.expires_at = GREATEST(h.expires_at, {{now}} + :lease), l.token = l.token + 1
 WHERE l.name = :name AND h.owner = :owner AND h.token = :token AND l.mode = 'shared' AND x.name IS NULL
       /*M! AND @@in_transaction = 1 */;
DELETE h FROM {{holder}} h JOIN {{lock}} l ON l.name = h.name AND l.owner = :new_owner
 WHERE h.name = :name AND h.owner = :owner;
COMMIT;
SELECT IF(l.owner = :new_owner, l.token, -1) FROM {{lock}} l
 WHERE l.name = :name
   AND (l.owner = :new_owner
        OR (l.mode = 'shared'
            AND EXISTS (SELECT 1 FROM {{holder}} h
                         WHERE h.name = l.name AND h.gate = l.owner AND h.owner = :owner AND h.token = :token)
            AND NOT EXISTS (SELECT 1 FROM {{holder}} x
                             WHERE x.name = l.name AND x.gate = l.owner AND x.owner <> :owner
                               AND GREATEST(x.expires_at, x.reopens_at) > {{now}})));

-- name: dead_holders(prefix, after, after_owner, limit)
-- Those whose lease was over for a minute, or is over and was of a gate that is gone, so that it cannot be renewed any more;
-- and what was left by those who gave it back. Who has a token never did.
SELECT h.name, h.owner, h.node, h.label, ABS(h.token), {{now}} - h.expires_at,
       h.token <> 0, h.expires_at
  FROM {{holder}} h
 WHERE GREATEST(h.expires_at, h.reopens_at) <= {{now}}
   AND (GREATEST(h.expires_at, h.reopens_at) <= {{now}} - 60000000 OR h.gate = ''
        OR NOT EXISTS (SELECT 1 FROM {{lock}} l WHERE l.name = h.name AND l.owner = h.gate))
   AND h.name >= :prefix AND LEFT(h.name, OCTET_LENGTH(:prefix)) = :prefix
   AND h.name >= :after AND (h.name > :after OR h.owner > :after_owner)
 ORDER BY h.name, h.owner LIMIT :limit;

-- name: dead_holders_of(name, after_owner, limit)
-- Of those who shared one name: who never let go of it, and holds nothing any more since its gate is gone.
SELECT h.name, h.owner, h.node, h.label, ABS(h.token), {{now}} - h.expires_at, 1, h.expires_at
  FROM {{holder}} h
 WHERE h.name = :name AND h.owner > :after_owner AND h.token <> 0 AND GREATEST(h.expires_at, h.reopens_at) <= {{now}}
   AND NOT EXISTS (SELECT 1 FROM {{lock}} l WHERE l.name = h.name AND l.owner = h.gate)
 ORDER BY h.owner LIMIT :limit;

-- name: forget_holder(name, owner, token, expires_at)
-- As it was seen: renewed since, it stays.
-- By the row's key alone: with a list, a small table is read from its beginning, and a row that is locked is in the way.
DELETE FROM {{holder}}
 WHERE name = :name AND owner = :owner AND ABS(token) = :token AND expires_at = :expires_at
   AND GREATEST(expires_at, reopens_at) <= {{now}};

-- name: gate(name, token)
-- Under which owner a name is held by several, if it is, and with this token; and the moment of that.
SELECT l.owner, {{now}} FROM {{lock}} l WHERE l.name = :name AND l.token = :token AND l.owner IS NOT NULL AND l.mode <> '';

-- name: drop_gate(name, gate, seen_at)
-- Those who lived when their gate was seen, which was ended by force then: nobody tells of them as dead.
DELETE FROM {{holder}} WHERE name = :name AND gate = :gate AND expires_at > :seen_at;

-- name: has_holder(name, owner, token) -> fresh
SELECT 1 FROM {{holder}} WHERE name = :name AND owner = :owner AND ABS(token) = :token;

-- name: forget_holders(name, owner)
-- With the holders as a list of tuples at /*rows*/.
DELETE FROM {{holder}}
 WHERE (name, owner) IN (/*rows*/) AND token = 0 AND GREATEST(expires_at, reopens_at) <= {{now}};
