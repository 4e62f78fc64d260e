-- How PostgreSQL keeps writes with an old fencing token out of a table that is not dlock's.
-- The names filled in here are: {{guarded}} the table, {{column}} its column with the token, {{guard}} the trigger's
-- function, {{trigger}} the trigger, whose name belongs to its table and has no schema.

-- name: guard_columns(schema, table)
-- The table, what it is if it is no table, and each of its columns: name, type, whether that holds a token, whether it
-- is made by an expression.
SELECT c.relname::text,
       CASE c.relkind WHEN 'v' THEN 'a view' WHEN 'm' THEN 'a materialized view' WHEN 'f' THEN 'a foreign table' ELSE '' END,
       coalesce(a.attname::text, ''), coalesce(pg_catalog.format_type(a.atttypid, a.atttypmod), ''),
       coalesce('bigint'::regtype IN (t.oid, t.typbasetype), false)::integer::bigint,
       coalesce(a.attgenerated <> '', false)::integer::bigint
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
 WHERE n.nspname = :schema::text AND c.relname = :table::text AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
 ORDER BY a.attnum;

-- name: guard_state(schema, table, column, guard, text)
-- 0: there is none; 1: the one that guard_make makes, at work; 2: something else of that name, or one that is switched off.
-- The server shows how it compares the values of a domain, and may quote every name (quote_all_identifiers).
WITH trigger AS (
  SELECT t.tgfoid, t.tgtype = 19 AND t.tgenabled IN ('O', 'A') AND t.tgattr = ''::int2vector
         AND strpos(replace(replace(pg_catalog.pg_get_triggerdef(t.oid), '"', ''),
                            format('((new.%1$s)::bigint < (old.%1$s)::bigint)', replace(:column::text, '"', '')),
                            format('(new.%1$s < old.%1$s)', replace(:column::text, '"', ''))),
                    format('WHEN (((old.%1$s IS NOT NULL) AND ((new.%1$s IS NULL) OR (new.%1$s < old.%1$s))))',
                           replace(:column::text, '"', ''))) > 0
         AS as_made
    FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname = :schema::text AND c.relname = :table::text AND t.tgname = :guard::text AND NOT t.tgisinternal
), function AS (
  SELECT p.oid, split_part(:text::text, '$guard$', 2) = p.prosrc AS as_made
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
   WHERE n.nspname = :schema::text AND p.proname = :guard::text AND p.pronargs = 0
)
SELECT CASE WHEN NOT EXISTS (SELECT FROM trigger) AND NOT EXISTS (SELECT FROM function) THEN 0
            WHEN EXISTS (SELECT FROM trigger t JOIN function f ON f.oid = t.tgfoid WHERE t.as_made AND f.as_made) THEN 1
            ELSE 2 END::bigint;

-- name: guard_drop()
DROP TRIGGER IF EXISTS {{trigger}} ON {{guarded}};
DROP FUNCTION IF EXISTS {{guard}}();

-- name: guard_make(table)
-- The condition is the trigger's, so that a write that passes costs no call. A trigger BEFORE a row is written is asked
-- after that row was locked: it sees what was committed last, at every isolation.
CREATE FUNCTION {{guard}}() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $guard$
BEGIN
  RAISE EXCEPTION 'stale fencing token % < % for table %', coalesce(to_jsonb(NEW) ->> TG_ARGV[0], 'NULL'),
                  to_jsonb(OLD) ->> TG_ARGV[0], TG_TABLE_NAME
    USING ERRCODE = 'check_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, COLUMN = TG_ARGV[0],
          CONSTRAINT = TG_NAME;
END
$guard$;
CREATE TRIGGER {{trigger}} BEFORE UPDATE ON {{guarded}} FOR EACH ROW
  WHEN (OLD.{{column}} IS NOT NULL AND (NEW.{{column}} IS NULL OR NEW.{{column}} < OLD.{{column}}))
  EXECUTE FUNCTION {{guard}}({{column}});

-- name: guard_grants(role)
-- Never run: printed where a right is missing. To drop a trigger, or to replace one, the role must own the table.
GRANT USAGE, CREATE ON SCHEMA {{schema}} TO :role;
GRANT TRIGGER ON {{guarded}} TO :role;
