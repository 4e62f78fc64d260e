-- Version 3 gives the installation an identity, by which a connection to another database is told from one to this.
-- min_client: 0.1.0

-- step: give the installation an identity
-- In the floor row, whose metadata nobody else uses. An identity that is there already stays.
UPDATE {{lock}}
   SET meta = left(encode(sha256(convert_to(concat_ws('/', random(), random(), clock_timestamp(), pg_backend_pid(),
                                                      pg_postmaster_start_time(), txid_current(), current_database(),
                                                      inet_server_addr()), 'UTF8')), 'hex'), 32)
 WHERE name = '' AND meta = '';
