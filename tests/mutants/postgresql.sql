-- What tests must notice in the statements of PostgreSQL: a fault, its statement, what is there and what instead.
-- The form: src/dialects/mutants.hpp. The tests: list. Arguments stay in use, so that their types are known.

-- mutant: fence_reads
-- statement: fence
-- from:
UPDATE {{lock}} AS l
     SET expires_at = greatest(l.expires_at + 1, {{now}} + :lease::bigint)
   WHERE
-- to:
SELECT 1 FROM {{lock}} AS l
   WHERE
-- statement: fence
-- from:
  RETURNING 1)
-- to:
  FOR UPDATE OF l)

-- mutant: fence_renews_nothing
-- statement: fence
-- from:
greatest(l.expires_at + 1, {{now}} + :lease::bigint)
-- to:
l.expires_at + 1

-- mutant: fence_forgets_owner
-- statement: fence
-- from:
 AND l.owner = :owner::text
-- to:

-- mutant: fence_forgets_gate
-- statement: fence_holder
-- from:
 AND h.gate = l.owner
-- to:
-- statement: fence_holder
-- from:
 AND h.gate = g.owner
-- to:

-- mutant: fence_forgets_entry
-- statement: fence_holder
-- from:
 AND h.owner = :owner::text
-- to:

-- mutant: silent_release
-- statement: release
-- from:
l.wanted_until <= {{now}} THEN 0 ELSE
-- to:
l.wanted_until <= {{now}} OR true THEN 0 ELSE

-- mutant: silent_force_release
-- statement: force_release
-- from:
l.wanted_until <= {{now}} THEN 0 ELSE
-- to:
l.wanted_until <= {{now}} OR true THEN 0 ELSE

-- mutant: silent_withdraw
-- statement: withdraw
-- from:
l.wanted_until <= {{now}} THEN 0 ELSE
-- to:
l.wanted_until <= {{now}} OR true THEN 0 ELSE

-- mutant: silent_settle
-- statement: settle
-- from:
l.wanted_until <= {{now}} THEN 0 ELSE
-- to:
l.wanted_until <= {{now}} OR true THEN 0 ELSE

-- mutant: silent_last_entry
-- statement: drop_holder
-- from:
(l.owner IS NULL OR l.mode = 'permits') AS wanted
-- to:
false AS wanted

-- mutant: silent_permit
-- statement: drop_holder
-- from:
(l.owner IS NULL OR l.mode = 'permits') AS wanted
-- to:
l.owner IS NULL AS wanted

-- mutant: silent_release_many
-- statement: release_many
-- from:
l.wanted_until <= {{now}} THEN 1 ELSE
-- to:
l.wanted_until <= {{now}} OR true THEN 1 ELSE

-- mutant: barger_passes_queue
-- statement: acquire
-- from:
(b.next_ticket <= b.served_ticket
-- to:
(true OR b.next_ticket <= b.served_ticket

-- mutant: own_row_passes_queue
-- statement: acquire
-- from:
b.owner = :owner::text AND b.next_ticket > b.served_ticket
-- to:
false AND b.next_ticket > b.served_ticket

-- mutant: old_ticket_passes_queue
-- statement: acquire
-- from:
AND excluded.served_ticket = :ticket::bigint)
-- to:
)

-- mutant: barger_no_second_look
-- statement: acquire
-- from:
(l.next_ticket = excluded.next_ticket
-- to:
((true OR l.next_ticket = excluded.next_ticket)

-- mutant: crowd_passes_queue
-- statement: acquire_many
-- from:
AND l.next_ticket <= l.served_ticket)
-- to:
)

