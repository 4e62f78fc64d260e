-- How PostgreSQL writes a row of history for each grant that ends, by triggers, in the transaction that ends
-- it. schema/README.md says what the columns mean. The names filled in here, beside those of tables: {{trigger_…}} a trigger,
-- {{routine_…}} its function, {{history_index}} the index. Whoever ends a grant needs no right on the history: the functions
-- run with the rights of who has made them.

-- name: recording_parts(schema, lock, holder, lock_history, family, recorder)
-- What is there: 0, the table, with the number of parts that belong to it; 1, a part as it is made here; 2, one that is not.
-- And the statement that takes it away; triggers come before their functions.
SELECT 0::bigint, '', 5::bigint
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = :schema::text AND c.relname = :lock_history::text
UNION ALL
SELECT CASE WHEN starts_with(t.tgname::text, :recorder::text) AND t.tgenabled IN ('O', 'A') THEN 1 ELSE 2 END,
       format('DROP TRIGGER %I ON %I.%I', t.tgname, n.nspname, c.relname), 0
  FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
       JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = :schema::text AND c.relname IN (:lock::text, :holder::text) AND NOT t.tgisinternal
   AND starts_with(t.tgname::text, :family::text)
UNION ALL
SELECT CASE WHEN starts_with(p.proname::text, :recorder::text) THEN 1 ELSE 2 END,
       format('DROP FUNCTION %I.%I()', n.nspname, p.proname), 0
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
 WHERE n.nspname = :schema::text AND starts_with(p.proname::text, :family::text)
 ORDER BY 2 DESC;

-- name: recording_probe()
SELECT id, name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason FROM {{lock_history}} WHERE 1 = 0;

-- name: recording_table()
-- Only ever appended to and cut off at its old end; with no rule that a row could break, since a row that cannot be written
-- would keep a grant from ending. The order is that of time, and of no sequence: what lastval() says in a caller's session,
-- whose transaction has locked a name, is the caller's.
CREATE TABLE IF NOT EXISTS {{lock_history}} (
  id bigint NOT NULL DEFAULT ({{now}} * 1024 + (pg_backend_pid() & 1023)),
  name text COLLATE "C" NOT NULL,
  mode text NOT NULL,
  token bigint NOT NULL,
  owner text NOT NULL,
  node text NOT NULL,
  label text NOT NULL,
  acquired_at bigint NOT NULL,
  ended_at bigint NOT NULL,
  outcome text NOT NULL,
  reason text NOT NULL,
  PRIMARY KEY (id, name, token, owner)
);
CREATE INDEX IF NOT EXISTS {{history_index}} ON {{lock_history}} (name, token);

-- name: recording_of_lock()
-- A row that several hold tells of none of them: each is told when its own row goes, and those that are ended all at once, whose
-- rows stay for a while, here. The condition is the trigger's, so that a renewal costs no call.
CREATE FUNCTION {{routine_lock}}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $record$
DECLARE
  held_by_several CONSTANT boolean := OLD.mode <> '';
  shared_now CONSTANT boolean := NEW.mode <> '';
  moment bigint := {{now}};
  told CONSTANT boolean := NEW.owner IS NULL AND NEW.ended_token = NEW.token AND NEW.token <> OLD.token;
  given_back CONSTANT boolean := NEW.owner IS NULL AND NEW.token = OLD.token;
