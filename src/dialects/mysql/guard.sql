-- How MySQL and MariaDB keep writes with an old fencing token out of a table that is not dlock's.
-- The names filled in here are: {{guarded}} the table, {{column}} its column with the token, {{guard}} the trigger.

-- name: guard_columns(schema, table)
-- The table, what it is if it is no table, and each of its columns: name, type, whether that holds a token, whether it
-- is made by an expression.
SELECT t.table_name, CASE WHEN t.table_type LIKE '%VIEW' THEN 'a view' ELSE '' END, COALESCE(c.column_name, ''),
       COALESCE(c.column_type, ''), COALESCE(c.data_type = 'bigint', 0), COALESCE(c.generation_expression, '') <> ''
  FROM information_schema.tables t
  LEFT JOIN information_schema.columns c ON c.table_schema = t.table_schema AND c.table_name = t.table_name
 WHERE t.table_schema = :schema AND t.table_name = :table
 ORDER BY t.table_name, c.ordinal_position;

-- name: guard_state(schema, table, column, guard, text)
-- 0: there is none; 1: the one that guard_make makes; 2: something else of that name. The server shows a trigger without
-- the introducers of its texts.
SELECT COALESCE(MAX(CASE WHEN event_object_schema = :schema AND event_object_table = :table
                              AND action_timing = 'BEFORE' AND event_manipulation = 'UPDATE'
                              AND RIGHT(REPLACE(:text, '_utf8mb4', ''), CHAR_LENGTH(REPLACE(action_statement, '_utf8mb4', '')))
                                  = REPLACE(action_statement, '_utf8mb4', '')
                         THEN 1 ELSE 2 END), 0)
  FROM information_schema.triggers WHERE trigger_schema = :schema AND trigger_name = :guard;

-- name: guard_hold()
-- While one is replaced: between the old and the new one nobody writes.
LOCK TABLES {{guarded}} WRITE;

-- name: guard_let_go()
UNLOCK TABLES;

-- name: guard_drop()
DROP TRIGGER IF EXISTS {{guard}};

-- name: guard_make(table)
-- An UPDATE locks the row and reads what was committed last, whatever its transaction has read before. A message has room
-- for 128 characters; what is longer would be an error of its own.
CREATE TRIGGER {{guard}} BEFORE UPDATE ON {{guarded}} FOR EACH ROW
BEGIN
  DECLARE refusal VARCHAR(128) CHARACTER SET utf8mb4;
  IF OLD.{{column}} IS NOT NULL AND (NEW.{{column}} IS NULL OR NEW.{{column}} < OLD.{{column}}) THEN
    SET refusal = LEFT(CONCAT('stale fencing token ', COALESCE(NEW.{{column}}, 'NULL'), ' < ', OLD.{{column}},
                              ' for table ', :table), 128);
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = refusal;
  END IF;
END;

-- name: guard_print(statement)
-- For the client, which cuts its input at every semicolon. The last one here is the end of this statement.
DELIMITER //
:statement //
DELIMITER ;;

-- name: guard_grants(role)
-- Never run: printed where a right is missing. The second is for replacing a guard.
GRANT SELECT, TRIGGER ON {{guarded}} TO :role;
GRANT LOCK TABLES ON {{schema}}.* TO :role;
