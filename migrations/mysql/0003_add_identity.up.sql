-- Version 3 gives the installation an identity, by which a connection to another database is told from one to this.
-- min_client: 0.1.0

-- step: give the installation an identity
-- In the floor row, whose metadata nobody else uses. An identity that is there already stays.
UPDATE {{lock}}
   SET meta = LEFT(SHA2(CONCAT_WS('/', UUID(), RAND(), RAND(), UTC_TIMESTAMP(6), CONNECTION_ID(), @@hostname, @@port,
                                  @@server_id), 256), 32)
 WHERE name = '' AND meta = '';
-- probe: it has one, or there is no floor row to have it
SELECT CASE count(*) WHEN 0 THEN 1 ELSE 0 END FROM {{lock}} WHERE name = '' AND meta = '';
