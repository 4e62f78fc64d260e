/* One name that several hold, by shares or by permits: their rows, the lock's row, which is their gate, and those who want it
 * alone and look at the gate only. README.md beside it says which line stands for which statement, and what was left out
 * and why. What becomes of the requests of those who want it alone is in lock.pml.
 *
 * HOLDERS come, each under one owner, and WRITERS. Without LIMIT the holders are readers, with it each wants one permit.
 * With FENCES so many of their transactions are fenced, each holder's once; with PATIENT nobody gives up or loses an answer.
 * Wrong variants, each of which must be found out: JOIN_UNLOCKED (and what else it leads to: JOIN_UNCOUNTED, JOIN_UNCOVERED,
 * EVICT_UNLOCKED, NO_SECOND_LOOK_AT_GATE), JOIN_KEEPS_END, COUNT_WITHOUT_EVICTION, DROP_LOWERS_TOO_FAR,
 * DROP_FREES, RENEW_ANY_GATE, NO_TOMBSTONE, DEAD_BLOCK, FENCE_HOLDER_ONLY, FENCE_GATE_ONLY.
 */
#ifndef HOLDERS
#define HOLDERS 2
#endif
#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef TICKS
#define TICKS 3 /* that may come between any two steps; the others when nothing else moves */
#endif
#define LEASE 2

/* What is found out by more than one promise is found out by each of them: in the variants that look away from others. */
#if defined(JOIN_UNCOUNTED) || defined(JOIN_UNCOVERED) || defined(EVICT_UNLOCKED) || defined(NO_SECOND_LOOK_AT_GATE)
#define JOIN_UNLOCKED
#define LATE_MAY_COME_IN
#endif

/* Where a holder's request to come in is. Each line is a statement of one transaction, and what was committed when it began
 * is what it sees. */
#define REST 0
#define LOCKS 1
#define EVICTS 2
#define TAKES_OUT 3 /* of a gate that is not locked: what is taken out, after what was read */
#define ADDS 4
#define WRITES 5 /* likewise: the row is written after what was read */
#define GATES 6
#define ANSWERS 7

/* Where a holder's fenced transaction is. */
#define NONE 0
#define SEES 1 /* on a snapshot, the gate and its row */
#define OPEN 2 /* proved, and not ended */
#define OVER 3

/* What a client does. */
#define IDLE 0
#define ASKS 1
#define HOLDS 2
#define QUITS 3
#define GONE 4
#define DEAD 5 /* and what it trusts in, it trusts in till the end */

#define NOBODY 0
#define TOMB 255 /* the gate of a row that says of its owner that it has given up */
#define WRITER(w) ((w) + 1)
#define NEW_GATE(h, a_token) (8 * (a_token) + 3 + (h)) /* nobody else's, since a gate's token is never drawn twice by one */
#define MAX(a, b) ((a) > (b) -> (a) : (b))

byte now;

/* The gate: the lock's row. And whose transaction has locked it: a holder + 1. */
byte owner, token, ends, locked_by;
bool shared;
#define FENCER(h) (HOLDERS + 1 + (h)) /* or a holder's fenced transaction */

/* The holders' rows; no gate: there is none. */
byte gate[HOLDERS], number[HOLDERS], until[HOLDERS];

/* The clients: until when they trust. */
byte phase[HOLDERS], trust[HOLDERS];
bool repeated[HOLDERS], withdrawn[HOLDERS];
byte writes[WRITERS], alone_until[WRITERS];

/* Their requests: the row that is not committed yet. */
byte at[HOLDERS], new_gate[HOLDERS], new_number[HOLDERS], new_end[HOLDERS];

#ifdef FENCES
/* Their fenced transactions: what was seen, and the end that is not committed yet. */
byte fence[HOLDERS], fence_gate[HOLDERS], fence_number[HOLDERS], fence_end[HOLDERS], fences;
bool fenced_in_time = true, fenced_inside = true;
#define FENCING(h) (fence[h] == SEES || fence[h] == OPEN)
#define ROW_LOCKED(h) (fence[h] == OPEN)

