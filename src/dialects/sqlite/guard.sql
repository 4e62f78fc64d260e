-- How SQLite keeps writes with an old fencing token out of a table that is not dlock's.
-- The names filled in here are: {{table_name}} the table, {{column}} its column with the token, {{guard}} the trigger,
-- {{trigger}} the same without the schema, since a file may be attached by any name; {{refusal}} and {{no_token}} what is
-- said of a write that is refused.

-- name: guard_columns(schema, table)
-- The table, what it is if it is no table, and each of its columns: name, type, whether that holds a token, whether it
-- is made by an expression.
SELECT t.name, CASE WHEN t.type = 'view' THEN 'a view' WHEN t.sql LIKE 'CREATE VIRTUAL%' THEN 'a virtual table' ELSE '' END,
       coalesce(c.name, ''), coalesce(c.type, ''), coalesce(c.type LIKE '%INT%', 0), coalesce(c.hidden IN (2, 3), 0)
  FROM main.sqlite_master t LEFT JOIN pragma_table_xinfo(t.name, 'main') c
 WHERE :schema = 'main' AND t.type IN ('table', 'view') AND t.name = :table COLLATE NOCASE
 ORDER BY c.cid;

-- name: guard_state(schema, table, column, guard, text)
-- 0: there is none; 1: the one that guard_make makes; 2: something else of that name.
SELECT coalesce(max(CASE WHEN type = 'trigger' AND tbl_name = :table AND sql = :text THEN 1 ELSE 2 END), 0)
  FROM main.sqlite_master WHERE :schema = 'main' AND name = :guard;

-- name: guard_drop()
DROP TRIGGER IF EXISTS {{guard}};

-- name: guard_make(table)
-- What is raised is a text that is known beforehand: it has no token in it. A column takes whatever is written to it, and a
-- text is larger than every number: it would shut the row for ever. One that was there before the guard is no token: it may
-- stay, or give way to one.
CREATE TRIGGER {{trigger}} BEFORE UPDATE ON {{table_name}} FOR EACH ROW
WHEN (typeof(OLD.{{column}}) = 'integer' AND (NEW.{{column}} IS NULL OR NEW.{{column}} < OLD.{{column}}))
  OR (typeof(NEW.{{column}}) NOT IN ('integer', 'null') AND NEW.{{column}} IS NOT OLD.{{column}})
BEGIN
  SELECT CASE WHEN typeof(NEW.{{column}}) IN ('integer', 'null') THEN RAISE(ABORT, {{refusal}})
              ELSE RAISE(ABORT, {{no_token}}) END;
END;
