-- Version 1 is taken back. All fencing tokens are forgotten with the table.

-- step: drop the view for people
DROP VIEW {{status}};
-- probe: it is gone
SELECT CASE count(*) WHEN 0 THEN 1 ELSE 0 END
  FROM information_schema.tables WHERE table_schema = :schema AND table_name = :status;

-- step: drop the table of those who hold a name together
DROP TABLE {{holder}};
-- probe: it is gone
SELECT CASE count(*) WHEN 0 THEN 1 ELSE 0 END
  FROM information_schema.tables WHERE table_schema = :schema AND table_name = :holder;

-- step: drop the table of those who wait
DROP TABLE {{waiter}};
-- probe: it is gone
SELECT CASE count(*) WHEN 0 THEN 1 ELSE 0 END
  FROM information_schema.tables WHERE table_schema = :schema AND table_name = :waiter;

-- step: drop the lock table
DROP TABLE {{lock}};
-- probe: it is gone
SELECT CASE count(*) WHEN 0 THEN 1 ELSE 0 END
  FROM information_schema.tables WHERE table_schema = :schema AND table_name = :lock;
