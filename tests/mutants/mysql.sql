-- What tests must notice in the statements of MySQL and MariaDB: a fault, its statement, what is there and what instead.
-- The form: src/dialects/mutants.hpp. The tests: list. Arguments stay in use, so that their types are known.

-- mutant: fence_reads
-- statement: fence
-- from:
UPDATE {{lock}}
   SET expires_at = GREATEST(expires_at + 1, {{now}} + :lease), acquired_at = acquired_at + 1
 WHERE
-- to:
SELECT 1 FROM {{lock}}
 WHERE
-- statement: fence
-- from:
AND token = :token;
-- to:
AND token = :token FOR UPDATE;

-- mutant: fence_renews_nothing
-- statement: fence
-- from:
GREATEST(expires_at + 1, {{now}} + :lease)
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
 AND h.gate = l.owner
-- to:
-- statement: fence_holder_text
-- from:
 AND h.gate = l.owner
-- to:

-- mutant: fence_forgets_entry
-- statement: fence_holder_text
-- from:
 AND h.owner = :owner
-- to:

-- mutant: silent_release
-- statement: release
-- from:
LAST_INSERT_ID(1 + (wanted_until > {{now}}))
-- to:
LAST_INSERT_ID(1)

-- mutant: silent_force_release
-- statement: force_release
-- from:
LAST_INSERT_ID(1 + (wanted_until > {{now}}))
-- to:
LAST_INSERT_ID(1)

-- mutant: silent_withdraw
-- statement: withdraw
-- from:
LAST_INSERT_ID(1 + ({{lock}}.wanted_until > VALUES(expires_at)))
-- to:
LAST_INSERT_ID(1)

-- mutant: silent_settle
-- statement: settle
-- from:
LAST_INSERT_ID(1 + (l.wanted_until > {{now}}))
-- to:
LAST_INSERT_ID(1)

-- mutant: silent_last_entry
-- statement: drop_holder
-- from:
COALESCE(l.wanted_until > {{now}}, 0)
-- to:
0

-- mutant: silent_permit
-- statement: drop_holder
-- from:
COALESCE(l.wanted_until > {{now}}, 0)
-- to:
COALESCE(l.owner IS NULL AND l.wanted_until > {{now}}, 0)

-- mutant: silent_release_many
-- statement: release_many
-- from:
1 + (r.wanted_until > @dlock_now)
-- to:
1 + 0
-- statement: release_many_at_once
-- from:
r.name, 2
-- to:
r.name, 1

-- mutant: batch_takeover_looks_new
-- statement: acquire_many
-- from:
GREATEST({{lock}}.served_ticket, 1)
-- to:
{{lock}}.served_ticket

-- mutant: adopted_looks_released
-- statement: release_many_shared
-- from:
(r.name, r.token, r.actor) IN (/*rows 1 3 2*/)
-- to:
(r.name, r.token) IN (/*rows 1 3*/)

-- mutant: barger_passes_queue
-- statement: acquire
-- from:
(b.next_ticket <= b.served_ticket
-- to:
(1 OR b.next_ticket <= b.served_ticket

-- mutant: own_row_passes_queue
-- statement: acquire
-- from:
IF(b.owner <=> :owner AND b.next_ticket > b.served_ticket, 1, 0)
-- to:
0

-- mutant: old_ticket_passes_queue
-- statement: acquire
-- from:
AND VALUES(served_ticket) = :ticket)
-- to:
)