/* The fence writes the gate and the row, and finds both as it saw them; it reads no clock. */
#ifdef FENCE_HOLDER_ONLY
#define PROVED(h) (gate[h] == fence_gate[h] && number[h] == fence_number[h])
#define FENCE_TAKES(h) skip
#define FENCE_MOVES(h) skip
#else
#ifdef FENCE_GATE_ONLY
#define PROVED(h) (owner == fence_gate[h])
#else
#define PROVED(h) (owner == fence_gate[h] && gate[h] == fence_gate[h] && number[h] == fence_number[h])
#endif
#define FENCE_TAKES(h) locked_by = FENCER(h)
#define FENCE_MOVES(h) \
  ends = MAX(ends, fence_end[h]); \
  until[h] = (gate[h] == fence_gate[h] -> MAX(until[h], fence_end[h]) : until[h]); \
  trust[h] = (phase[h] == HOLDS && gate[h] == fence_gate[h] -> MAX(trust[h], fence_end[h]) : trust[h])
#endif
#else
#define FENCING(h) false
#define ROW_LOCKED(h) false
#endif

/* Not in any program: what the promises are about. */
byte highest_alone, highest_shared;

bool one_or_many = true, within_limit = true, tokens_in_order = true, ended_stays_ended = true;
bool withdrawn_stays_out = true, gate_ends_last = true;

#define HELD (owner != NOBODY && ends > now)
#define HELD_ALONE (HELD && !shared)
#define MINE(h) (locked_by == (h) + 1)
#define FREE_TO_LOCK (locked_by == NOBODY)
#define INSIDE(h) (gate[h] != NOBODY && gate[h] == owner && shared)
#define TRUSTS(h) (trust[h] > now)
#define RULES(w) (alone_until[w] > now)
#define IN(h) (gate[h] == owner -> 1 : 0)
#define TRUSTING(h) (trust[h] > now -> 1 : 0)
#define END_IN(h, x, g) ((x) != (h) && gate[x] == (g) -> until[x] : 0)
/* Nobody's lease lasts longer than the gate. */
#define COVERED(h) (!INSIDE(h) || until[h] <= ends || until[h] <= now)

#if HOLDERS > 2
#define SUM(f) (f(0) + f(1) + f(2))
#define ANY(f) (f(0) || f(1) || f(2))
#define ALL(f) (f(0) && f(1) && f(2))
#define REST_ENDS(h, g) MAX(END_IN(h, 0, g), MAX(END_IN(h, 1, g), END_IN(h, 2, g)))
#define EACH(f) f(0); f(1); f(2)
#else
#define SUM(f) (f(0) + f(1))
#define ANY(f) (f(0) || f(1))
#define ALL(f) (f(0) && f(1))
#define REST_ENDS(h, g) MAX(END_IN(h, 0, g), END_IN(h, 1, g))
#define EACH(f) f(0); f(1)
#endif
#if WRITERS > 1
#define RULERS ((RULES(0) -> 1 : 0) + (RULES(1) -> 1 : 0))
#else
#define RULERS (RULES(0) -> 1 : 0)
#endif
#ifdef LIMIT
#define MANY LIMIT
#else
#define MANY HOLDERS
#endif

inline look_around() {
  one_or_many = RULERS == 0 || (RULERS == 1 && !ANY(TRUSTS));
  assert(one_or_many);
  within_limit = SUM(TRUSTING) <= MANY;
  assert(within_limit);
  gate_ends_last = !shared || ALL(COVERED);
  assert(gate_ends_last)
}

inline remove_row(h) {
  gate[h] = NOBODY;
  number[h] = 0;
  until[h] = 0
}

inline forget_request() {
  new_gate[me] = NOBODY;
  new_number[me] = 0;
  new_end[me] = 0;
  seen_owner = NOBODY;
  seen_end = 0;
  seen_rows = 0;
  locked_by = (MINE(me) -> NOBODY : locked_by)
}

inline see(h) {
  seen_rows = seen_rows | (gate[h] != NOBODY -> (1 << h) : 0)
}