-- mutant: hand_over_skips_queue
-- statement: hand_over
-- from:
(l.next_ticket <= l.served_ticket
-- to:
(true OR l.next_ticket <= l.served_ticket

-- mutant: hand_over_opens
-- statement: hand_over
-- from:
WHEN :at_least::bigint = 0 THEN 0
-- to:
WHEN :at_least::bigint >= 0 THEN 0

-- mutant: hand_over_mute
-- statement: hand_over
-- from:
ELSE :meta::text END
-- to:
ELSE left(:meta::text, 0) END

-- mutant: late_hand_over_names
-- statement: hand_over
-- from:
THEN l.actor ELSE :actor::text END
-- to:
THEN :actor::text ELSE :actor::text END

-- mutant: taken_opens
-- statement: taken
-- from:
CASE WHEN :at_least::bigint = 0 THEN 0
-- to:
CASE WHEN :at_least::bigint >= 0 THEN 0

-- mutant: replacement_opens
-- statement: add_holder
-- from:
THEN greatest(l.reopens_at, h.acquired_at + :at_least::bigint)
-- to:
THEN l.reopens_at

-- mutant: reaper_removes_closed
-- statement: idle
-- from:
greatest(c.expires_at, c.reopens_at)
-- to:
c.expires_at
-- statement: raise_floor
-- from:
greatest(c.expires_at, c.reopens_at)
-- to:
c.expires_at
-- statement: remove_idle
-- from:
AND l.reopens_at <= {{now}}
-- to:
AND true

-- mutant: settling_opens
-- statement: settle
-- from:
mode = '', meta = ''
-- to:
mode = '', meta = '', reopens_at = 0

-- mutant: settles_living
-- statement: settle
-- from:
AND expires_at <= {{now}}
-- to:

-- mutant: batch_unordered
-- statement: acquire_many
-- from:
ORDER BY w.name
-- to:
ORDER BY random()
-- statement: acquire_many
-- from:
ORDER BY l.name FOR UPDATE OF l
-- to:
ORDER BY random() FOR UPDATE OF l

-- mutant: removes_used
-- statement: remove_idle
-- from:
 AND l.token = w.token AND l.expires_at = w.expires_at
-- to:

-- mutant: removes_wanted
-- statement: remove_idle
-- from:
 AND l.wanted_until <= {{now}}
-- to:

-- mutant: removes_above_floor
-- statement: remove_idle
-- from:
AND l.token <= (SELECT f.token FROM {{lock}} AS f WHERE f.name = '')
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
 AND owner = :owner::text
-- to:
 AND (true OR owner = :owner::text)

-- mutant: release_forgets_token
-- statement: release
-- from:
 AND token = :token::bigint
-- to:
 AND (true OR token = :token::bigint)

-- mutant: renewal_resurrects
-- statement: renew
-- from:
 AND l.owner = w.owner
-- to:

-- mutant: renewal_shortens
-- statement: renew
-- from:
greatest(l.expires_at, {{now}} + mine.lease)
-- to:
{{now}} + mine.lease

-- mutant: granted_after_giving_back
-- statement: acquire
-- from:
 AND b.actor <> :owner::text
-- to:
-- statement: acquire
-- from:
AND l.actor <> excluded.owner
-- to:

-- mutant: free_passes_queue
-- statement: acquire_free
-- from:
 AND l.next_ticket <= l.served_ticket
-- to:
-- statement: acquire_free_many
-- from:
 AND l.next_ticket <= l.served_ticket
-- to:

-- mutant: free_while_closed
-- statement: acquire_free
-- from:
AND l.reopens_at <= {{now}}
-- to:
-- statement: acquire_free_many
-- from:
AND l.reopens_at <= {{now}}
-- to:

-- mutant: free_after_giving_back
-- statement: acquire_free
-- from:
 AND l.actor <> :owner::text
-- to:
-- statement: acquire_free_many
-- from:
 AND l.actor <> w.owner
-- to:

-- mutant: free_below_floor
-- statement: acquire_free
-- from:
AND l.token >= (SELECT f.token FROM {{lock}} AS f WHERE f.name = '')
-- to:
-- statement: acquire_free_many
-- from:
AND l.token >= (SELECT f.token FROM {{lock}} AS f WHERE f.name = '')
-- to:

-- mutant: free_although_held
-- statement: acquire_free
-- from:
 AND l.owner IS NULL
-- to:
-- statement: acquire_free_many
-- from:
l.owner IS NULL AND
-- to:

-- mutant: takeover_below_floor
-- statement: acquire
-- from:
greatest(l.token + 1, excluded.token)
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
SET owner = :new_owner::text,
-- to:
SET owner = left(:new_owner::text, 0) || owner,

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
(true OR f.owner IS NULL OR

-- mutant: dead_waiter_revived
-- statement: renew_waiters
-- from:
 AND w.expires_at > {{now}}
-- to:

-- mutant: wanted_by_anybody
-- statement: renew
-- from:
w.name = r.name AND w.owner <> r.owner
-- to:
r.name <> '' AND w.owner <> r.owner

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
greatest(0, max(
-- to:
least(0, max(

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

-- mutant: metadata_of_anybody
-- statement: update_metadata
-- from:
owner = :owner::text AND token = :token::bigint
-- to:
length(:owner::text) > 0 AND :token::bigint > 0

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
h.token > 0 AND h.gate = g.owner
-- to:
h.token > 0

-- mutant: late_reader_renewed_by_round
-- statement: renew_holders
-- from:
 AND h.gate = g.owner
-- to:

-- mutant: dead_permit_stays
-- statement: add_holder
-- from:
ELSE greatest(h.expires_at, h.reopens_at) END <= {{now}};
-- to:
ELSE {{now}} + 1 END <= {{now}};

-- mutant: cleared_untold
-- statement: add_holder
-- from:
THEN h.acquired_at <= {{now}} - 86400000000
-- to:
THEN true

-- mutant: cleared_between
-- statement: add_holder
-- from:
ELSE h.token = 0 AND greatest
-- to:
ELSE greatest

-- mutant: forced_told_as_dead
-- statement: drop_gate
-- from:
 AND expires_at > :seen_at::bigint
-- to:
 AND expires_at > :seen_at::bigint AND false

-- mutant: dead_not_told_after_force
-- statement: drop_gate
-- from:
 AND expires_at > :seen_at::bigint
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
:permits::bigint <= :limit::bigint -
-- to:
:permits::bigint <= 9 + :limit::bigint -

-- mutant: withdrawn_reader_granted
-- statement: add_holder
-- from:
(x.gate = '' OR (l.live
-- to:
(false OR (l.live
-- statement: add_holder
-- from:
 WHERE h.gate <> '';
-- to:
;

-- mutant: gate_closed_longer
-- statement: drop_holder
-- from:
expires_at = coalesce(r.until, m.now)
-- to:
expires_at = greatest(l.expires_at, coalesce(r.until, m.now))

-- mutant: upgraded_beside_others
-- statement: upgrade
-- from:
x.owner <> :owner::text
-- to:
false

-- mutant: holder_looks_once
-- statement: add_holder
-- from:
AND (h.gate = l.owner OR (h.gate = :gate::text AND h.token > l.token));
-- to:
AND h.gate <> '';

-- mutant: dead_permit_counts
-- statement: add_holder
-- from:
(:mode::text = 'permits' OR l.owner IS NULL
-- to:
(:mode::text = 'nobody' OR l.owner IS NULL

-- mutant: dead_permit_revives
-- statement: add_holder
-- from:
(:mode::text = 'permits' OR l.owner IS NULL
-- to:
(:mode::text = 'nobody' OR l.owner IS NULL
-- statement: add_holder
-- from:
WHERE l.live AND x.name = l.name AND x.gate = l.owner
-- to:
WHERE l.live AND x.name = l.name AND x.gate = l.owner AND greatest(x.expires_at, x.reopens_at) > l.now

-- mutant: other_node_enters
-- statement: add_holder
-- from:
l.mode = :mode::text AND (:mode::text <> 'node' OR l.node = :node::text)
-- to:
l.mode = :mode::text

-- mutant: entries_with_own_tokens
-- statement: add_holder
-- from:
l.joins AND :mode::text = 'node'
-- to:
false

-- mutant: predecessor_joined
-- statement: add_holder
-- from:
(:alone::bigint = 0

-- to:
(true

-- mutant: entry_waits_in_line
-- statement: add_holder
-- from:
 OR (l.live AND :mode::text = 'node')
-- to:

-- mutant: entry_ends_queue
-- statement: add_holder
-- from:
CASE WHEN :mode::text = 'node' AND l.owner IS NOT NULL AND l.expires_at > h.acquired_at THEN l.served_ticket
-- to:
CASE WHEN false THEN l.served_ticket

-- mutant: counted_without_gate
-- statement: add_holder
-- from:
OR l.node = :node::text))) FOR UPDATE;
-- to:
OR l.node = :node::text)));
-- statement: add_holder
-- from:
l.xmax::text = (txid_current_if_assigned() & 4294967295)::text
-- to:
(true OR l.name = '')

-- mutant: gate_not_locked
-- statement: add_holder
-- from:
OR l.node = :node::text))) FOR UPDATE;
-- to:
OR l.node = :node::text)));
-- statement: add_holder
-- from:
l.xmax::text = (txid_current_if_assigned() & 4294967295)::text
-- to:
(true OR l.name = '')