-- mutant: barger_no_second_look
-- statement: acquire
-- from:
({{lock}}.next_ticket = VALUES(next_ticket)
-- to:
((1 OR {{lock}}.next_ticket = VALUES(next_ticket))

-- mutant: crowd_passes_queue
-- statement: acquire_many
-- from:
p.next_ticket <= p.served_ticket
-- to:
1
-- statement: acquire_many
-- from:
b.next_ticket <= b.served_ticket
-- to:
1

-- mutant: hand_over_skips_queue
-- statement: hand_over
-- from:
(l.next_ticket <= l.served_ticket
-- to:
(1 OR l.next_ticket <= l.served_ticket

-- mutant: hand_over_opens
-- statement: hand_over
-- from:
IF(:at_least = 0, 0, l.acquired_at + :at_least)
-- to:
IF(:at_least >= 0, 0, l.acquired_at)

-- mutant: hand_over_mute
-- statement: hand_over
-- from:
l.meta, :meta)
-- to:
l.meta, LEFT(:meta, 0))

-- mutant: late_hand_over_names
-- statement: hand_over
-- from:
IF(l.owner = :new_owner, l.actor, :actor)
-- to:
IF(l.owner = :new_owner, :actor, :actor)

-- mutant: taken_opens
-- statement: taken
-- from:
IF(:at_least = 0, 0, {{now}} + :at_least)
-- to:
IF(:at_least >= 0, 0, {{now}})

-- mutant: replacement_opens
-- statement: add_holder
-- from:
GREATEST(l.reopens_at, h.acquired_at + :at_least)
-- to:
l.reopens_at

-- mutant: reaper_removes_closed
-- statement: idle
-- from:
GREATEST(expires_at, reopens_at)
-- to:
expires_at
-- statement: raise_floor
-- from:
GREATEST(c.expires_at, c.reopens_at)
-- to:
c.expires_at
-- statement: remove_idle
-- from:
AND c.reopens_at <= {{now}}
-- to:
AND true

-- mutant: settling_opens
-- statement: settle
-- from:
l.meta = '',
-- to:
l.meta = '', l.reopens_at = 0,

-- mutant: settles_living
-- statement: settle
-- from:
AND l.expires_at <= {{now}}
-- to:

-- mutant: removes_used
-- statement: remove_idle
-- from:
(c.name, c.token, c.expires_at) IN (/*rows*/)
-- to:
c.name IN (/*rows 1*/)

-- mutant: removes_wanted
-- statement: remove_idle
-- from:
AND c.wanted_until <= {{now}}
-- to:

-- mutant: removes_above_floor
-- statement: remove_idle
-- from:
AND c.token <= (SELECT f.token FROM {{lock}} f WHERE f.name = '')
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

-- mutant: renewal_shortens
-- statement: renew
-- from:
GREATEST({{lock}}.expires_at + 1, {{now}} + :lease)
-- to:
{{now}} + :lease

-- mutant: granted_after_giving_back
-- statement: acquire
-- from:
AND b.actor <> :owner
-- to:
-- statement: acquire
-- from:
AND {{lock}}.actor <> VALUES(owner)
-- to:
AND 1

-- mutant: free_passes_queue
-- statement: acquire_free
-- from:
next_ticket <= served_ticket
-- to:
1
-- statement: acquire_free_many
-- from:
next_ticket <= served_ticket
-- to:
1

-- mutant: free_while_closed
-- statement: acquire_free
-- from:
reopens_at <= {{now}}
-- to:
1
-- statement: acquire_free_many
-- from:
reopens_at <= {{now}}
-- to:
1

-- mutant: free_after_giving_back
-- statement: acquire_free
-- from:
 AND actor <> :owner
-- to:
-- statement: acquire_free_many
-- from:
 AND actor <> /*each 2*/
-- to:

-- mutant: free_below_floor
-- statement: acquire_free
-- from:
 AND served_ticket > 0
-- to:
-- statement: acquire_free_many
-- from:
 AND served_ticket > 0
-- to:

-- mutant: free_although_held
-- statement: acquire_free
-- from:
 AND owner IS NULL
-- to:
-- statement: acquire_free_many
-- from:
 AND owner IS NULL
-- to:

-- mutant: floor_made_without_doubt
-- statement: doubt_tokens
-- from:
served_ticket > 0
-- to:
0

-- mutant: takeover_below_floor
-- statement: acquire
-- from:
GREATEST({{lock}}.token + 1, VALUES(token))
-- to:
{{lock}}.token + 1

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
SET owner = IF(:new_owner = '', owner, owner),

-- mutant: any_entry_frees
-- statement: drop_holder
-- from:
owner = IF(@dlock_until IS NULL, NULL, owner)
-- to:
owner = NULL

-- mutant: two_reapers
-- statement: begin_reaping
-- from:
(owner IS NULL OR
-- to:
(1 OR owner IS NULL OR

-- mutant: dead_waiter_revived
-- statement: renew_waiters
-- from:
(/*rows*/) AND expires_at > {{now}}
-- to:
(/*rows*/)

-- mutant: wanted_by_anybody
-- statement: renew
-- from:
w.name = r.name AND w.owner <> r.owner
-- to:
w.name <> '' AND w.owner <> r.owner

-- mutant: wanted_by_itself
-- statement: renew
-- from:
w.owner <> r.owner AND (
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
GREATEST(0, MAX(
-- to:
LEAST(0, MAX(

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
OLD.{{column}} IS NOT NULL AND (NEW
-- to:
(OLD.{{column}} IS NULL OR NEW

-- mutant: guard_says_too_much
-- statement: guard_make
-- from:
LEFT(CONCAT(
-- to:
IF(TRUE, CONCAT(

-- mutant: metadata_of_anybody
-- statement: update_metadata
-- from:
owner = :owner AND token = :token
-- to:
LENGTH(:owner) > 0 AND :token > 0

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
l.owner = h.gate
-- to:
true
-- statement: extend_holder
-- from:
h.gate = l.owner
-- to:
true

-- mutant: late_reader_renewed_by_round
-- statement: renew_holders
-- from:
 AND l.owner = h.gate
-- to:
-- statement: renew_holders
-- from:
 AND r.gate = l.owner
-- to:

-- mutant: dead_permit_stays
-- statement: add_holder
-- from:
h.expires_at,
          GREATEST(h.expires_at, h.reopens_at)) <= {{now}}
-- to:
h.expires_at,
          {{now}} + 1) <= {{now}}

-- mutant: cleared_untold
-- statement: add_holder
-- from:
THEN h.acquired_at <= {{now}} - 86400000000
-- to:
THEN 1

-- mutant: cleared_between
-- statement: add_holder
-- from:
ELSE h.token = 0 AND GREATEST
-- to:
ELSE GREATEST

-- mutant: forced_told_as_dead
-- statement: drop_gate
-- from:
 AND expires_at > :seen_at
-- to:
 AND expires_at > :seen_at AND false

-- mutant: dead_not_told_after_force
-- statement: drop_gate
-- from:
 AND expires_at > :seen_at
-- to:


-- mutant: marks_unbounded
-- statement: add_holder
-- from:
OR h.acquired_at < (SELECT
-- to:
OR false AND h.acquired_at < (SELECT

-- mutant: cleared_untold_by_downgrade
-- statement: downgrade
-- from:
AND (h.token = 0 OR h.token > 0 AND h.expires_at > {{now}})
-- to:
AND true

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
expires_at = COALESCE(@dlock_until + (expires_at = @dlock_until), 
-- to:
expires_at = GREATEST(expires_at, @dlock_until, 

-- mutant: upgraded_beside_others
-- statement: upgrade
-- from:
AND x.name IS NULL
-- to:
AND l.name = :name

-- mutant: holder_looks_once
-- statement: add_holder
-- from:
AND (owner = @dlock_gate OR (@dlock_gate = :gate AND @dlock_token > token));
-- to:
AND @dlock_gate <> '';

-- mutant: marked_in_other_modes
-- statement: add_holder
-- from:
(:mode = _binary 'permits' AND l.mode = :mode OR l.owner IS NULL
-- to:
(:mode = _binary 'permits' OR l.owner IS NULL

-- mutant: dead_permit_counts
-- statement: add_holder
-- from:
(:mode = _binary 'permits' AND l.mode = :mode OR l.owner IS NULL
-- to:
(:mode = _binary 'nobody' AND l.mode = :mode OR l.owner IS NULL

-- mutant: dead_permit_revives
-- statement: add_holder
-- from:
(:mode = _binary 'permits' AND l.mode = :mode OR l.owner IS NULL
-- to:
(:mode = _binary 'nobody' AND l.mode = :mode OR l.owner IS NULL
-- statement: add_holder
-- from:
AND x.name = :name AND x.gate = l.owner))
-- to:
AND x.name = :name AND x.gate = l.owner AND GREATEST(x.expires_at, x.reopens_at) > {{now}}))

-- mutant: other_node_enters
-- statement: add_holder
-- from:
 AND (:mode <> _binary 'node' OR l.node = :node)
-- to:

-- mutant: entries_with_own_tokens
-- statement: add_holder
-- from:
l.joins AND :mode = _binary 'node'
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
 OR (l.live AND :mode = _binary 'node')
-- to:

-- mutant: entry_ends_queue
-- statement: add_holder
-- from:
IF(:mode = _binary 'node' AND @dlock_end > @dlock_begun, served_ticket,
-- to:
IF(0, served_ticket,