/* Takes out who is counted no more, as the gate is: or was, when it was read. */
inline take_out(h, its_owner, its_end, rows) {
  if
  :: (rows & (1 << h)) && gate[h] != NOBODY && gate[h] != TOMB &&
#ifdef LIMIT
#ifdef COUNT_WITHOUT_EVICTION
     (its_owner == NOBODY || its_end <= now || gate[h] != its_owner) ->
#else
     (its_owner == NOBODY || its_end <= now || gate[h] != its_owner || until[h] <= now) ->
#endif
#else
     (its_owner == NOBODY || its_end <= now) ->
#endif
     printf("the row of holder %d is taken out\n", h);
     remove_row(h)
  :: else
  fi
}

#ifdef COUNT_WITHOUT_EVICTION
#define COUNTED(h) (gate[h] == owner && until[h] > now -> 1 : 0)
#else
#define COUNTED(h) (gate[h] == owner -> 1 : 0)
#endif
#ifdef LIMIT
#define ROOM (!HELD || SUM(COUNTED) < LIMIT)
#else
#define ROOM true
#endif

#ifdef NO_SECOND_LOOK_AT_GATE
#define GATE_TAKES (true)
#else
#define GATE_TAKES \
  (new_gate[me] == owner && (new_number[me] > token || new_end[me] > ends) || new_number[me] > token && !HELD)
#endif

/* The row is committed, and answered: a grant, if its gate is that of the lock's row. */
inline commit_row() {
  gate[me] = new_gate[me];
  number[me] = new_number[me];
  until[me] = new_end[me]
}

inline answer() {
  if
  :: new_gate[me] != NOBODY && new_gate[me] == owner && shared ->
     printf("holder %d is in: token %d, gate %d, until %d\n", me, number[me], owner, until[me]);
#ifndef LATE_MAY_COME_IN
     withdrawn_stays_out = !withdrawn[me];
     assert(withdrawn_stays_out);
#endif
     tokens_in_order = number[me] > highest_alone;
     highest_shared = MAX(highest_shared, number[me]);
     if
     :: phase[me] == ASKS -> phase[me] = HOLDS; trust[me] = until[me]
     :: else
     fi;
     at[me] = REST
  :: else -> at[me] = (phase[me] == ASKS -> LOCKS : REST) /* busy, or to be asked for again */
  fi;
  forget_request();
  look_around();
  assert(tokens_in_order)
}

/* A transaction that has to wait for a row's lock is one that runs later. */
proctype Request(byte me) {
  byte seen_owner, seen_end, seen_rows;
end:
  do
  :: d_step { at[me] == LOCKS && FREE_TO_LOCK && !HELD_ALONE ->
       locked_by = me + 1;
       at[me] = EVICTS;
       printf("holder %d has locked the gate\n", me) }
#ifdef JOIN_UNLOCKED
  :: d_step { at[me] == LOCKS && HELD_ALONE -> at[me] = EVICTS; printf("holder %d finds the name held alone\n", me) }
#endif
  :: d_step { at[me] == EVICTS && MINE(me) ->
       seen_owner = owner;
       seen_end = ends;
       seen_rows = 7;
#define TAKE_OUT(h) take_out(h, seen_owner, seen_end, seen_rows)
       EACH(TAKE_OUT);
       seen_owner = NOBODY;
       seen_end = 0;
       seen_rows = 0;
       at[me] = ADDS }
  :: d_step { at[me] == EVICTS && !MINE(me) ->
       seen_owner = owner;
       seen_end = ends;
       EACH(see);
       at[me] = TAKES_OUT }
  :: d_step { at[me] == TAKES_OUT ->
       EACH(TAKE_OUT);
       seen_owner = NOBODY;
       seen_end = 0;
       seen_rows = 0;
       at[me] = ADDS }
  :: d_step { at[me] == ADDS ->
       if
       :: INSIDE(me) -> /* once more */
          new_gate[me] = gate[me];
          new_number[me] = number[me];
          new_end[me] = MAX(until[me], now + LEASE)
       :: !INSIDE(me) && gate[me] != TOMB && !HELD_ALONE && ROOM ->
          new_gate[me] = (HELD -> owner : NEW_GATE(me, token + 1));
          new_number[me] = token + 1;
          new_end[me] = now + LEASE;
          printf("holder %d may come in: token %d, gate %d, until %d\n", me, new_number[me], new_gate[me], new_end[me])
       :: else
       fi;
       at[me] = (new_gate[me] == NOBODY -> ANSWERS : (MINE(me) -> GATES : WRITES)) }
  :: d_step { at[me] == WRITES -> at[me] = GATES; printf("holder %d has written its row\n", me) }
  :: d_step { at[me] == GATES && GATE_TAKES && (FREE_TO_LOCK || MINE(me)) ->
#ifdef JOIN_KEEPS_END
       ends = (owner == new_gate[me] -> ends : new_end[me]);
#else
       ends = (owner == new_gate[me] -> MAX(ends, new_end[me]) : new_end[me]);
#endif
       owner = new_gate[me];
       shared = true;
       token = MAX(token, new_number[me]);
       commit_row();
       answer() }
  :: d_step { at[me] == GATES && !GATE_TAKES -> at[me] = ANSWERS; printf("holder %d leaves the gate as it is\n", me) }
  :: d_step { at[me] == ANSWERS ->
       if
       :: new_gate[me] != NOBODY -> commit_row()
       :: else
       fi;
       answer() }
  /* The server, or the connection, ends it anywhere. */
  :: d_step { at[me] > LOCKS -> forget_request(); at[me] = (phase[me] == ASKS -> LOCKS : REST) }
  od
}

