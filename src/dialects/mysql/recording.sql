-- How MySQL and MariaDB write a row of history for each grant that ends, by triggers, in the transaction that
-- ends it. schema/README.md says what the columns mean. The names filled in here, beside those of tables: {{part_…}} a
-- trigger, {{history_index}} the index, {{recorder}} what the names of all triggers begin with. Whoever ends a grant needs no
-- right on the history: a trigger runs with the rights of who has made it. What LAST_INSERT_ID() says in a session, and how
-- many rows a statement has changed, is no different for what a trigger writes.

-- name: recording_parts(schema, lock, holder, lock_history, family, recorder)
-- What is there: 0, the table, with the number of parts that belong to it; 1, a part as it is made here; 2, one that is
-- not, or means something else in the sql_mode that it was made in, or was made for the same table in other letters
-- (its name comes from those) where the server does not tell them apart.
-- And the statement that takes it away. The comment of the table is a part, made last and taken away first.
SELECT 0, '', 4 FROM information_schema.tables WHERE table_schema = :schema AND table_name = :lock_history
UNION ALL
SELECT IF(table_comment = CONCAT('written by ', :recorder), 1, 2), '', 0 FROM information_schema.tables
 WHERE table_schema = :schema AND table_name = :lock_history AND table_comment LIKE 'written by %'
UNION ALL
SELECT IF(LEFT(trigger_name, CHAR_LENGTH(:recorder)) = :recorder AND event_object_table IN (:lock, :holder)
          AND sql_mode NOT LIKE '%EMPTY_STRING_IS_NULL%' AND sql_mode NOT LIKE '%HIGH_NOT_PRECEDENCE%', 1, 2),
       CONCAT('DROP TRIGGER `', REPLACE(trigger_schema, '`', '``'), '`.`', trigger_name, '`'), 0
  FROM information_schema.triggers
 WHERE trigger_schema = :schema
   AND (LEFT(trigger_name, CHAR_LENGTH(:family)) = :family
        OR (@@lower_case_table_names <> 0 AND LEFT(trigger_name, 14) = 'dlock_history_'
            AND event_object_table IN (:lock, :holder)))
 ORDER BY 2;

-- name: recording_probe()
SELECT id, name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason FROM {{lock_history}} WHERE 1 = 0;

