-- Version 1 makes the lock table with its floor row, the tables of those who wait and of those who hold a name
-- together, and the view for people.
-- min_client: 0.1.0

-- step: create the lock table
CREATE TABLE {{lock}} (
  name text COLLATE "C" NOT NULL PRIMARY KEY CHECK (octet_length(name) <= 255),
  node text NOT NULL DEFAULT '' CHECK (octet_length(node) <= 255),
  owner text,
  mode text NOT NULL DEFAULT '',
  token bigint NOT NULL,
  acquired_at bigint NOT NULL DEFAULT 0,
  expires_at bigint NOT NULL DEFAULT 0,
  reopens_at bigint NOT NULL DEFAULT 0,
  lease_us bigint NOT NULL DEFAULT 0,
  meta text NOT NULL DEFAULT '' CHECK (octet_length(meta) <= 4096),
  label text NOT NULL DEFAULT '' CHECK (octet_length(label) <= 255),
  actor text NOT NULL DEFAULT '',
  next_ticket bigint NOT NULL DEFAULT 0,
  served_ticket bigint NOT NULL DEFAULT 0,
  wanted_until bigint NOT NULL DEFAULT 0,
  kept text NOT NULL DEFAULT '' CHECK (octet_length(kept) <= 4096),
  ended_token bigint NOT NULL DEFAULT 0,
  outcome text NOT NULL DEFAULT '',
  reason text NOT NULL DEFAULT '' CHECK (octet_length(reason) <= 255)
) WITH (
  -- Room on each page for updates in place, and no index on what changes, so that they stay HOT.
  fillfactor = 60,
  -- A small, hot table: vacuum soon, and never truncate, which takes an exclusive lock.
  autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500, autovacuum_analyze_scale_factor = 0.2,
  vacuum_truncate = off
);

-- step: make the floor row
-- Its metadata is the identity of the installation, by which a connection to another database is told from one to this.
INSERT INTO {{lock}} (name, token, meta)
VALUES ('', 0, left(encode(sha256(convert_to(concat_ws('/', random(), random(), clock_timestamp(), pg_backend_pid(),
                                                       pg_postmaster_start_time(), txid_current(), current_database(),
                                                       inet_server_addr()), 'UTF8')), 'hex'), 32));

-- step: create the table of those who wait
CREATE TABLE {{waiter}} (
  name text COLLATE "C" NOT NULL CHECK (octet_length(name) <= 255),
  owner text NOT NULL,
  actor text NOT NULL DEFAULT '',
  node text NOT NULL DEFAULT '' CHECK (octet_length(node) <= 255),
  label text NOT NULL DEFAULT '' CHECK (octet_length(label) <= 255),
  mode text NOT NULL,
  wants text NOT NULL DEFAULT 'exclusive',
  ticket bigint NOT NULL DEFAULT 0,
  since bigint NOT NULL,
  expires_at bigint NOT NULL,
  wants_until bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (name, owner)
) WITH (
  -- Few rows that come, are renewed in place, and go: vacuum soon, and never truncate, which takes an exclusive lock.
  fillfactor = 60,
  autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500, autovacuum_analyze_scale_factor = 0.2,
  vacuum_truncate = off
);

-- step: create the table of those who hold a name together
CREATE TABLE {{holder}} (
  name text COLLATE "C" NOT NULL CHECK (octet_length(name) <= 255),
  owner text NOT NULL,
  gate text NOT NULL,
  token bigint NOT NULL,
  mode text NOT NULL DEFAULT 'shared',
  permits bigint NOT NULL DEFAULT 0,
  permit_limit bigint NOT NULL DEFAULT 0,
  node text NOT NULL DEFAULT '' CHECK (octet_length(node) <= 255),
  label text NOT NULL DEFAULT '' CHECK (octet_length(label) <= 255),
  actor text NOT NULL DEFAULT '',
  meta text NOT NULL DEFAULT '' CHECK (octet_length(meta) <= 4096),
  acquired_at bigint NOT NULL DEFAULT 0,
  expires_at bigint NOT NULL DEFAULT 0,
  reopens_at bigint NOT NULL DEFAULT 0,
  lease_us bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (name, owner)
) WITH (
  -- Few rows that come, are renewed in place, and go: vacuum soon, and never truncate, which takes an exclusive lock.
  fillfactor = 60,
  autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500, autovacuum_analyze_scale_factor = 0.2,
  vacuum_truncate = off
);

-- step: create the view for people
CREATE VIEW {{status}} AS
SELECT l.name,
       CASE WHEN l.owner IS NOT NULL AND l.expires_at > l.now THEN 'held'
            WHEN l.reopens_at > l.now THEN 'closed'
            WHEN l.owner IS NOT NULL THEN 'expired'
            ELSE 'free' END AS state,
       CASE WHEN l.owner IS NULL OR l.expires_at <= l.now THEN '' WHEN l.mode = '' THEN 'exclusive'
            ELSE l.mode END AS mode,
       CASE WHEN l.owner IS NULL OR l.expires_at <= l.now THEN 0 WHEN l.mode = '' THEN 1
            ELSE (SELECT count(*) FROM {{holder}} h
                   WHERE h.name = l.name AND h.gate = l.owner AND h.token > 0 AND h.expires_at > l.now) END AS holders,
       coalesce((SELECT sum(h.permits) FROM {{holder}} h
                  WHERE l.mode = 'permits' AND h.name = l.name AND h.gate = l.owner
                    AND greatest(h.expires_at, h.reopens_at) > l.now), 0)::bigint AS permits,
       coalesce((SELECT h.permit_limit FROM {{holder}} h
                  WHERE l.mode = 'permits' AND h.name = l.name AND h.gate = l.owner
                    AND greatest(h.expires_at, h.reopens_at) > l.now
                  ORDER BY h.acquired_at DESC, h.token DESC LIMIT 1), 0) AS permit_limit,
       CASE WHEN l.owner IS NULL THEN '' ELSE l.node END AS node, CASE WHEN l.owner IS NULL THEN '' ELSE l.label END AS label,
       l.owner, l.token,
       timestamp '1970-01-01' + l.acquired_at * interval '1 microsecond' AS acquired_at_utc,
       timestamp '1970-01-01' + l.expires_at * interval '1 microsecond' AS expires_at_utc,
       CASE WHEN l.reopens_at > 0 THEN timestamp '1970-01-01' + l.reopens_at * interval '1 microsecond' END AS reopens_at_utc,
       l.lease_us * interval '1 microsecond' AS lease,
       l.meta AS metadata,
       (SELECT count(*) FROM {{waiter}} w
         WHERE w.name = l.name AND w.expires_at > l.now AND (w.ticket = 0 OR w.ticket > l.served_ticket)) AS waiters,
       CASE WHEN l.owner IS NOT NULL THEN '' ELSE l.node END AS last_node,
       CASE WHEN l.owner IS NOT NULL THEN '' ELSE l.label END AS last_label,
       CASE WHEN l.owner IS NOT NULL OR l.acquired_at = 0 THEN '' WHEN l.ended_token = l.token THEN l.outcome
            ELSE 'released' END AS last_outcome,
       CASE WHEN l.owner IS NULL AND l.ended_token = l.token THEN l.reason ELSE '' END AS last_reason,
       l.kept
  FROM (SELECT r.*, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now FROM {{lock}} r WHERE r.name <> '') l;