inline drop_row(h) {
  if
  :: gate[h] == owner && owner != NOBODY ->
#ifdef DROP_LOWERS_TOO_FAR
     ends = now + 1;
     owner = (REST_ENDS(h, gate[h]) == 0 -> NOBODY : owner);
#else
#ifdef DROP_FREES
     owner = NOBODY;
     ends = now;
#else
     ends = (REST_ENDS(h, gate[h]) == 0 -> now : REST_ENDS(h, gate[h]));
     owner = (REST_ENDS(h, gate[h]) == 0 -> NOBODY : owner);
#endif
#endif
  :: else
  fi;
  shared = (owner != NOBODY && shared);
  printf("holder %d is out: the gate is %d, until %d\n", h, owner, ends);
  remove_row(h)
}

#ifdef FENCES
inline end_fence() {
  fence[me] = OVER;
  fence_gate[me] = NOBODY;
  fence_number[me] = 0;
  fence_end[me] = 0;
  locked_by = (locked_by == FENCER(me) -> NOBODY : locked_by)
}
#endif

proctype Holder(byte me) {
end:
  do
  /* They are alike: they may be numbered in the order in which they first ask. */
  :: d_step { phase[me] == IDLE && (me == 0 || phase[me - 1] != IDLE) -> phase[me] = ASKS; at[me] = LOCKS }
#ifndef PATIENT
  /* The answer was lost: it asks again. */
  :: d_step { phase[me] == HOLDS && !repeated[me] && at[me] == REST && !FENCING(me) ->
       repeated[me] = true;
       trust[me] = 0;
       phase[me] = ASKS;
       at[me] = LOCKS;
       printf("holder %d got no answer\n", me) }
  :: d_step { phase[me] == ASKS -> phase[me] = QUITS }
#endif
  :: d_step { phase[me] == QUITS && FREE_TO_LOCK && at[me] < GATES ->
       if
       :: gate[me] != NOBODY && gate[me] != TOMB -> drop_row(me)
       :: else
       fi;
#ifndef NO_TOMBSTONE
       gate[me] = TOMB;
#endif
       withdrawn[me] = true;
       phase[me] = GONE;
       printf("holder %d has withdrawn\n", me);
       look_around() }
#ifdef RENEW_ANY_GATE
#define RENEWS(h) (gate[h] != NOBODY && gate[h] != TOMB)
#else
#define RENEWS(h) (gate[h] != NOBODY && gate[h] == owner)
#endif
  :: d_step { phase[me] == HOLDS && FREE_TO_LOCK && !ROW_LOCKED(me) && (!RENEWS(me) || until[me] < now + LEASE) ->
       if
       :: RENEWS(me) ->
          printf("holder %d is renewed\n", me);
          ended_stays_ended = number[me] > highest_alone;
          assert(ended_stays_ended);
          until[me] = now + LEASE;
          ends = MAX(ends, until[me]);
          trust[me] = until[me]
       :: else -> phase[me] = GONE; trust[me] = 0; printf("holder %d is told that it has lost it\n", me)
       fi;
       look_around() }
  :: d_step { phase[me] == HOLDS && FREE_TO_LOCK && !ROW_LOCKED(me) ->
       phase[me] = GONE;
       trust[me] = 0;
       if
       :: gate[me] != NOBODY -> drop_row(me)
       :: else
       fi;
       look_around() }
  :: d_step { phase[me] == HOLDS -> phase[me] = DEAD; printf("holder %d dies\n", me) }
#ifdef FENCES
  /* A transaction of its own, whatever it thinks of its lease by then. */
  :: d_step { phase[me] == HOLDS && fence[me] == NONE && fences < FENCES && INSIDE(me) ->
       fences++;
       fence[me] = SEES;
       fence_gate[me] = gate[me];
       fence_number[me] = number[me];
       printf("the fence of holder %d sees token %d, gate %d\n", me, number[me], owner) }
#ifdef FENCE_HOLDER_ONLY
  :: d_step { fence[me] == SEES ->
#else
  :: d_step { fence[me] == SEES && FREE_TO_LOCK ->
#endif
       if
       :: PROVED(me) ->
          fence[me] = OPEN;
          fence_end[me] = now + LEASE;
          FENCE_TAKES(me);
          printf("holder %d has fenced\n", me)
       :: else -> end_fence(); printf("the fence of holder %d is refused\n", me)
       fi }
  :: d_step { fence[me] == OPEN ->
       printf("holder %d commits what it has fenced\n", me);
       fenced_in_time = fence_number[me] > highest_alone;
       assert(fenced_in_time);
#ifndef FENCE_HOLDER_ONLY
       fenced_inside = gate[me] == fence_gate[me] && number[me] == fence_number[me];
       assert(fenced_inside);
#endif
       FENCE_MOVES(me);
       end_fence();
       look_around() }
  :: d_step { fence[me] == OPEN -> end_fence(); printf("the fenced transaction of holder %d is rolled back\n", me) }
#endif
  od
}

/* Whoever waits here when nothing else can happen waits for ever. */
proctype Writer(byte me) {
#ifdef DEAD_BLOCK
  d_step { FREE_TO_LOCK && !HELD && !ANY(INSIDE) ->
#else
  d_step { FREE_TO_LOCK && !HELD ->
#endif
    token++;
    tokens_in_order = token > highest_shared;
    assert(tokens_in_order);
    highest_alone = token;
    owner = WRITER(me);
    shared = false;
    ends = now + LEASE;
    alone_until[me] = ends;
    writes[me] = HOLDS;
    printf("writer %d has it alone: token %d, until %d\n", me, token, ends);
    look_around() };
end:
  do
  :: d_step { writes[me] == HOLDS && FREE_TO_LOCK && (owner != WRITER(me) || ends < now + LEASE) ->
       if
       :: owner == WRITER(me) -> ends = now + LEASE; alone_until[me] = ends; printf("writer %d is renewed\n", me)
       :: else -> writes[me] = GONE; alone_until[me] = 0
       fi;
       look_around() }
  :: d_step { writes[me] == HOLDS && FREE_TO_LOCK ->
       if
       :: owner == WRITER(me) -> owner = NOBODY; ends = now
       :: else
       fi;
       writes[me] = GONE;
       alone_until[me] = 0;
       printf("writer %d has released\n", me);
       look_around() }
  :: d_step { writes[me] == HOLDS -> writes[me] = DEAD; printf("writer %d dies\n", me) }
  od
}

#define TICK now++; printf("it is %d\n", now)

proctype Time() {
end:
  do
  :: d_step { now < TICKS -> TICK }
  :: timeout && now >= TICKS && now <= TICKS + (WRITERS + 1) * LEASE -> d_step { TICK }
  od
}

init {
  atomic {
    run Time();
    run Writer(0);
#if WRITERS > 1
    run Writer(1);
#endif
    run Holder(0);
    run Request(0);
    run Holder(1);
    run Request(1);
#if HOLDERS > 2
    run Holder(2);
    run Request(2);
#endif
  }
}