-- name: recording_table()
-- Only ever appended to and cut off at its old end; with no rule that a row could break, since a row that cannot be written
-- would keep a grant from ending. No two who append wait for each other: the order is that of time, since AUTO_INCREMENT may
-- lock the table for as long as a statement takes that inserts what it selects; and of one statement, whose time stands still,
-- that of a number in the session.
CREATE TABLE IF NOT EXISTS {{lock_history}} (
  id BIGINT NOT NULL,
  name VARBINARY(255) NOT NULL,
  mode VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  token BIGINT NOT NULL,
  owner CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  node VARCHAR(255) NOT NULL,
  label VARCHAR(255) NOT NULL,
  acquired_at BIGINT NOT NULL,
  ended_at BIGINT NOT NULL,
  outcome VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  reason VARCHAR(255) NOT NULL,
  PRIMARY KEY (id, name, token, owner),
  KEY {{history_index}} (name, token)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- name: recording_undone()
ALTER TABLE {{lock_history}} COMMENT = '';

-- name: recording_done()
ALTER TABLE {{lock_history}} COMMENT = 'written by {{recorder}}';

-- name: recording_hold()
-- While triggers are replaced: between the old and the new ones nobody writes.
LOCK TABLES {{lock}} WRITE, {{holder}} WRITE;

-- name: recording_let_go()
UNLOCK TABLES;

-- name: recording_of_lock()
-- A row that several hold tells of none of them: each is told when its own row goes, and those that are ended all at once, whose
-- rows stay for a while, here.
CREATE TRIGGER {{part_lock}} AFTER UPDATE ON {{lock}} FOR EACH ROW
BEGIN
  DECLARE held_by_several, shared_now, told, given_back BOOLEAN;
  DECLARE moment BIGINT;
  IF NEW.name <> '' AND (NEW.owner IS NULL OR NOT NEW.owner <=> OLD.owner)
     AND (NEW.token <> OLD.token OR (OLD.owner IS NOT NULL AND NEW.owner IS NULL)) THEN
    SET held_by_several = OLD.mode <> '', shared_now = NEW.mode <> '',
        moment = {{now}},
        told = NEW.owner IS NULL AND NEW.ended_token = NEW.token AND NEW.token <> OLD.token,
        given_back = NEW.owner IS NULL AND NEW.token = OLD.token;
    SET @dlock_history = (COALESCE(@dlock_history, CONNECTION_ID()) + 1) & 1023;
    IF OLD.owner IS NOT NULL AND NOT held_by_several THEN
      INSERT INTO {{lock_history}} (id, name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason)
      VALUES (moment * 1024 + @dlock_history, OLD.name, 'exclusive', OLD.token, OLD.owner, OLD.node,
              OLD.label, OLD.acquired_at, IF(told OR given_back, NEW.expires_at, LEAST(OLD.expires_at, moment)),
              CASE WHEN told THEN NEW.outcome WHEN given_back THEN 'released'
                   WHEN OLD.expires_at > moment THEN 'released' ELSE 'taken_over' END,
              IF(told, NEW.reason, ''));
    ELSEIF OLD.owner IS NOT NULL AND (told OR (NEW.owner IS NOT NULL AND shared_now)) THEN
      INSERT INTO {{lock_history}} (id, name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason)
      SELECT moment * 1024 + @dlock_history, h.name, h.mode, h.token, h.owner, h.node, h.label, h.acquired_at,
             moment, IF(told, NEW.outcome, 'taken_over'), IF(told, NEW.reason, '')
        FROM {{holder}} h
       WHERE h.name = OLD.name AND h.gate = OLD.owner AND h.token > 0 AND h.expires_at > moment
       ORDER BY h.token;
    END IF;
    IF NEW.owner IS NULL AND NEW.token <> OLD.token AND NOT told THEN
      INSERT INTO {{lock_history}} (id, name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason)
      VALUES (moment * 1024 + @dlock_history, NEW.name, 'exclusive', NEW.token, '', NEW.node, NEW.label,
              NEW.acquired_at, NEW.expires_at, 'released', '');
    END IF;
  END IF;
END;

-- name: recording_of_holders()
-- Whose lease is over has expired, also if it gives back late what it had no more.
CREATE TRIGGER {{part_gone}} AFTER DELETE ON {{holder}} FOR EACH ROW
BEGIN
  DECLARE moment BIGINT DEFAULT {{now}};
  IF OLD.token > 0 AND NOT EXISTS (SELECT 1 FROM {{lock_history}} e FORCE INDEX ({{history_index}})
                                    WHERE e.name = OLD.name AND e.token = OLD.token AND e.owner = OLD.owner) THEN
    SET @dlock_history = (COALESCE(@dlock_history, CONNECTION_ID()) + 1) & 1023;
    INSERT INTO {{lock_history}} (id, name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason)
    VALUES (moment * 1024 + @dlock_history, OLD.name, OLD.mode, OLD.token, OLD.owner, OLD.node, OLD.label, OLD.acquired_at,
            LEAST(OLD.expires_at, moment), IF(OLD.expires_at > moment, 'released', 'expired'), '');
  END IF;
END;

-- name: recording_of_leaving()
CREATE TRIGGER {{part_left}} AFTER UPDATE ON {{holder}} FOR EACH ROW
BEGIN
  DECLARE moment BIGINT DEFAULT {{now}};
  IF OLD.token > 0 AND NEW.token <> OLD.token
     AND NOT EXISTS (SELECT 1 FROM {{lock_history}} e FORCE INDEX ({{history_index}})
                      WHERE e.name = OLD.name AND e.token = OLD.token AND e.owner = OLD.owner) THEN
    SET @dlock_history = (COALESCE(@dlock_history, CONNECTION_ID()) + 1) & 1023;
    INSERT INTO {{lock_history}} (id, name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason)
    VALUES (moment * 1024 + @dlock_history, OLD.name, OLD.mode, OLD.token, OLD.owner, OLD.node, OLD.label, OLD.acquired_at,
            LEAST(OLD.expires_at, moment), IF(OLD.expires_at > moment, 'released', 'expired'), '');
  END IF;
END;

-- name: recording_forget()
DROP TRIGGER IF EXISTS {{part_lock}};
DROP TRIGGER IF EXISTS {{part_gone}};
DROP TRIGGER IF EXISTS {{part_left}};

-- name: recording_drop()
DROP TABLE IF EXISTS {{lock_history}};

-- name: recording_print(statement)
-- For the client, which cuts its input at every semicolon. The last one here is the end of this statement.
DELIMITER //
:statement //
DELIMITER ;;

-- name: recording_grants(role)
-- Never run: printed where a right is missing. The last is for replacing triggers.
GRANT SELECT, TRIGGER ON {{lock}} TO :role;
GRANT SELECT, TRIGGER ON {{holder}} TO :role;
GRANT CREATE, ALTER, DROP, SELECT, INSERT ON {{lock_history}} TO :role;
GRANT LOCK TABLES ON {{schema}}.* TO :role;
