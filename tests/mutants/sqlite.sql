-- What tests must notice in the statements of SQLite: a fault, its statement, what is there and what instead.
-- The form: src/dialects/mutants.hpp. The tests: list. Arguments stay in use, so that their types are known.

-- mutant: fence_reads
-- statement: fence
-- from:
UPDATE {{lock}}
   SET expires_at = max(expires_at + 1, {{now}} + :lease)
 WHERE
-- to:
SELECT 1 FROM {{lock}}
 WHERE

-- mutant: fence_renews_nothing
-- statement: fence
-- from:
max(expires_at + 1, {{now}} + :lease)
-- to:
expires_at + 1

-- mutant: fence_forgets_owner
-- statement: fence
-- from:
 AND owner = :owner
-- to:

-- mutant: fence_forgets_gate
-- statement: fence_holder
-- from:
AND owner = (SELECT h.gate FROM
-- to:
AND EXISTS (SELECT h.gate FROM
-- statement: fence_holder_row
-- from:
 AND gate = (SELECT l.owner FROM {{lock}} AS l WHERE l.name = :name)
-- to:

-- mutant: fence_forgets_entry
-- statement: fence_holder
-- from:
 AND h.owner = :owner
-- to:
-- statement: fence_holder_row
-- from:
 AND owner = :owner
-- to:

-- mutant: fence_anywhere
-- statement: fence
-- from:
AND EXISTS (SELECT 1 FROM {{lock}} AS i WHERE i.name = '' AND i.meta = :installation)
-- to:

-- mutant: barger_passes_queue
-- statement: acquire
-- from:
(b.next_ticket <= b.served_ticket
-- to:
(1 OR b.next_ticket <= b.served_ticket

-- mutant: crowd_passes_queue
-- statement: acquire_many
-- from:
(b.next_ticket <= b.served_ticket
-- to:
(1 OR b.next_ticket <= b.served_ticket

-- mutant: hand_over_skips_queue
-- statement: hand_over
-- from:
(l.next_ticket <= l.served_ticket
-- to:
(1 OR l.next_ticket <= l.served_ticket

-- mutant: hand_over_opens
-- statement: hand_over
-- from:
WHEN :at_least = 0 THEN 0
-- to:
WHEN :at_least >= 0 THEN 0

-- mutant: hand_over_mute
-- statement: hand_over
-- from:
ELSE :meta END
-- to:
ELSE substr(:meta, 1, 0) END

-- mutant: late_hand_over_names
-- statement: hand_over
-- from:
THEN l.actor ELSE :actor END
-- to:
THEN :actor ELSE :actor END

-- mutant: taken_opens
-- statement: taken
-- from:
CASE WHEN :at_least = 0 THEN 0
-- to:
CASE WHEN :at_least >= 0 THEN 0

-- mutant: replacement_opens
-- statement: add_holder
-- from:
THEN max(l.reopens_at, h.acquired_at + :at_least)
-- to:
THEN l.reopens_at

-- mutant: reaper_removes_closed
-- statement: idle
-- from:
max(expires_at, reopens_at)
-- to:
expires_at
-- statement: raise_floor
-- from:
max(expires_at, reopens_at)
-- to:
expires_at
-- statement: remove_idle
-- from:
AND reopens_at <= {{now}}
-- to:
AND 1

-- mutant: settling_opens
-- statement: settle
-- from:
meta = '', actor = :settler
-- to:
meta = '', reopens_at = 0, actor = :settler

-- mutant: settles_living
-- statement: settle
-- from:
AND expires_at <= {{now}}
-- to:

-- mutant: removes_used
-- statement: remove_idle
-- from:
 AND token = :token AND expires_at = :expires_at
-- to:
 AND (1 OR token = :token) AND (1 OR expires_at = :expires_at)

-- mutant: removes_wanted
-- statement: remove_idle
-- from:
AND wanted_until <= {{now}}
-- to:

-- mutant: removes_above_floor
-- statement: remove_idle
-- from:
AND token <= (SELECT f.token FROM {{lock}} AS f WHERE f.name = '')
-- to:

-- mutant: forgets_living_waiters
-- statement: dead_waiters
-- from:
- 60000000
-- to:
+ 86400000000
-- statement: forget_waiters
-- from:
- 60000000
-- to:
+ 86400000000

-- mutant: release_forgets_owner
-- statement: release
-- from:
 AND owner = :owner
-- to:
 AND (1 OR owner = :owner)

-- mutant: release_forgets_token
-- statement: release
-- from:
 AND token = :token
-- to:
 AND (1 OR token = :token)

-- mutant: renewal_resurrects
-- statement: renew
-- from:
 AND owner = :owner
-- to:
 AND (1 OR owner = :owner)

-- mutant: renewal_shortens
-- statement: renew
-- from:
max(expires_at, {{now}} + :lease)
-- to:
{{now}} + :lease

-- mutant: granted_after_giving_back
-- statement: acquire
-- from:
 AND b.actor <> :owner
-- to:

-- mutant: takeover_below_floor
-- statement: acquire
-- from:
max(l.token + 1, excluded.token)
-- to:
l.token + 1

-- mutant: forced_token_stays
-- statement: force_release
-- from:
token = token + 1
-- to:
token = token

-- mutant: adopted_twice
-- statement: adopt
-- from:
SET owner = :new_owner,
-- to:
SET owner = CASE WHEN :new_owner = '' THEN owner ELSE owner END,

-- mutant: any_entry_frees
-- statement: drop_holder
-- from:
owner = CASE WHEN r.until IS NULL THEN NULL ELSE l.owner END
-- to:
owner = NULL

-- mutant: two_reapers
-- statement: begin_reaping
-- from:
(f.owner IS NULL OR
-- to:
(1 OR f.owner IS NULL OR

-- mutant: dead_waiter_revived
-- statement: renew_waiters
-- from:
AND w.expires_at > {{now}}
-- to:

-- mutant: wanted_by_anybody
-- statement: renew
-- from:
w.name = :name AND w.owner <> :owner
-- to:
w.name <> :owner AND w.owner <> :owner

-- mutant: wanted_by_itself
-- statement: renew
-- from:
w.owner <> :owner AND (
-- to:
(

-- mutant: wanted_by_the_dead
-- statement: renew
-- from:
AND w.expires_at >
-- to:
AND w.name <> '' OR 0 >

-- mutant: wanted_mode_forgotten
-- statement: renew
-- from:
WHEN 'shared' THEN 1
-- to:
WHEN 'shared' THEN 3

-- mutant: wanted_since_forgotten
-- statement: renew
-- from:
max(0, max(
-- to:
min(0, max(

-- mutant: guard_refuses_equal
-- statement: guard_make
-- from:
NEW.{{column}} < OLD.{{column}}
-- to:
NEW.{{column}} <= OLD.{{column}}

-- mutant: guard_takes_null
-- statement: guard_make
-- from:
NEW.{{column}} IS NULL OR
-- to:
NEW.{{column}} IS NULL AND

-- mutant: guard_refuses_first
-- statement: guard_make
-- from:
typeof(OLD.{{column}}) = 'integer' AND (NEW
-- to:
(OLD.{{column}} IS NULL OR NEW

-- mutant: metadata_of_anybody
-- statement: update_metadata
-- from:
owner = :owner AND token = :token
-- to:
length(:owner) > 0 AND :token > 0

-- mutant: kept_goes_with_release
-- statement: release
-- from:
meta = ''
-- to:
meta = '', kept = ''

-- mutant: last_holder_forgotten
-- statement: release
-- from:
meta = ''
-- to:
meta = '', label = ''

-- mutant: force_unsaid
-- statement: force_release
-- from:
outcome = 'forced'
-- to:
outcome = 'released'

-- mutant: late_reader_renewed
-- statement: extend_holder
-- from:
 AND l.owner = h.gate;
UPDATE
-- to:
;
UPDATE
-- statement: extend_holder
-- from:
 AND h.gate = l.owner;
SELECT
-- to:
;
SELECT
-- statement: extend_holder
-- from:
 AND l.owner = h.gate
 WHERE
-- to:

 WHERE

-- mutant: late_reader_renewed_by_round
-- statement: renew_holders
-- from:
 AND gate = (SELECT l.owner FROM {{lock}} AS l WHERE l.name = :name)
-- to:
-- statement: renew_holders
-- from:
 AND h.gate = l.owner
-- to:
-- statement: renew_holders
-- from:
 AND l.owner = h.gate
-- to:

-- mutant: dead_permit_stays
-- statement: add_holder
-- from:
ELSE max(h.expires_at, h.reopens_at) END <= {{now}};
-- to:
ELSE {{now}} + 1 END <= {{now}};

-- mutant: cleared_untold
-- statement: add_holder
-- from:
THEN {{holder}}.acquired_at <= {{now}} - 86400000000
-- to:
THEN 1

-- mutant: forced_told_as_dead
-- statement: drop_gate
-- from:
 AND expires_at > :seen_at
-- to:
 AND expires_at > :seen_at AND 0

-- mutant: dead_not_told_after_force
-- statement: drop_gate
-- from:
 AND expires_at > :seen_at
-- to:


-- mutant: marks_unbounded
-- statement: add_holder
-- from:
OR {{holder}}.acquired_at < (SELECT
-- to:
OR 0 AND {{holder}}.acquired_at < (SELECT

-- mutant: cleared_untold_by_downgrade
-- statement: downgrade
-- from:
AND (token = 0 OR token > 0 AND expires_at > {{now}})
-- to:
AND 1

-- mutant: permits_uncounted
-- statement: add_holder
-- from:
:permits <= :limit -
-- to:
:permits <= 9 + :limit -

-- mutant: withdrawn_reader_granted
-- statement: add_holder
-- from:
(x.gate = '' OR (l.live
-- to:
(0 OR (l.live

-- mutant: gate_closed_longer
-- statement: drop_holder
-- from:
expires_at = coalesce(r.until, 
-- to:
expires_at = max(l.expires_at, r.until, 

-- mutant: upgraded_beside_others
-- statement: upgrade
-- from:
x.owner <> :owner
-- to:
0

-- mutant: holder_looks_once
-- statement: add_holder
-- from:
AND (h.gate = l.owner OR (h.gate = :gate AND h.token > l.token));
-- to:
AND h.gate <> '';

-- mutant: marked_in_other_modes
-- statement: add_holder
-- from:
(:mode = 'permits' AND l.mode = :mode OR l.owner IS NULL
-- to:
(:mode = 'permits' OR l.owner IS NULL

-- mutant: dead_permit_counts
-- statement: add_holder
-- from:
(:mode = 'permits' AND l.mode = :mode OR l.owner IS NULL
-- to:
(:mode = 'nobody' AND l.mode = :mode OR l.owner IS NULL

-- mutant: dead_permit_revives
-- statement: add_holder
-- from:
(:mode = 'permits' AND l.mode = :mode OR l.owner IS NULL
-- to:
(:mode = 'nobody' AND l.mode = :mode OR l.owner IS NULL
-- statement: add_holder
-- from:
WHERE l.live AND x.name = l.name AND x.gate = l.owner
-- to:
WHERE l.live AND x.name = l.name AND x.gate = l.owner AND max(x.expires_at, x.reopens_at) > l.now

-- mutant: other_node_enters
-- statement: add_holder
-- from:
 AND (:mode <> 'node' OR l.node = :node)
-- to:

-- mutant: entries_with_own_tokens
-- statement: add_holder
-- from:
l.joins AND :mode = 'node'
-- to:
0

-- mutant: predecessor_joined
-- statement: add_holder
-- from:
(:alone = 0 OR
-- to:
(1 OR

-- mutant: entry_waits_in_line
-- statement: add_holder
-- from:
 OR (l.live AND :mode = 'node')
-- to:

-- mutant: entry_ends_queue
-- statement: add_holder
-- from:
CASE WHEN :mode = 'node' AND l.owner IS NOT NULL AND l.expires_at > h.acquired_at THEN l.served_ticket
-- to:
CASE WHEN 0 THEN l.served_ticket
