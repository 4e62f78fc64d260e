-- Version 1 is taken back. All fencing tokens are forgotten with the table.

-- step: drop the view for people
DROP VIEW {{status}};

-- step: drop the table of those who hold a name together
DROP TABLE {{holder}};

-- step: drop the table of those who wait
DROP TABLE {{waiter}};

-- step: drop the lock table
DROP TABLE {{lock}};