BEGIN
  IF NEW.owner IS NOT NULL AND NEW.acquired_at > OLD.acquired_at THEN
    moment := NEW.acquired_at;
  END IF;
  IF OLD.owner IS NOT NULL AND NOT held_by_several THEN
    INSERT INTO {{lock_history}} (name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason)
    VALUES (OLD.name, 'exclusive', OLD.token, OLD.owner, OLD.node, OLD.label, OLD.acquired_at,
            CASE WHEN told OR given_back THEN NEW.expires_at ELSE least(OLD.expires_at, moment) END,
            CASE WHEN told THEN NEW.outcome WHEN given_back THEN 'released'
                 WHEN OLD.expires_at > moment THEN 'released' ELSE 'taken_over' END,
            CASE WHEN told THEN NEW.reason ELSE '' END);
  ELSIF OLD.owner IS NOT NULL AND (told OR (NEW.owner IS NOT NULL AND shared_now)) THEN
    INSERT INTO {{lock_history}} (name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason)
    SELECT h.name, h.mode, h.token, h.owner, h.node, h.label, h.acquired_at,
           moment, CASE WHEN told THEN NEW.outcome ELSE 'taken_over' END, CASE WHEN told THEN NEW.reason ELSE '' END
      FROM {{holder}} AS h
     WHERE h.name = OLD.name AND h.gate = OLD.owner AND h.token > 0 AND h.expires_at > moment
     ORDER BY h.token;
  END IF;
  IF NEW.owner IS NULL AND NEW.token <> OLD.token AND NOT told THEN
    INSERT INTO {{lock_history}} (name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason)
    VALUES (NEW.name, 'exclusive', NEW.token, '', NEW.node, NEW.label, NEW.acquired_at, NEW.expires_at, 'released', '');
  END IF;
  RETURN NULL;
END
$record$;
CREATE TRIGGER {{trigger_lock}} AFTER UPDATE ON {{lock}} FOR EACH ROW
  WHEN (NEW.name <> '' AND ((OLD.owner IS NOT NULL AND NEW.owner IS DISTINCT FROM OLD.owner
                             AND (NEW.owner IS NULL OR NEW.token <> OLD.token))
                            OR (NEW.owner IS NULL AND NEW.token <> OLD.token)))
  EXECUTE FUNCTION {{routine_lock}}();

-- name: recording_of_holders()
-- Whose lease is over has expired, also if it gives back late what it had no more.
CREATE FUNCTION {{routine_holder}}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $record$
DECLARE
  moment CONSTANT bigint := {{now}};
BEGIN
  INSERT INTO {{lock_history}} (name, mode, token, owner, node, label, acquired_at, ended_at, outcome, reason)
  SELECT OLD.name, OLD.mode, OLD.token, OLD.owner, OLD.node, OLD.label,
         OLD.acquired_at, least(OLD.expires_at, moment), CASE WHEN OLD.expires_at > moment THEN 'released' ELSE 'expired' END, ''
   WHERE NOT EXISTS (SELECT FROM {{lock_history}} AS e
                      WHERE e.name = OLD.name AND e.token = OLD.token AND e.owner = OLD.owner);
  RETURN NULL;
END
$record$;
CREATE TRIGGER {{trigger_gone}} AFTER DELETE ON {{holder}} FOR EACH ROW
  WHEN (OLD.token > 0) EXECUTE FUNCTION {{routine_holder}}();
CREATE TRIGGER {{trigger_left}} AFTER UPDATE ON {{holder}} FOR EACH ROW
  WHEN (OLD.token > 0 AND NEW.token <> OLD.token) EXECUTE FUNCTION {{routine_holder}}();

-- name: recording_forget()
DROP TRIGGER IF EXISTS {{trigger_lock}} ON {{lock}};
DROP TRIGGER IF EXISTS {{trigger_gone}} ON {{holder}};
DROP TRIGGER IF EXISTS {{trigger_left}} ON {{holder}};
DROP FUNCTION IF EXISTS {{routine_lock}}();
DROP FUNCTION IF EXISTS {{routine_holder}}();

-- name: recording_drop()
DROP TABLE IF EXISTS {{lock_history}};

-- name: recording_grants(role)
-- Never run: printed where a right is missing. To drop a trigger, or to replace one, the role must own the tables.
GRANT USAGE, CREATE ON SCHEMA {{schema}} TO :role;
GRANT SELECT, TRIGGER ON {{lock}}, {{holder}} TO :role;
