-- This file knows how version 1 is taken back. All fencing tokens are forgotten with the table.

-- step: drop the view for people
DROP VIEW {{status}};

-- step: drop the lock table
DROP TABLE {{lock}};
