-- How SQLite writes a row of history for each grant that ends, by triggers, in the transaction that ends it.
-- schema/README.md says what the columns mean. The names filled in here, beside those of tables: {{lock_name}}, {{holder_name}}
-- and {{lock_history_name}} the tables without the schema, since a file may be attached by any name; {{trigger_…}} a trigger,
-- {{part_…}} the same with the schema, {{history_index}} the index. Neither changes() nor RETURNING tells of what a trigger writes.

-- name: recording_parts(schema, lock, holder, lock_history, family, recorder)
-- What is there: 0, the table, with the number of parts that belong to it; 1, a part as it is made here; 2, one that is not.
-- And the statement that takes it away.
SELECT 0, '', 5 FROM main.sqlite_master WHERE :schema = 'main' AND type = 'table' AND name = :lock_history
UNION ALL
SELECT CASE WHEN substr(name, 1, length(:recorder)) = :recorder AND tbl_name IN (:lock, :holder) THEN 1 ELSE 2 END,
       'DROP TRIGGER main."' || name || '"', 0
  FROM main.sqlite_master WHERE type = 'trigger' AND substr(name, 1, length(:family)) = :family;

-- name: recording_probe()
SELECT id, name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason FROM {{lock_history}} WHERE 1 = 0;

-- name: recording_table()
-- Only ever appended to and cut off at its old end; with no rule that a row could break, since a row that cannot be written
-- would keep a grant from ending.
CREATE TABLE IF NOT EXISTS {{lock_history}} (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  mode TEXT NOT NULL,
  token INTEGER NOT NULL,
  owner TEXT NOT NULL,
  node TEXT NOT NULL,
  label TEXT NOT NULL,
  acquired_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  reason TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS {{history_index}} ON {{lock_history_name}} (name, token);

-- name: recording_of_lock()
-- A row that several hold tells of none of them: each is told when its own row goes, and those that are ended all at once, whose
-- rows stay for a while, by the second trigger. The third tells of a transaction's lock, which has no owner. In the order in
-- which they are made here the later ones come first.
CREATE TRIGGER {{trigger_transaction}} AFTER UPDATE ON {{lock_name}} FOR EACH ROW
WHEN NEW.name <> '' AND NEW.owner IS NULL AND NEW.token <> OLD.token AND NEW.ended_token <> NEW.token
BEGIN
  INSERT INTO {{lock_history_name}} (name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason)
  VALUES (NEW.name, 'exclusive', NEW.token, '', NEW.node, NEW.label, NEW.acquired_at, NEW.expires_at, 'released', '');
END;
CREATE TRIGGER {{trigger_several}} AFTER UPDATE ON {{lock_name}} FOR EACH ROW
WHEN NEW.name <> '' AND OLD.owner IS NOT NULL AND OLD.mode <> '' AND NEW.token <> OLD.token
     AND CASE WHEN NEW.owner IS NULL THEN NEW.ended_token = NEW.token ELSE NEW.owner <> OLD.owner AND NEW.mode <> '' END
BEGIN
  INSERT INTO {{lock_history_name}} (name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason)
  SELECT h.name, h.mode, h.token, h.owner, h.node, h.label, h.acquired_at,
         {{now}},
         CASE WHEN NEW.owner IS NULL THEN NEW.outcome ELSE 'taken_over' END, CASE WHEN NEW.owner IS NULL THEN NEW.reason ELSE '' END
    FROM {{holder_name}} AS h
   WHERE h.name = OLD.name AND h.gate = OLD.owner AND h.token > 0
     AND h.expires_at > {{now}}
   ORDER BY h.token;
END;
CREATE TRIGGER {{trigger_lock}} AFTER UPDATE ON {{lock_name}} FOR EACH ROW
WHEN NEW.name <> '' AND OLD.owner IS NOT NULL AND OLD.mode = ''
     AND CASE WHEN NEW.owner IS NULL THEN 1 ELSE NEW.owner <> OLD.owner AND NEW.token <> OLD.token END
BEGIN
  INSERT INTO {{lock_history_name}} (name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason)
  SELECT OLD.name, 'exclusive', OLD.token, OLD.owner, OLD.node, OLD.label, OLD.acquired_at,
         CASE WHEN t.told OR t.given_back THEN NEW.expires_at ELSE min(OLD.expires_at, t.moment) END,
         CASE WHEN t.told THEN NEW.outcome WHEN t.given_back THEN 'released'
              WHEN OLD.expires_at > t.moment THEN 'released' ELSE 'taken_over' END,
         CASE WHEN t.told THEN NEW.reason ELSE '' END
    FROM (SELECT NEW.owner IS NULL AND NEW.ended_token = NEW.token AND NEW.token <> OLD.token AS told,
                 NEW.owner IS NULL AND NEW.token = OLD.token AS given_back,
                 {{now}} AS moment) AS t;
END;

-- name: recording_of_holders()
-- Whose lease is over has expired, also if it gives back late what it had no more.
CREATE TRIGGER {{trigger_gone}} AFTER DELETE ON {{holder_name}} FOR EACH ROW
WHEN OLD.token > 0
BEGIN
  INSERT INTO {{lock_history_name}} (name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason)
  SELECT OLD.name, OLD.mode, OLD.token, OLD.owner, OLD.node, OLD.label,
         OLD.acquired_at, min(OLD.expires_at, t.moment), CASE WHEN OLD.expires_at > t.moment THEN 'released' ELSE 'expired' END, ''
    FROM (SELECT {{now}} AS moment) AS t
   WHERE NOT EXISTS (SELECT 1 FROM {{lock_history_name}} AS e
                      WHERE e.name = OLD.name AND e.token = OLD.token AND e.owner = OLD.owner);
END;
CREATE TRIGGER {{trigger_left}} AFTER UPDATE ON {{holder_name}} FOR EACH ROW
WHEN OLD.token > 0 AND NEW.token <> OLD.token
BEGIN
  INSERT INTO {{lock_history_name}} (name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason)
  SELECT OLD.name, OLD.mode, OLD.token, OLD.owner, OLD.node, OLD.label,
         OLD.acquired_at, min(OLD.expires_at, t.moment), CASE WHEN OLD.expires_at > t.moment THEN 'released' ELSE 'expired' END, ''
    FROM (SELECT {{now}} AS moment) AS t
   WHERE NOT EXISTS (SELECT 1 FROM {{lock_history_name}} AS e
                      WHERE e.name = OLD.name AND e.token = OLD.token AND e.owner = OLD.owner);
END;

-- name: recording_forget()
DROP TRIGGER IF EXISTS {{part_transaction}};
DROP TRIGGER IF EXISTS {{part_several}};
DROP TRIGGER IF EXISTS {{part_lock}};
DROP TRIGGER IF EXISTS {{part_gone}};
DROP TRIGGER IF EXISTS {{part_left}};

-- name: recording_drop()
DROP TABLE IF EXISTS {{lock_history}};
